# A personal pool whose access point is behind a connection broker: its daemons tell everybody an address at which nobody listens.
# Made under a user of its own. Arguments: path of the starter, port, and "pod" if the execution point is behind the broker too.
# Prints for each job, after a line "== NAME", what became of it.
set -eu
starter=$1 port=$2 side=${3:-public} user=personal
id $user >/dev/null 2>&1 || useradd -m -u 20007 $user
top=/home/$user/broker.$port
rm -rf $top
for dir in $top/cm $top/ap; do mkdir -p $dir/log $dir/spool $dir/execute $dir/lock $dir/run; done

# behind ADDRESS NAME: nothing listens at the address, and only daemons of that name know another.
behind() { printf 'CCB_ADDRESS = $(COLLECTOR_HOST)\nTCP_FORWARDING_HOST = %s\nPRIVATE_NETWORK_NAME = %s\nPRIVATE_NETWORK_INTERFACE = 127.0.0.1\nCCB_RECONNECT_TIME = 2\n' $1 $2; }

dir=$top/cm
configure >$dir/config
cat >>$dir/config <<C
DAEMON_LIST = MASTER, COLLECTOR, NEGOTIATOR, STARTD
NUM_CPUS = 4
NUM_SLOTS = 4
MEMORY = 2048
START = True
SUSPEND = False
PREEMPT = False
KILL = False
MASTER_NAME = cm
STARTD_NAME = cm
STARTER = $starter
POD_STARTER_BACKEND = local
STARTER_DEBUG = D_FULLDEBUG
STARTER_INITIAL_UPDATE_INTERVAL = 2
FILETRANSFER_PLUGINS = \$(FILETRANSFER_PLUGINS), $top/plugin
C
dir=$top/ap
configure >$dir/config
cat >>$dir/config <<C
DAEMON_LIST = MASTER, SCHEDD
SHARED_PORT_PORT = $((port + 1))
MASTER_NAME = ap
SCHEDD_NAME = ap
SHADOW_DEBUG = D_FULLDEBUG
JOB_DEFAULT_LEASE_DURATION = 300
MASTER_BACKOFF_CONSTANT = 1
C
behind 127.0.0.99 ap >>$dir/config
[ $side = public ] || behind 127.0.0.98 ep >>$top/cm/config
for dir in $top/cm $top/ap; do
	cat >>$dir/config <<C
SEC_DEFAULT_ENCRYPTION = REQUIRED
SEC_DEFAULT_INTEGRITY = REQUIRED
SEC_READ_AUTHENTICATION = OPTIONAL
SEC_CLIENT_AUTHENTICATION = OPTIONAL
C
done
cat >$top/plugin <<'P'
#!/usr/bin/python3
import sys, classad2
P
cat >$top/job.sh <<'J'
#!/bin/sh
cat input
condor_chirp=$(condor_config_val LIBEXEC)/condor_chirp
$condor_chirp set_job_attr_delayed Chirped '"yes"'
$condor_chirp get /etc/hostname fetched && echo "chirp: fetched"
head -c 3000000 /dev/zero >result
echo made >>result
exit 5
J
rm -f $top/plugin; sed -i /FILETRANSFER_PLUGINS/d $top/cm/config
echo "input came" >$top/input
cat >$top/plain.sub <<J
executable = $top/job.sh
transfer_input_files = $top/input
should_transfer_files = YES
when_to_transfer_output = ON_EXIT
+WantIOProxy = True
initialdir = $top
request_memory = 64
J
chmod 755 $top/job.sh
chown -R $user:$user $top
as() { su $user -s /bin/sh -c "cd $top; export CONDOR_CONFIG=$top/$1/config; $2"; }
trap 'for d in ap cm; do as $d "condor_off -master -fast" >/dev/null 2>&1; done' EXIT
as cm condor_master
as ap condor_master
for try in $(seq 120); do
	as ap "condor_status -schedd -af MyAddress" 2>/dev/null | grep -q CCBID && as ap "condor_status -af Name" | grep -q slot4 && break
	sleep 0.5
done
as ap "condor_status -schedd -af MyAddress"
submit() { # NAME, lines
	name=$1; shift
	mkdir -p $top/$name
	{ cat $top/plain.sub; printf '%s\n' "output = $top/$name/out" "error = $top/$name/err" "log = $top/$name/log" "transfer_output_remaps = \"result=$top/$name/result\"" "$@" queue; } >$top/$name.sub
	chown -R $user $top/$name
	as ap "condor_submit -terse $name.sub" | cut -d' ' -f1 >$top/$name/id
}
echo "== files"
submit files
as ap "condor_wait -wait 90 files/log" >/dev/null || true
cat $top/files/out $top/files/err || true
echo "result: $(tail -n 1 $top/files/result) $(wc -c <$top/files/result)"
cat $top/files/log
echo "== log"
tail -n 60 $top/cm/log/StarterLog.slot1*
grep -i ccb $top/cm/log/CollectorLog | tail
