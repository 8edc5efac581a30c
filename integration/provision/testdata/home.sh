# Another pool on the access point's machine, whose schedd flocks to the pool. It has no slots.
# Arguments: port, user, image, Requirements of the jobs, lines of the jobs; how many jobs. It prints what they printed, and where they ran.
set -eu
port=$1 user=$2 image=$3 requirements=$4 lines=$5 count=$6
dir=/var/lib/condor/home.$port
rm -rf $dir
mkdir -p $dir/log $dir/spool $dir/execute $dir/lock $dir/run $dir/jobs
here=$(condor_config_val COLLECTOR_HOST)
export _CONDOR_TRUST_DOMAIN="$(condor_config_val TRUST_DOMAIN)" # tokens and passwords are the pool's
export _CONDOR_LOCAL_DIR=$dir _CONDOR_LOG=$dir/log _CONDOR_SPOOL=$dir/spool _CONDOR_LOCK=$dir/lock _CONDOR_RUN=$dir/run _CONDOR_EXECUTE=$dir/execute
export _CONDOR_PER_JOB_HISTORY_DIR=$dir/log _CONDOR_DAEMON_SOCKET_DIR=$dir/lock/sock _CONDOR_SEC_CREDENTIAL_DIRECTORY_OAUTH=
export _CONDOR_COLLECTOR_HOST=${here%:*}:$port _CONDOR_SHARED_PORT_PORT=$port
export _CONDOR_DAEMON_LIST="MASTER SHARED_PORT COLLECTOR NEGOTIATOR SCHEDD"
export _CONDOR_MASTER_NAME=home _CONDOR_SCHEDD_NAME=home@ _CONDOR_ACCOUNTING_DOMAIN=home.invalid _CONDOR_FLOCK_TO=$here
chown -R condor: $dir
chown $user: $dir/jobs
chmod 755 $dir $dir/jobs
condor_master -pidfile $dir/pid
# It ends at once, with all that it started.
trap 'pid=$(cat $dir/pid); kill -QUIT $pid; while kill -0 $pid 2>/dev/null; do sleep 0.2; done' EXIT
for try in $(seq 120); do
	condor_status -schedd -af Name 2>/dev/null | grep -q '^home@' && break
	sleep 0.5
done
cat >$dir/jobs/job.sub <<J
universe = docker
docker_image = $image
executable = /bin/cat
transfer_executable = false
arguments = /image-name
should_transfer_files = YES
output = out.\$(ProcId)
error = err.\$(ProcId)
log = log
request_cpus = 1
request_memory = 64
request_disk = 16M
requirements = $requirements
notification = never
$lines
queue $count
J
su $user -s /bin/sh -c "cd $dir/jobs && condor_submit -terse job.sub" >/dev/null
su $user -s /bin/sh -c "cd $dir/jobs && condor_wait -wait 300 log" >/dev/null || condor_q -allusers -better-analyze
for job in $(seq 0 $((count - 1))); do echo "said: $(cat $dir/jobs/out.$job $dir/jobs/err.$job)"; done
condor_history -limit $count -af ExitCode LastRemoteHost LastRemotePool | sed 's/^/ran: /'
condor_userprio -allusers -pool $here -af Name 2>/dev/null | grep home.invalid | sed 's/^/charged: /' || true
grep -h -i 'flock level' $dir/log/SchedLog | head -5
