# A personal pool whose starter runs jobs in images by the machine's own Apptainer, made in a container that has one.
# Arguments: path of the starter, port, and "root" if the daemons are root's. Prints for each job, after a line "== NAME", its status, its
# hold, its exit code and its output; after "== classad" what the starter can do; after "== called" the options with which the runtime was
# called; after "tried-NAME" what the starter finds out about the runtime with other knobs. "otherwise-", "launcher-" and "amd-" stand before
# the same with other knobs.
set -eu
starter=$1 port=$2 daemons=${3:-personal} user=personal
id $user >/dev/null 2>&1 || useradd -m -u 20007 $user
dir=/home/$user/condor.$port
rm -rf $dir
mkdir -p $dir/log $dir/spool $dir/execute $dir/lock $dir/run

# An image that is a directory, and the same as a file.
tree=/home/$user/tree
if [ ! -e $tree ]; then
	mkdir -p $tree/bin $tree/etc $tree/tmp $tree/proc $tree/dev $tree/sys $tree/var/tmp $tree/opt
	for name in sh env ls cat pwd id sort touch sleep; do
		program=/usr/bin/$name
		cp -L $program $tree/bin/$name
		ldd $program | grep -o '/[^ ]*' | sort -u | while read -r library; do
			mkdir -p $tree$(dirname $library)
			cp -nL $library $tree$library
		done
	done
	: >$tree/etc/hosts
	: >$tree/etc/resolv.conf
	echo root:x:0:0::/:/bin/sh >$tree/etc/passwd
	echo root:x:0: >$tree/etc/group
	chmod -R a+rX $tree
	cp -a $tree $tree.run
	mkdir $tree.run/.singularity.d
	printf '#!/bin/sh\necho "the image itself: $*"\n' >$tree.run/.singularity.d/runscript
	chmod 755 $tree.run/.singularity.d/runscript
	chown -R $user: $tree $tree.run /home/$user
	su $user -s /bin/sh -c "cd /home/$user && rm -rf image.sif tree.built; apptainer -s build image.sif $tree.run && apptainer -s build --sandbox tree.built $tree.run"
fi
# HTCondor's own image, which distributions may lack.
sandbox=/home/$user/test_sandbox
[ -e $sandbox ] || { cp -a $tree $sandbox && printf '#!/bin/sh\nexit 37\n' >$sandbox/exit_37 && chmod 755 $sandbox/exit_37; }
# One whose program takes a while.
slow=/home/$user/slow_sandbox
[ -e $slow ] || { cp -a $sandbox $slow && printf '#!/bin/sh\n/bin/sleep 5\nexit 37\n' >$slow/exit_37; }

configure >$dir/config
# HTCondor's directory of programs, with a launcher that tells of it, and with the file by which .sif files are tried.
libexec=$dir/libexec
mkdir $libexec
ln -s /usr/libexec/condor/* $libexec
rm -f $libexec/condor_container_launcher.sh $libexec/exit_37.sif
cat >$libexec/condor_container_launcher.sh <<'L'
#!/bin/sh
echo "launched: $*"
[ -n "$NOT_SAID" ] || : >"$_CONDOR_SCRATCH_DIR/.condor_container_launched"
exec "$@"
L
chmod 755 $libexec/condor_container_launcher.sh
cat >>$dir/config <<C
NUM_CPUS = 4
NUM_SLOTS = 4
MEMORY = 2048
STARTER = $starter
STARTER_DEBUG = D_FULLDEBUG
POD_STARTER_BACKEND = local
SINGULARITY = $dir/apptainer
SINGULARITY_VERBOSITY = --silent
SINGULARITY_EXTRA_ARGUMENTS = --env SITE_EXTRA=of-the-site
SINGULARITY_ALLOWED_JOB_ENV_VARS = APPTAINER_SITE_ALLOWS
SINGULARITY_TEST_SANDBOX = $sandbox
SINGULARITY_BIND_EXPR = ifThenElse(TARGET.WantBadBind is true, "/usr:relative", "/etc/apt:/shared /no/such/directory")
SINGULARITY_USE_LAUNCHER = False
# HTCondor's .sif file may be missing, without which no startd knows that .sif files run.
HasSIF = True
HasSandboxImage = True
STARTD_ATTRS = \$(STARTD_ATTRS) HasSIF HasSandboxImage
POD_STARTER_PAYLOAD_UID = 20101
C
[ $daemons != root ] || rootdaemons
# The runtime, which notes its options and what it is told by variables.
cat >$dir/apptainer <<A
#!/bin/sh
{
	for option; do case \$option in -*) printf '%s\n' "\${option%%=*}" ;; esac; done
	echo "allowed: \${APPTAINER_SITE_ALLOWS-none}, another: \${APPTAINER_SITE_FORBIDS-none}"
} >>$dir/called
exec /usr/bin/apptainer "\$@"
A
chmod 755 $dir/apptainer
: >$dir/called
cat >$dir/job.sh <<'J'
#!/bin/sh
echo "arguments: $*"
echo "in: $(pwd), home $HOME, user $(id -u)"
echo "image: "$(ls -A /)
cat input
echo "shared: "$(ls -A /shared)
echo "bound: $(ls /bound 2>&1)"
touch /opt/written 2>/dev/null && echo "opt can be written"
echo made >result
env | sort
exit 5
J
echo "input came" >$dir/input
echo "this is no image" >$dir/bad.sif
cp /home/$user/image.sif $dir/image.sif
cp -a $tree.built $dir/tree
cp -a $tree $dir/raw
mkdir $dir/empty
cat >$dir/plain.sub <<J
universe = container
executable = $dir/job.sh
arguments = "one 'two words'"
environment = "A=b 'C=d e' APPTAINERENV_INSIDE=yes APPTAINER_BIND=/etc:/bound SINGULARITY_BINDPATH=/etc:/bound APPTAINER_SITE_ALLOWS=yes APPTAINER_SITE_FORBIDS=yes HOME=/nowhere"
transfer_input_files = $dir/input
should_transfer_files = YES
when_to_transfer_output = ON_EXIT
log = $dir/all.log
initialdir = $dir
request_memory = 64
J
submitfile() { # NAME, lines of the submit file
	name=$1
	shift
	mkdir -p $dir/$name
	{
		cat $dir/plain.sub
		printf '%s\n' "output = $dir/$name/out" "error = $dir/$name/err" "log = $dir/$name/log" "transfer_output_remaps = \"result=$dir/$name/result\"" "$@" queue
	} >$dir/$name.sub
}
submitfile file "container_image = $dir/image.sif"
submitfile directory "container_image = $dir/tree"
submitfile elsewhere "container_image = $tree.built" "transfer_container = False"
submitfile target "container_image = $dir/image.sif" "container_target_dir = /srv"
submitfile scratch "container_image = $dir/image.sif" "mount_under_scratch = /opt,/var/opt"
submitfile itself "container_image = $dir/image.sif" "executable =" "transfer_executable = False"
submitfile ofimage "container_image = $dir/image.sif" "executable = /bin/pwd" "transfer_executable = False" 'arguments = "-P"'
submitfile noprogram "container_image = $dir/image.sif" "executable = /bin/none" "transfer_executable = False"
# Without the scripts of an image that Apptainer has built, its test does not run.
submitfile raw "container_image = $dir/raw"
submitfile pull "container_image = docker://127.0.0.1:1/none"
submitfile badfile "container_image = $dir/bad.sif"
submitfile baddirectory "container_image = $dir/empty"
submitfile nowhere "container_image = /no/such/image.sif" "transfer_container = False"
submitfile nofiles "container_image = image.sif" "should_transfer_files = NO" "when_to_transfer_output =" "transfer_output_remaps =" "transfer_input_files =" "transfer_container = False"
submitfile nofilestarget "container_image = $dir/image.sif" "should_transfer_files = NO" "container_target_dir = /srv" "when_to_transfer_output =" "transfer_output_remaps =" "transfer_input_files =" "transfer_container = False"
submitfile visited "container_image = $dir/image.sif" "container_target_dir = /srv" "executable = /bin/sleep" "transfer_executable = False" "arguments = 120"
submitfile badbind "container_image = $dir/image.sif" "+WantBadBind = True"
submitfile unlaunched "container_image = $dir/image.sif" 'environment = "NOT_SAID=1"'
chmod 755 $dir/job.sh
chown -R $user: $dir
chmod 666 $dir/called
as() { su $user -s /bin/sh -c "cd $dir; export CONDOR_CONFIG=$dir/config; $*"; }
begin() { su $daemons -s /bin/sh -c "cd $dir; export CONDOR_CONFIG=$dir/config; $*"; }
as "apptainer -s build $libexec/exit_37.sif $sandbox"
tried() { # NAME, and knobs: what the starter says then
	: >$dir/called
	echo "== tried-$1"
	shift
	for knob; do
		set -- "$@" "_CONDOR_$knob"
		shift
	done
	begin "env $* $starter -classad" 2>/dev/null | grep -E '^Has(Singularity|Container|SandboxImage|SIF|PidNamespaces) = ' | sed 's/ = True$/ = true/; s/ = False$/ = false/' | sort
}
isolated() { grep -xE -e '-C|--contain' $dir/called | sort -u; } # whether the runtime was called with a PID namespace, or without
tried files
tried nowhere SINGULARITY_TEST_SANDBOX=/no/such/directory
tried impatient SINGULARITY_TEST_SANDBOX=$slow SINGULARITY_TEST_SANDBOX_TIMEOUT=2
tried patient SINGULARITY_TEST_SANDBOX=$slow SINGULARITY_TEST_SANDBOX_TIMEOUT=60
tried sif LIBEXEC=$libexec
tried pids SINGULARITY_USE_PID_NAMESPACES=True
isolated
tried nopids SINGULARITY_USE_PID_NAMESPACES=False
isolated
: >$dir/called
begin condor_master
trap 'begin condor_off -master -fast >/dev/null 2>&1' EXIT
for try in $(seq 120); do
	[ "$(as condor_status -af HasSingularity 2>/dev/null | grep -c true)" = 4 ] && break
	sleep 0.5
done
echo "== classad"
as condor_status -limit 1 -af:ln HasSingularity HasContainer HasDockerURL HasSandboxImage HasPidNamespaces SingularityVersion SingularityUserNamespaces SingularityOfflineReason
as condor_submit -terse visited.sub >$dir/visited/id
jobs="file directory elsewhere target scratch itself ofimage noprogram raw badfile baddirectory nowhere pull badbind"
# Another user than the submitter would have no right to write beside the submit file.
[ $daemons = root ] || jobs="$jobs nofiles nofilestarget"
outcome() { # of jobs, each with a name for its section, and in front of it what is put
	for name in $2; do as condor_submit -terse $name.sub >$dir/$name/id; done
	for name in $2; do
		log=$dir/$name/log
		for try in $(seq 120); do # it has ended, is held, or was given back
			grep -qE '^(004|005|007|012|040 .*fail|022|024)' $log 2>/dev/null && break
			sleep 0.5
		done
		echo "== $1$name"
		grep -qE '^(005|012)' $log || sleep 2 # a hold comes after an eviction
		if grep -q '^005' $log; then
			grep -o 'Normal termination.*' $log | head -1
		elif grep -q '^012' $log; then
			echo "held:" $(grep -A2 '^012' $log | tail -n +2)
		else
			echo "given back"
		fi
		as condor_rm "$(cut -d' ' -f1 $dir/$name/id)" >/dev/null 2>&1 || true
		cat $dir/$name/out $dir/$name/err 2>/dev/null || true
		cat $dir/$name/result 2>/dev/null || echo "no result"
	done
}
outcome "" "$jobs"
echo "== visited"
id=$(cut -d' ' -f1 $dir/visited/id)
for try in $(seq 60); do
	grep -q '^001' $dir/visited/log && break
	sleep 0.5
done
cat >$dir/visit <<'V'
timeout 30 condor_ssh_to_job -ssh "ssh -o LogLevel=ERROR" JOB 'pwd; echo "image: "$(ls -A /); echo "$A, $HOME, $(id -u)"; for p in /proc/[0-9]*; do cat $p/comm; done; echo by hand >/srv/scratch/visit'
echo "status $?"
V
as "$(sed "s/JOB/$id/" $dir/visit)" 2>&1
as condor_rm $id >/dev/null 2>&1 || true
echo "== called"
sort -u $dir/called
# Starters read the configuration anew for each job.
cat >>$dir/config <<C
SINGULARITY_TARGET_DIR = /srv
SINGULARITY_USE_PID_NAMESPACES = False
SINGULARITY_IGNORE_MISSING_BIND_TARGET = True
SINGULARITY_RUN_TEST_BEFORE_JOB = False
SINGULARITY_BIND_EXPR = "/etc/apt:/bound"
C
again() { # what is put in front of the sections, and the jobs
	for name in $2; do
		[ ! -e $dir/$name/log ] || cp $dir/$name/log $dir/$name.log
		rm -f $dir/$name/log $dir/$name/out $dir/$name/err $dir/$name/result
	done
	: >$dir/called
	outcome $1 "$2"
	echo "== $1called"
	sort -u $dir/called
}
again otherwise- "file directory raw"
cp $dir/raw.log $dir/first.log
cat >>$dir/config <<C
LIBEXEC = $libexec
SINGULARITY_USE_LAUNCHER = True
C
again launcher- "file unlaunched"
cat >>$dir/config <<C
SINGULARITY_USE_LAUNCHER = False
SINGULARITY_ADD_ROCM_FLAG = True
STARTER_HIDE_GPU_DEVICES = False
AssignedGPUs = "GPU-0"
STARTD_ATTRS = \$(STARTD_ATTRS) AssignedGPUs
C
as condor_reconfig >/dev/null
for try in $(seq 120); do
	[ "$(as condor_status -af AssignedGPUs 2>/dev/null | grep -c GPU-0)" = 4 ] && break
	sleep 0.5
done
again amd- file
echo "== log"
for name in $dir/first.log $dir/badfile/log $dir/baddirectory/log; do grep -A3 -E '^(004|007|012|022|024)' $name || true; done
grep -h 'cannot go on' $dir/log/StarterLog.slot* 2>/dev/null | cut -c1-600 || true
grep -hE 'singularity|Singularity|apptainer|Apptainer|level=WARN' $dir/log/StarterLog.slot1* 2>/dev/null | head -80 || true
