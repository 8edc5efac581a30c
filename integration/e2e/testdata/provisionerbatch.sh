# Two personal pools of one user: glideins are jobs of the first, the batch system, and take jobs of the second. The provisioner runs
# with the files of deploy/provisioner-batch, which the functions example_... print; "program" prints its program.
# Arguments: the ports of both pools.
set -eu
user=personal
exec 9>/tmp/users.lock
flock 9 # several of these scripts run at once
id $user >/dev/null 2>&1 || useradd -m -u 20007 $user
exec 9>&-
top=/home/$user/provisioner.$1
rm -rf $top
mkdir -p $top/site $top/tools
makepool() { # NAME, port, role that it lacks
	dir=$top/$1 port=$2
	mkdir -p $dir/log $dir/spool $dir/execute $dir/lock $dir/run
	configure | grep -v "role:$3" >$dir/config
	echo "SCHEDD_NAME = $1@personal.invalid" >>$dir/config
}
makepool batch $1 none
cat >>$dir/config <<C
NUM_CPUS = 2
MEMORY = 8192
NUM_SLOTS_TYPE_1 = 1
SLOT_TYPE_1 = 100%
SLOT_TYPE_1_PARTITIONABLE = True
C
makepool users $2 Execute
cat >$top/tools/status <<C
#!/bin/sh
echo >>$top/rounds
exec condor_q "\$@"
C
program >$top/tools/condor_pod_provisioner
example_glidein >$top/site/glidein
chmod 755 $top/tools/* $top/site/glidein
example_provisioner | sed "s|/etc/condor-batch/condor_config|$top/batch/config|; s|^collector: .*|collector: 127.0.0.1:$2|; s|^limits: .*|interval: 10s\npolicy: {patience: 0s, horizon: 0s, settle: 1m}|; s|- condor_q\$|- $top/tools/status|" >$top/site/provisioner.yaml
example_template | sed 's/disk: \([0-9]*\)Gi/disk: \1Mi/' >$top/site/glidein.template.yaml
example_sub | sed "s|/etc/podstarter/provisioner|$top/site|; s|/var/log/podstarter|$top/site|; s|, [^ ]*glidein.token||" >$top/site/glidein.sub
cat >$top/site/site.conf <<C
$(configure | sed -n '/^CONDOR_HOST/,$p' | grep -v 'SHARED_PORT_PORT\|COLLECTOR_HOST')
COLLECTOR_HOST = 127.0.0.1:$2
USE_SHARED_PORT = False
STARTD_NOCLAIM_SHUTDOWN = 20
UPDATE_INTERVAL = 5
C
cat >$top/job.sh <<J
#!/bin/sh
while [ ! -e $top/go ]; do sleep 0.2; done
sed -n 's/^Name = "[^@]*@\([^@]*\)@.*/\1/p' "\$_CONDOR_MACHINE_AD"
J
chmod 755 $top/job.sh
cat >$top/job.sub <<J
executable = $top/job.sh
should_transfer_files = YES
output = $top/out.\$(Cluster)
error = $top/err.\$(Cluster)
log = $top/log
request_cpus = 1
request_memory = 512
request_disk = 1000
queue
J
chown -R $user: $top
chmod 755 /home/$user
in_pool() { # NAME, command
	pool=$1
	shift
	su $user -s /bin/sh -c "cd $top; export CONDOR_CONFIG=$top/$pool/config; $*"
}
until_true() { # what, command
	what=$1
	shift
	for try in $(seq 300); do
		"$@" && return
		sleep 0.5
	done
	echo "not within 150 s: $what"
	in_pool batch condor_q -nobatch -allusers || true
	in_pool users condor_q -nobatch -allusers || true
	in_pool users condor_status || true
	in_pool users "$top/tools/condor_pod_provisioner -config $top/site/provisioner.yaml -templates $top/site -dry-run" || true
	tail -n 30 $top/provisioner.log $top/batch/log/StarterLog.slot* $top/site/*.out $top/site/*.err $top/batch/execute/dir_*/scratch/pilot/log/* 2>/dev/null
	exit 1
}
provisioner() { # starts it, and gives its process in $provisioner
	su $user -s /bin/sh -c "cd $top; export CONDOR_CONFIG=$top/users/config; exec $top/tools/condor_pod_provisioner -listen 127.0.0.1:0 -config $top/site/provisioner.yaml -templates $top/site" >>$top/provisioner.log 2>&1 &
	provisioner=$!
}
ends() { # stops it without a word
	child=$(pgrep -P $provisioner || true)
	kill -KILL $child $provisioner 2>/dev/null || true
	wait $provisioner 2>/dev/null || true
}
in_pool batch condor_master
in_pool users condor_master
trap 'ends; in_pool batch condor_off -master -fast >/dev/null 2>&1; in_pool users condor_off -master -fast >/dev/null 2>&1' EXIT
provisioner=
ready() { in_pool batch condor_status -af Name 2>/dev/null | grep -q . && in_pool users condor_status -schedd -af Name 2>/dev/null | grep -q . && in_pool users condor_q >/dev/null 2>&1; }
until_true "pools that are up" ready

count() { # POOL, constraint, number
	[ "$(in_pool $1 "condor_q -constraint '$2' -af ClusterId" | wc -l)" -eq $3 ]
}
rounds() { wc -l <$top/rounds; } # each asks for the status once
more_rounds() { [ "$(rounds)" -ge $wanted ]; }
ever() { { in_pool batch condor_q -af JobBatchName; in_pool batch condor_history -af JobBatchName; } | sort -u; }

echo "== jobs"
in_pool users condor_submit -terse job.sub
in_pool users condor_submit -terse job.sub
provisioner
until_true "two jobs that run in glideins" count users 'JobStatus == 2' 2
echo "== third"
in_pool users condor_submit -terse job.sub
until_true "a third glidein, which waits" count batch 'JobStatus == 1' 1
in_pool batch condor_q -af JobBatchName PodstarterNote
echo "== killed"
ends
wanted=$(($(rounds) + 3))
provisioner
until_true "three more rounds" more_rounds
echo "glideins: $(ever | wc -l)"
echo "== withdrawn"
in_pool users "condor_rm -constraint 'JobStatus == 1'" >/dev/null
until_true "the withdrawal" count batch 'JobStatus == 1' 0
until_true "word of it" grep -q '"A pod is withdrawn"' $top/provisioner.log
echo "running: $(in_pool batch "condor_q -constraint 'JobStatus == 2' -af ClusterId" | wc -l)"
echo "== ended"
touch $top/go
until_true "the end of the jobs" count users True 0
cat $top/out.* | sort
until_true "the end of the glideins" count batch 'JobStatus =!= 4' 0
in_pool batch "condor_q -af JobStatus ExitCode"
wanted=$(($(rounds) + 2))
until_true "two more rounds" more_rounds
echo "glideins: $(ever | wc -l)"
echo "== all"
ever
echo "== errors"
grep '"level":"ERROR"' $top/provisioner.log || true
echo "== log"
tail -n 20 $top/provisioner.log
