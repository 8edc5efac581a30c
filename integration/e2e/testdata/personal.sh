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
configure >$dir/config
cat >>$dir/config <<C
NUM_CPUS = 1
NUM_SLOTS = 1
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
