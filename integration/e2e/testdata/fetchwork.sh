# A personal execution point without a schedd, whose startd fetches work itself (FETCH_WORK hooks).
# Arguments: path of the starter, port, "root" if the daemons are root's. For each job, after a line "== NAME", it prints what the
# hooks were told of it, its output, its event log, and what its starter exited with.
set -eu
starter=$1 port=$2 daemons=${3:-personal} user=personal
id $user >/dev/null 2>&1 || useradd -m -u 20007 $user
dir=/home/$user/fetch.$port
rm -rf $dir
mkdir -p $dir/log $dir/spool $dir/execute $dir/lock $dir/run $dir/hooks $dir/offered $dir/told
configure >$dir/config
cat >>$dir/config <<C
DAEMON_LIST = MASTER SHARED_PORT COLLECTOR STARTD
STARTER = $starter
POD_STARTER_BACKEND = local
STARTER_DEBUG = D_FULLDEBUG
STARTD_DEBUG = D_FULLDEBUG
RUN_BENCHMARKS = False
STARTER_INITIAL_UPDATE_INTERVAL = 1
STARTER_UPDATE_INTERVAL = 600
STARTER_ALLOW_JOB_PRE_AND_POST_CMD = True
NUM_CPUS = 1
NUM_SLOTS = 1
NUM_SLOTS_TYPE_1 = 1
SLOT_TYPE_1_PARTITIONABLE = False
STARTD_JOB_HOOK_KEYWORD = FETCH
FetchWorkDelay = 1
POLLING_INTERVAL = 1
UPDATE_INTERVAL = 2
WANT_SUSPEND = True
SUSPEND = TARGET.WantSuspend is true && (TotalJobSuspendTime ?: 0) < 1 && (time() - EnteredCurrentActivity) > 1
CONTINUE = (time() - EnteredCurrentActivity) > 2
STARTD_JOB_ATTRS = \$(STARTD_JOB_ATTRS) WantSuspend
FETCH_HOOK_FETCH_WORK = $dir/hooks/fetch
FETCH_HOOK_REPLY_FETCH = $dir/hooks/reply
FETCH_HOOK_EVICT_CLAIM = $dir/hooks/evict
FETCH_HOOK_PREPARE_JOB = $dir/hooks/prepare
FETCH_HOOK_UPDATE_JOB_INFO = $dir/hooks/update
FETCH_HOOK_JOB_EXIT = $dir/hooks/exit
FROMCONFIG_Arguments = exit configured
FROMCONFIG_output = out
ALSO_universe = vanilla
ALSO_executable = $dir/job.sh
ALSO_initialdir = $dir/also
ALSO_input = in
ALSO_output = out
ALSO_error = err
ALSO_arguments = exit also
ALSO_arguments2 = exit also
ALSO_environment = A=b
ALSO_environment2 = A=b
ALSO_jar_files = a.jar
ALSO_kill_sig = 10
ALSO_starter_wait_for_debug = 0
ALSO_log = log
ALSO_log_use_xml = True
ALSO_cluster = 7
ALSO_proc = 2
NAMED_JobUniverse = 5
NAMED_Cmd = "$dir/job.sh"
NAMED_Iwd = $dir/named
NAMED_Owner = $user
NAMED_In = in
NAMED_Out = out
NAMED_Err = err
NAMED_Args = exit named
NAMED_Arguments = exit named
NAMED_Env = A=b
NAMED_Environment = A=b
NAMED_JarFiles = a.jar
NAMED_KillSig = 10
NAMED_StarterWaitForDebug = 0
NAMED_StarterUserLog = log
NAMED_StarterUserLogUseXML = False
NAMED_ClusterId = 7
NAMED_ProcId = 2
C
[ $daemons != root ] || rootdaemons
cat >$dir/hooks/fetch <<H
#!/bin/sh
cat >/dev/null
[ -e $dir/offered/next ] || exit 0
mv $dir/offered/next $dir/offered/now && cat $dir/offered/now
H
cat >$dir/hooks/reply <<H
#!/bin/sh
echo "\$1" >$dir/told/reply
cat >/dev/null
H
cat >$dir/hooks/evict <<H
#!/bin/sh
echo evicted >$dir/told/evict
cat >/dev/null
H
cat >$dir/hooks/prepare <<H
#!/bin/sh
cat >$dir/told/prepare
id -u >$dir/told/prepare.user
pwd >$dir/told/prepare.directory
grep -q '^PrepareFails' $dir/told/prepare && { echo 'HookStatusMessage = "not here"'; exit 7; }
echo 'Prepared = "by the hook"'
grep -q '^PrepareArguments' $dir/told/prepare && echo 'Arguments = "exit prepared"'
exit 0
H
cat >$dir/hooks/update <<H
#!/bin/sh
cat >>$dir/told/update
H
cat >$dir/hooks/exit <<H
#!/bin/sh
echo "\$1" >$dir/told/exit.reason
cat >$dir/told/exit
H
printf '#!/bin/sh\necho "pre $*" >>scripts\n' >$dir/pre.sh
printf '#!/bin/sh\necho "post $*, $_CONDOR_JOB_EXIT_CODE_" >>scripts; exit 3\n' >$dir/post.sh
cat >$dir/job.sh <<'J'
#!/bin/sh
how=$1
shift
case $how in
exit) echo "arguments: $*"; echo "in $(pwd), umask $(umask)"; cat; echo "an error" >&2; exit 5 ;;
env) env | sort; grep -E '^(Cmd|Iwd|OrigCmd|OrigIwd|JobUniverse|Prepared|HookKeyword|ClusterId|ProcId) ' "$_CONDOR_JOB_AD" | sort; exit 0 ;;
signal) kill -"$1" $$ ;;
run) trap 'echo "got TERM"; exit 9' TERM; trap 'echo "got INT"; exit 8' INT
	setsid sh -c 'trap "" TERM; sleep 1000' >/dev/null 2>&1 &
	echo began; while :; do sleep 0.1; done ;;
count) i=0; while [ $i -lt ${1:-60} ]; do sleep 0.1; i=$((i + 1)); done; echo counted; exit 0 ;;
leave) setsid sh -c 'trap "" TERM; sleep 1000' >/dev/null 2>&1 & exit 0 ;;
esac
J
printf '#!/no/such/interpreter\n' >$dir/badinterpreter
cp $dir/job.sh $dir/plain
chmod 755 $dir/hooks/* $dir/*.sh $dir/badinterpreter
chmod 644 $dir/plain
chown -R $user: $dir
chmod 1777 $dir/told $dir/offered
if [ $daemons = root ]; then as() { sh -c "cd $dir; export CONDOR_CONFIG=$dir/config; $*"; }
else as() { su $user -s /bin/sh -c "cd $dir; export CONDOR_CONFIG=$dir/config; $*"; }; fi
as condor_master
trap 'as condor_off -master -fast >/dev/null 2>&1' EXIT
wait_for() { # a command that succeeds
	for try in $(seq 200); do
		"$@" && return
		sleep 0.1
	done
	return 1
}
exits() { grep -cE '[Ss]tarter pid [0-9]+ (exited|died)' $dir/log/StartLog || true; }
ended() { [ "$(exits)" -gt $before ]; }
began() { grep -qs began $dir/$name/out; }
asked() { [ -e $dir/told/reply ] && [ ! -e $dir/offered/next ]; }
wait_for grep -qs slot1 $dir/log/StartLog
# job runs one whose ad has these lines as well, or in place of what it has otherwise; NAME = - takes one away. how says when it is ended from outside.
job() { # NAME, how, lines of the ad
	name=$1 how=$2
	shift 2
	case " ${only:-$name} " in *" $name "*) ;; *) return 0 ;; esac
	before=$(exits)
	rm -f $dir/told/*
	mkdir -p $dir/$name
	echo "input of $name" >$dir/$name/in
	chown -R $user: $dir/$name
	[ $daemons != root ] || chmod 1777 $dir/$name
	{
		printf '%s\n' 'ClusterId = 12' 'ProcId = 3' 'JobUniverse = 5' "Cmd = \"$dir/job.sh\"" 'Arguments = "exit one two"' "Iwd = \"$dir/$name\"" 'Out = "out"' 'Err = "err"' 'In = "in"' \
			'StarterUserLog = "log"' "Owner = \"$user\"" "User = \"$user@personal.invalid\"" 'JobLeaseDuration = 500000' 'IsFetched = TRUE'
		for line; do printf '%s\n' "$line"; done
	} | awk '{ sub(/=-$/, " = -"); line[$1] = $0 } END { for (name in line) if (line[name] !~ / = -$/) print line[name] }' >$dir/offered/writing
	mv $dir/offered/writing $dir/offered/next
	wait_for asked || true
	case $how in
	vacate) wait_for began && as condor_vacate >/dev/null 2>&1 || true ;;
	vacatefast) wait_for began && as condor_vacate -fast >/dev/null 2>&1 || true ;;
	esac
	wait_for ended || true
	echo "== $name"
	for part in reply evict prepare.user prepare.directory prepare update exit.reason exit; do
		[ ! -e $dir/told/$part ] || { echo "-- $part"; cat $dir/told/$part; }
	done
	for part in out err log scripts; do
		[ ! -e $dir/$name/$part ] || { echo "-- $part"; cat $dir/$name/$part; }
	done
	echo "-- starter"
	grep -E '[Ss]tarter pid [0-9]+ (exited|died)' $dir/log/StartLog | tail -n +$((before + 1)) | sed 's/.*[Ss]tarter pid [0-9]*//'
	echo "-- left"
	pgrep -u $user -f 'sleep 1000' | wc -l
	ls $dir/execute | wc -l
}
job exit none
job env none 'Arguments = "env"' 'Environment = "A=b C='"'d e'"'"'
job killed none 'Arguments = "signal KILL"'
job terminated none 'Arguments = "signal TERM"'
job local none 'JobUniverse = 12'
job nouniverse none 'JobUniverse = -'
job noid none 'ClusterId = -' 'ProcId = -' 'Arguments = "env"'
job noiwd none 'Iwd = -' 'StarterUserLog = -' 'In = -' 'Arguments = "env"' "Out = \"$dir/noiwd/out\""
job relativeiwd none 'Iwd = "."' 'StarterUserLog = -' 'In = -' 'Arguments = "exit"' "Out = \"$dir/relativeiwd/out\""
job relative none 'Cmd = "run.sh"'
job nofiles none 'In = -' 'Out = -' 'Err = -'
job xml none 'StarterUserLogUseXML = TRUE'
job userlog none 'UserLog = "log"' 'StarterUserLog = -'
job prepared none 'PrepareArguments = TRUE'
job preparefails none 'PrepareFails = TRUE'
job missing none "Cmd = \"$dir/missing.sh\""
job notexecutable none "Cmd = \"$dir/plain\""
job nointerpreter none "Cmd = \"$dir/badinterpreter\""
job badoutput none 'Out = "below/out"'
job badinput none 'In = "none"'
job nodirectory none "Iwd = \"$dir/nodirectory/below\"" 'StarterUserLog = -'
job badlog none 'StarterUserLog = "below/log"'
job badarguments none 'Arguments = "'"'"'"'
job scheduler none 'JobUniverse = 7'
job grid none 'JobUniverse = 9'
job vm none 'JobUniverse = 13'
job transfers none 'ShouldTransferFiles = "YES"' 'TransferInput = "other"'
job scripts none "PreCmd = \"$dir/pre.sh\"" "PostCmd = \"$dir/post.sh\""
job suspended none 'Arguments = "count 50"' 'WantSuspend = TRUE'
job vacated vacate 'Arguments = "run"'
job vacatedint vacate 'Arguments = "run"' 'KillSig = "SIGINT"'
job vacatedfast vacatefast 'Arguments = "run"'
job left none 'Arguments = "leave"'
job nocmd none 'Cmd = -'
job keyword none 'JobKeyword = "FROMCONFIG"' 'Arguments = -' 'Out = -'
bare="ClusterId ProcId JobUniverse Cmd Arguments Iwd Out Err In StarterUserLog Owner"
job also none $(printf '%s=- ' $bare) 'JobKeyword = "ALSO"'
job named none $(printf '%s=- ' $bare) 'JobKeyword = "NAMED"'
job nokeyword none 'JobKeyword = "NOWHERE"' 'JobUniverse = -'
echo "== logs"
tail -n 400 $dir/log/StarterLog* $dir/log/StartLog
