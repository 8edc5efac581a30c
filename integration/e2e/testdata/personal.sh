# A personal pool without root: one user runs every daemon, our starter runs the
# job beside itself. It is made in the pilot container, under a user of its own.
# Arguments: path of the starter, port. Prints what the job printed, the event
# log, and the user's remaining processes at the end.
set -eu
starter=$1 port=$2 user=personal
id $user >/dev/null 2>&1 || useradd -m -u 20007 $user
dir=/home/$user/condor
rm -rf $dir
mkdir -p $dir/log $dir/spool $dir/execute $dir/lock $dir/run
cat >$dir/config <<C
LOCAL_DIR = $dir
BIN = /usr/bin
SBIN = /usr/sbin
LIBEXEC = /usr/libexec/condor
LIB = /usr/lib/condor
LOG = $dir/log
SPOOL = $dir/spool
EXECUTE = $dir/execute
LOCK = $dir/lock
RUN = $dir/run
use role:CentralManager
use role:Submit
use role:Execute
CONDOR_HOST = 127.0.0.1
SHARED_PORT_PORT = $port
COLLECTOR_HOST = 127.0.0.1:$port
NETWORK_INTERFACE = 127.0.0.1
BIND_ALL_INTERFACES = False
ENABLE_IPV6 = False
UID_DOMAIN = personal.invalid
SEC_DEFAULT_AUTHENTICATION = REQUIRED
SEC_DEFAULT_AUTHENTICATION_METHODS = FS
ALLOW_READ = *
ALLOW_WRITE = *
ALLOW_DAEMON = *
ALLOW_NEGOTIATOR = *
ALLOW_ADMINISTRATOR = *
ALLOW_ADVERTISE_STARTD = *
ALLOW_ADVERTISE_SCHEDD = *
ALLOW_ADVERTISE_MASTER = *
NEGOTIATOR_INTERVAL = 2
NEGOTIATOR_MIN_INTERVAL = 1
NEGOTIATOR_CYCLE_DELAY = 1
SCHEDD_INTERVAL = 3
NUM_CPUS = 1
NUM_SLOTS = 1
START = True
SUSPEND = False
PREEMPT = False
KILL = False
STARTER = $starter
POD_STARTER_BACKEND = local
STARTER_DEBUG = D_FULLDEBUG
C
cat >$dir/job.sh <<'J'
#!/bin/sh
echo "user $(id -u)"
cat input
echo made >result
setsid sh -c 'trap "" TERM; sleep 1000' >/dev/null 2>&1 &
exit 5
J
echo "input came" >$dir/input
cat >$dir/job.sub <<J
executable = $dir/job.sh
transfer_input_files = $dir/input
should_transfer_files = YES
when_to_transfer_output = ON_EXIT
output = job.out
error = job.err
log = job.log
initialdir = $dir
queue
J
chmod 755 $dir/job.sh
chown -R $user:$user $dir
as() { su $user -s /bin/sh -c "cd $dir; export CONDOR_CONFIG=$dir/config; $*"; }
as condor_master
trap 'as condor_off -master -fast >/dev/null 2>&1' EXIT
for try in $(seq 120); do
	as condor_status -af PodStarterBackend 2>/dev/null | grep -q local && break
	sleep 0.5
done
as condor_submit job.sub >/dev/null
as condor_wait -wait 60 job.log >/dev/null || true
cat $dir/job.out $dir/job.err
echo "result: $(cat $dir/result)"
cat $dir/job.log
echo "left: $(ps -u $user -o comm= | grep -v condor_ | tr '\n' ' ')"
tail -n 40 $dir/log/StarterLog.slot1*
