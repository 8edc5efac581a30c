# A personal pool whose starter runs jobs of the java universe by the machine's own Java, made in a container that has one.
# Arguments: path of the starter, port, and "root" if the daemons are root's. The functions class and jar, which stand before this, print
# a class file and a jar file. Prints for each job, after a line "== NAME", its events, what the history has of its end, and its output;
# after "== classad" what the starter can do.
set -eu
starter=$1 port=$2 daemons=${3:-personal} user=personal
id $user >/dev/null 2>&1 || useradd -m -u 20007 $user
dir=/home/$user/java.$port
rm -rf $dir
mkdir -p $dir/log $dir/spool $dir/execute $dir/lock $dir/run
configure >$dir/config
cat >>$dir/config <<C
NUM_CPUS = 4
NUM_SLOTS = 4
MEMORY = 4096
STARTER = $starter
STARTER_DEBUG = D_FULLDEBUG
POD_STARTER_BACKEND = local
POD_STARTER_PAYLOAD_UID = 20101
SINGULARITY =
JAVA_EXTRA_ARGUMENTS = "-Xmx64m '-Dpodstarter.site=of the site'"
C
[ $daemons != root ] || rootdaemons
class >$dir/Job.class
jar >$dir/helper.jar
echo "input came" >$dir/input
echo "from stdin" >$dir/stdin
submitfile() { # NAME, arguments, more lines of the submit file
	name=$1 arguments=$2
	shift 2
	mkdir -p $dir/$name
	cat >$dir/$name.sub <<J
universe = java
executable = $dir/Job.class
arguments = $arguments
should_transfer_files = YES
when_to_transfer_output = ON_EXIT
transfer_input_files = $dir/input
initialdir = $dir/$name
output = out
error = err
log = log
request_memory = 256
J
	printf '%s\n' "$@" queue >>$dir/$name.sub
}
submitfile files "Job files one" "java_vm_args = -Dpodstarter.option=jobs" "input = $dir/stdin"
submitfile quoted "\"Job files 'two words'\"" "java_vm_args = \"'-Dpodstarter.option=two words'\""
submitfile jar "Job helper" "jar_files = $dir/helper.jar"
submitfile nojar "Job helper"
submitfile exit "Job exit 3"
submitfile throw "Job throw"
submitfile noclass "Nobody exit 0"
submitfile onexit "Job throw" 'on_exit_hold = ExitBySignal && ExitSignal == 15 && ExceptionName == "java.lang.IllegalStateException"'
submitfile memory "Job memory"
submitfile kill "Job kill"
submitfile badoption "Job exit 0" "java_vm_args = -XX:NoSuchOption"
submitfile removed "Job wait"
chown -R $user: $dir
as() { su $user -s /bin/sh -c "cd $dir; export CONDOR_CONFIG=$dir/config; $*"; }
begin() { su $daemons -s /bin/sh -c "cd $dir; export CONDOR_CONFIG=$dir/config; $*"; }
begin condor_master
trap 'begin condor_off -master -fast >/dev/null 2>&1' EXIT
for try in $(seq 240); do
	[ "$(as condor_status -af HasJava 2>/dev/null | grep -c true)" = 4 ] && break
	sleep 0.5
done
echo "== classad"
as condor_status -limit 1 -af:ln HasJava JavaVendor JavaVersion JavaSpecificationVersion
jobs="files quoted jar nojar exit throw noclass onexit memory kill badoption removed"
for name in $jobs; do as condor_submit -terse $name.sub | cut -d' ' -f1 >$dir/$name/id; done
for name in $jobs; do
	log=$dir/$name/log id=$(cat $dir/$name/id)
	ends='^(004|005|007|012|022|024)'
	[ $name != removed ] || ends='^001'
	for try in $(seq 240); do # it has ended, is held, or was given back
		grep -qE "$ends" $log 2>/dev/null && break
		sleep 0.5
	done
	echo "== $name"
	case $name in
	memory | kill | badoption) # it is given back again and again
		awk '/^004/ {seen = 1; $2 = $3 = $4 = ""} /^\.\.\./ && seen {exit} seen && !/Usr|   / {print}' $log
		as condor_hold $id >/dev/null || true
		as condor_q $id -af:ln ExitBySignal ExitCode ExceptionName ExceptionType ExceptionHierarchy
		as condor_rm $id >/dev/null || true
		cat $dir/$name/out $dir/$name/err
		continue
		;;
	onexit)
		for try in $(seq 120); do
			grep -q '^012' $log && break
			sleep 0.5
		done
		as condor_q $id -af:ln JobStatus HoldReasonCode HoldReasonSubCode HoldReason ExceptionName ExceptionType ExceptionHierarchy
		as condor_rm $id >/dev/null
		;;
	removed) as condor_rm $id >/dev/null ;;
	esac
	for try in $(seq 120); do
		as condor_history $id -limit 1 -af JobStatus 2>/dev/null | grep -q . && break
		sleep 0.5
	done
	echo "events:" $(grep -oE '^0[0-9][0-9] ' $log | grep -v 006)
	grep -hE 'termination|Bytes' $log || true
	as condor_history $id -limit 1 -af:ln JobStatus ExitCode ExitBySignal ExitSignal ExitStatus TerminationPending ExceptionName ExceptionType ExceptionHierarchy JobUniverse Cmd Arguments Args TransferExecutable
	echo "out:"
	cat $dir/$name/out 2>/dev/null || true
	echo "err:"
	grep -v '^	at ' $dir/$name/err 2>/dev/null || true
	echo "files:" $(ls $dir/$name)
done
echo "== log"
grep -hE 'Java|level=WARN|level=ERROR|cannot go on' $dir/log/StarterLog* 2>/dev/null | tail -80 || true
