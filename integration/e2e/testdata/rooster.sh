# A personal pool whose negotiator matches jobs with offline ads, and the provisioner beside it. One user runs all of it.
# Arguments: directory's name, port, and what is to be done.
set -eu
user=personal dir=/home/personal/$1 port=$2 verb=$3
shift 3
as() { su $user -s /bin/sh -c "cd $dir; export CONDOR_CONFIG=$dir/config KUBECONFIG=$dir/kubeconfig; $*"; }
case $verb in
start) # makes the directory
	id $user >/dev/null 2>&1 || useradd -m -u 20007 $user
	rm -rf $dir
	mkdir -p $dir/log $dir/spool $dir/execute $dir/lock $dir/run $dir/keys $dir/site $dir/wake
	configure | grep -v role:Execute >$dir/config
	cat >>$dir/config <<C
DAEMON_LIST = MASTER SHARED_PORT COLLECTOR NEGOTIATOR SCHEDD ROOSTER
ROOSTER = \$(LIBEXEC)/condor_rooster
ROOSTER_INTERVAL = 4
ROOSTER_WAKEUP_CMD = "$dir/condor_pod_provisioner -wake -config $dir/wake/provisioner.yaml -templates $dir/wake"
NEGOTIATOR_UPDATE_AFTER_CYCLE = True
COLLECTOR_PERSISTENT_AD_LOG = \$(SPOOL)/offline.log
SEC_DEFAULT_AUTHENTICATION_METHODS = FS, IDTOKENS
SEC_PASSWORD_DIRECTORY = $dir/keys
SEC_TOKEN_POOL_SIGNING_KEY_FILE = $dir/keys/POOL
TRUST_DOMAIN = personal.invalid
C
	head -c 64 /dev/urandom >$dir/keys/POOL
	chmod 700 $dir/keys
	chmod 600 $dir/keys/POOL
	chown -R $user:$user $dir
	;;
up)
	as condor_master
	for try in $(seq 120); do
		as condor_status -negotiator -af Name 2>/dev/null | grep -q . && exit 0
		sleep 0.5
	done
	tail -n 30 $dir/log/*Log
	exit 1
	;;
down)
	as "condor_off -master -fast" >/dev/null 2>&1 || true
	kill $(cat $dir/provisioner.pid 2>/dev/null) 2>/dev/null || true
	;;
run) # the provisioner
	as "$dir/condor_pod_provisioner -config $dir/site/provisioner.yaml -templates $dir/site -listen= </dev/null >>$dir/log/provisioner 2>&1 & echo \$! >$dir/provisioner.pid"
	;;
end) # and wait until it has ended
	kill -TERM $(cat $dir/provisioner.pid)
	while kill -0 $(cat $dir/provisioner.pid) 2>/dev/null; do sleep 0.1; done
	;;
submit) # a job that needs a CPU
	printf 'executable = /bin/sleep\narguments = 1000\nrequest_cpus = 1\nrequest_memory = 64\nrequest_disk = 1000\nshould_transfer_files = YES\nqueue\n' >$dir/job.sub
	as condor_submit -terse job.sub
	;;
do) as "$*" ;;
log) cat $dir/log/$1 2>/dev/null || true ;;
esac
