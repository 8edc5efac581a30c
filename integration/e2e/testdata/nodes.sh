# A personal pool whose starter runs the nodes of parallel jobs, for which its slots belong to the dedicated scheduler.
# Arguments: path of the starter, port, and "root" if the daemons are root's. Prints for each job, after a line "== NAME", its events, what
# the history has of its end, and its output.
set -eu
starter=$1 port=$2 daemons=${3:-personal} user=personal
exec 9>/tmp/users.lock
flock 9 # several of these scripts run at once
id $user >/dev/null 2>&1 || useradd -m -u 20007 $user
exec 9>&-
dir=/home/$user/nodes.$port
rm -rf $dir
mkdir -p $dir/log $dir/spool $dir/execute $dir/lock $dir/run
configure >$dir/config
cat >>$dir/config <<C
NUM_CPUS = 2
NUM_SLOTS = 2
MEMORY = 2048
STARTER = $starter
POD_STARTER_BACKEND = local
POD_STARTER_PAYLOAD_UID = 20101
SINGULARITY =
SCHEDD_NAME = nodes@personal.invalid
DedicatedScheduler = "DedicatedScheduler@nodes@personal.invalid"
STARTD_ATTRS = \$(STARTD_ATTRS) DedicatedScheduler
C
[ $daemons != root ] || rootdaemons
echo "input came" >$dir/input
# The jobs wait for each other, and for the test, by files of this directory.
mkdir -m 1777 $dir/meet
cat >$dir/job.sh <<'J'
#!/bin/sh
node=$_CONDOR_PROCNO meet=$1
echo "node $node of $_CONDOR_NPROCS, $3, $(cat input), $(echo $_CONDOR_REMOTE_SPOOL_DIR | grep -c spool), $PATH"
echo "made by $node" >result.$node
trap 'echo "asked to end" >asked.$node; touch $meet/asked.$node; exit 5' TERM
touch $meet/runs.$node
await() { while [ ! -e $meet/$1 ]; do sleep 0.1; done; }
case $2.$node in
one.0) exit 3 ;;
last.1) await begun && exit 4 ;;
last.0) await go && exit 7 ;;
first.0) await runs.1 && await go && exit 3 ;;
all.0) await begun && exit 3 ;;
all.1) await go && exit 4 ;;
esac
await never
J
submitfile() { # NAME, number of nodes, more lines of the submit file
	name=$1 count=$2
	shift 2
	mkdir -p $dir/$name
	mkdir -m 1777 $dir/meet/$name
	cat >$dir/$name.sub <<J
universe = parallel
machine_count = $count
executable = $dir/job.sh
arguments = $dir/meet/$name $name number_\$(Node)
environment = PATH=/usr/bin:/bin
should_transfer_files = YES
when_to_transfer_output = ON_EXIT_OR_EVICT
transfer_input_files = $dir/input
initialdir = $dir/$name
output = out.\$(Node)
error = err.\$(Node)
log = log
request_memory = 256
J
	printf '%s\n' "$@" queue >>$dir/$name.sub
}
submitfile one 1
submitfile last 2
submitfile first 2
submitfile all 2 '+ParallelShutdownPolicy = "WAIT_FOR_ALL"'
submitfile removed 2
chown -R $user: $dir
as() { su $user -s /bin/sh -c "cd $dir; export CONDOR_CONFIG=$dir/config; $*"; }
begin() { su $daemons -s /bin/sh -c "cd $dir; export CONDOR_CONFIG=$dir/config; $*"; }
# has EXPRESSION waits for a line of the job's event log.
has() {
	for try in $(seq 200); do
		grep -qE "$1" $dir/$name/log && return
		sleep 0.2
	done
	echo "no event $1"
}
begin condor_master
trap 'begin condor_off -master -fast >/dev/null 2>&1' EXIT
for try in $(seq 240); do
	[ "$(as condor_status -af DedicatedScheduler 2>/dev/null | grep -c nodes@)" = 2 ] && break
	sleep 0.5
done
for name in one last first all removed; do
	echo "== $name"
	id=$(as condor_submit -terse $name.sub | cut -d' ' -f1)
	case $name in
	first | removed) has '^001' ;;
	last | all) # a node ends when both have begun
		has '^001'
		touch $dir/meet/$name/begun
		has '^015'
		;;
	esac
	[ $name != removed ] || as condor_rm $id >/dev/null
	touch $dir/meet/$name/go
	has '^(005|009|012)'
	case $name in # node 1 was asked to end
	first | removed)
		for try in $(seq 100); do
			[ -e $dir/meet/$name/asked.1 ] && break
			sleep 0.2
		done
		;;
	esac
	echo "events:" $(grep -oE '^0[0-9][0-9] ' $dir/$name/log | grep -vE '006|040')
	grep -hE 'Node . terminated|termination|Reason:|MPI_job' $dir/$name/log | sed 's/^015 .*Node/Node/; s/^001 .*Job/Job/'
	for try in $(seq 100); do
		as condor_history $id -limit 1 -af JobStatus 2>/dev/null | grep -q . && break
		sleep 0.2
	done
	exit=ExitCode
	[ $name != removed ] || exit= # the shadow may hear how node 0 ends, or not
	as condor_history $id -limit 1 -af:ln $exit JobStatus ExitBySignal Node JobUniverse MinHosts MaxHosts NumJobStarts NumShadowStarts
	ls $dir/meet/$name | sed 's/^/meet: /'
	for file in $dir/$name/*; do
		[ $(basename $file) = log ] || sed "s|^|$(basename $file): |" $file
	done
done
echo "== log"
tail -q -n 60 $dir/log/StarterLog.slot*
