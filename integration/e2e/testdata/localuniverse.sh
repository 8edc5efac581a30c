# A personal pool whose schedd runs jobs of the local universe by the starter in STARTER_LOCAL.
# Arguments: path of the starter, port, "root" if the daemons are root's or the user's name, and lines of configuration. For each job, after a
# line "== NAME", it prints the job's event log, its output, what its starters ended with, and its last ad.
set -eu
starter=$1 port=$2 daemons=${3:-personal} lines=${4:-} user=personal
id $user >/dev/null 2>&1 || useradd -m -u 20007 $user
dir=/home/$user/local.$port
rm -rf $dir
mkdir -p $dir/log $dir/spool $dir/execute $dir/lock $dir/run
configure | grep -v role:Execute >$dir/config
cat >>$dir/config <<C
DAEMON_LIST = MASTER SHARED_PORT COLLECTOR SCHEDD
STARTER_LOCAL = $starter
STARTER_DEBUG = D_FULLDEBUG
STARTER_INITIAL_UPDATE_INTERVAL = 1
STARTER_UPDATE_INTERVAL = 2
# The schedd has policies evaluated as well; here only the starter is to.
PERIODIC_EXPR_INTERVAL = 3600
STARTER.PERIODIC_EXPR_INTERVAL = 2
JOB_START_DELAY = 0
ENABLE_USERLOG_LOCKING = False
EVENT_LOG = $dir/log/EventLog
MAIL = /bin/true
STARTER_ALLOW_JOB_PRE_AND_POST_CMD = True
SYSTEM_PERIODIC_HOLD = WantSystemHold is true
SYSTEM_PERIODIC_HOLD_REASON = "by the site"
SYSTEM_PERIODIC_HOLD_SUBCODE = 17
SYSTEM_PERIODIC_HOLD_NAMES = Site
SYSTEM_PERIODIC_HOLD_Site = WantSiteHold is true
SYSTEM_PERIODIC_HOLD_Site_REASON = "by a name"
SYSTEM_PERIODIC_HOLD_Site_SUBCODE = 18
SYSTEM_PERIODIC_REMOVE = WantRemove is true
SYSTEM_PERIODIC_REMOVE_REASON = "removed by the site"
SYSTEM_PERIODIC_REMOVE_SUBCODE = 19
SYSTEM_PERIODIC_REMOVE_NAMES = Site
SYSTEM_PERIODIC_REMOVE_Site = WantSiteRemove is true
SYSTEM_PERIODIC_REMOVE_Site_REASON = "removed by a name"
SYSTEM_PERIODIC_REMOVE_Site_SUBCODE = 20
DEFAULT_USERLOG_FORMAT_OPTIONS = LEGACY
EVENT_LOG_FORMAT_OPTIONS = SUB_SECOND
EVENT_LOG_JOB_AD_INFORMATION_ATTRS = Cmd
$lines
C
if [ $daemons = root ]; then
	echo "CONDOR_IDS = 20008.20008" >>$dir/config
	echo "EVENT_LOG_USE_XML = True" >>$dir/config
	id daemons >/dev/null 2>&1 || useradd -m -u 20008 daemons
	chmod 755 /home/$user
fi
cat >$dir/job.sh <<'J'
#!/bin/sh
how=$1
shift
case $how in
exit) echo "arguments: $*"; echo "in $(pwd), user $(id -u):$(id -g), groups $(id -G), umask $(umask)"; cat; echo "an error" >&2; exit 5 ;;
env) env | sort; ls -A "$_CONDOR_SCRATCH_DIR"; cut -d= -f1 "$_CONDOR_JOB_AD" | sort | tr '\n' ' '; exit 0 ;;
limits) ulimit -a; nice; cat /proc/self/oom_score_adj; exit 0 ;;
signal) kill -"$1" $$ ;;
once) [ -e "$1" ] && exit 0; touch "$1"; exit 1 ;;
run) # until it is told to end
	trap 'echo "got $1"; exit 9' TERM; trap 'echo "got INT"; exit 8' INT; trap 'echo "got USR1"; exit 7' USR1
	setsid sh -c 'trap "" TERM; sleep 1000' >/dev/null 2>&1 &
	echo began >>"$1"
	while :; do sleep 0.1; done ;;
leave) setsid sh -c 'trap "" TERM; sleep 1000' >/dev/null 2>&1 & exit 0 ;;
burn) i=0; while [ $i -lt 2000000 ]; do i=$((i + 1)); done; exit 0 ;;
twice) if [ -e "$1.second" ]; then exit 0; fi; echo began >>"$1"; [ "$(wc -l <"$1")" -ge 2 ] && exit 0; while :; do sleep 0.1; done ;;
esac
J
printf '#!/no/such/interpreter\n' >$dir/badinterpreter
chmod 755 $dir/job.sh $dir/badinterpreter
names=
submitfile() { # NAME, lines of the submit file
	name=$1
	names="$names $name"
	shift
	mkdir -p $dir/$name
	echo "input of $name" >$dir/$name/in
	{
		printf '%s\n' "universe = local" "executable = $dir/job.sh" "output = out" "error = err" "log = log" "initialdir = $dir/$name" "notification = never" "$@" queue
	} >$dir/$name.sub
}
began=$dir/\$\(Cluster\).began
submitfile exit "arguments = \"exit one 'two words'\"" "input = in"
submitfile env "arguments = env" "environment = \"A=b 'C=d e'\"" "getenv = False"
submitfile limits "arguments = limits" "coresize = 0"
submitfile killed "arguments = signal KILL"
submitfile terminated "arguments = signal TERM"
submitfile nofiles "arguments = exit" "output =" "error =" "input ="
submitfile same "arguments = exit" "error = out" "input = in"
submitfile append "arguments = exit" "input = in"
echo "from before" >$dir/append/out
submitfile iwd "arguments = exit" "input = in" "initialdir = $dir/iwd/below"
mkdir -p $dir/iwd/below && echo input >$dir/iwd/below/in
submitfile usage "arguments = burn"
submitfile left "arguments = leave"
submitfile exithold "arguments = exit" "on_exit_hold = ExitCode == 5" "on_exit_hold_reason = strcat(\"it was \", ExitCode)" "on_exit_hold_subcode = 42"
submitfile plainhold "arguments = exit" "on_exit_hold = ExitCode == 5"
submitfile requeued "arguments = once $dir/requeued/mark" "on_exit_remove = ExitCode =?= 0"
submitfile sigrequeued "executable = $dir/sig.sh" "arguments = once" "on_exit_remove = ExitBySignal == False"
printf '#!/bin/sh\n[ -e mark ] && exit 0\ntouch mark\nkill -SEGV $$\n' >$dir/sig.sh
submitfile periodichold "arguments = run began" "periodic_hold = JobStatus == 2 && NumJobStarts >= 0" "periodic_hold_reason = \"because\"" "periodic_hold_subcode = 7"
submitfile systemhold "arguments = run began" "+WantSystemHold = JobStatus == 2"
submitfile periodicremove "arguments = run began" "periodic_remove = JobStatus == 2"
submitfile sitehold "arguments = run began" "+WantSiteHold = JobStatus == 2"
submitfile siteremove "arguments = run began" "+WantSiteRemove = JobStatus == 2"
submitfile removebysite "arguments = run began" "+WantRemove = JobStatus == 2"
submitfile walltime "arguments = run began" "periodic_hold = RemoteWallClockTime > 2" "periodic_hold_subcode = 21"
submitfile vacatedbyself "arguments = twice began" "periodic_vacate = JobStatus == 2 && NumJobStarts is 0"
submitfile duration "arguments = run began" "allowed_job_duration = 1"
submitfile executing "arguments = run began" "hold = True" "allowed_execute_duration = 1"
submitfile timer "arguments = run began" "+TimerRemove = $(($(date +%s) + 6))"
submitfile removed "arguments = run began"
submitfile removedby "arguments = run began" "remove_kill_sig = SIGUSR1"
submitfile heldby "arguments = run began" "kill_sig = SIGINT"
submitfile released "arguments = twice began"
submitfile vacated "arguments = twice began" "kill_sig = SIGTERM"
submitfile vacatedfast "arguments = twice began"
submitfile missing "executable = $dir/gone.sh" "hold = True"
cp $dir/job.sh $dir/gone.sh
submitfile notexecutable "executable = $dir/plain.sh" "hold = True"
cp $dir/job.sh $dir/plain.sh
submitfile nointerpreter "executable = $dir/badinterpreter"
submitfile badoutput "arguments = exit" "hold = True" "output = below/out" "input = in"
mkdir $dir/badoutput/below
submitfile baderror "arguments = exit" "hold = True" "error = below/err" "input = in"
mkdir $dir/baderror/below
submitfile badinput "arguments = exit" "hold = True" "input = in"
submitfile nodirectory "arguments = exit" "hold = True" "log = $dir/nodirectory/log" "initialdir = $dir/nodirectory/below"
mkdir -p $dir/nodirectory/below
submitfile badlog "arguments = exit" "hold = True" "log = below/log" "input = in"
mkdir $dir/badlog/below
submitfile missed "arguments = exit" "hold = True"
submitfile deferred "arguments = exit" "deferral_time = (CurrentTime + 3)" "input = in"
submitfile xml "arguments = exit" "log_xml = True" "input = in"
submitfile xmlheld "arguments = exit" "log_xml = True" "on_exit_hold = True" "input = in"
submitfile information "arguments = exit" "job_ad_information_attrs = Cmd, ExitCode, Undefined" "input = in"
submitfile before "arguments = exit" "+PreCmd = \"$dir/before/pre.sh\"" "+PreArguments = \"one\"" "+PostCmd = \"$dir/before/post.sh\"" "input = in"
printf '#!/bin/sh\necho "pre $*" >>scripts\n' >$dir/before/pre.sh
printf '#!/bin/sh\necho "post $*, $_CONDOR_JOB_EXIT_CODE_" >>scripts; exit 3\n' >$dir/before/post.sh
submitfile badarguments "arguments = exit" "hold = True" "input = in"
submitfile visa "arguments = exit" "+WantExecutionVisaFromStarter = True" "input = in"
submitfile inscratch "executable = /bin/sh" "arguments = \"-c 'echo \$_CONDOR_SCRATCH_DIR; touch \$_CONDOR_SCRATCH_DIR/x'\""
chmod 755 $dir/before/*.sh $dir/*.sh
mkdir $dir/spooled
names="$names spooled"
printf '%s\n' "universe = local" "executable = $dir/job.sh" "arguments = exit" "output = out" "error = err" "log = log" "input = in" "initialdir = $dir/spooled" "notification = never" queue >$dir/spooled.sub
echo "input of spooled" >$dir/spooled/in
[ $# -lt 5 ] || names=$5
chown -R $user: $dir
[ $daemons = root ] && chown -R daemons: $dir/log $dir/spool $dir/execute $dir/lock $dir/run
as() { su $user -s /bin/sh -c "cd $dir; export CONDOR_CONFIG=$dir/config; $*"; }
begin() { su $daemons -s /bin/sh -c "cd $dir; export CONDOR_CONFIG=$dir/config; $*"; }
begin condor_master
trap 'begin condor_off -master -fast >/dev/null 2>&1; for try in $(seq 40); do [ -z "$(pgrep -f "^condor_.* *-f.*$dir" || true)" ] && break; sleep 0.25; done' EXIT
for try in $(seq 120); do
	as condor_q >/dev/null 2>&1 && break
	sleep 0.5
done
id() { cut -d' ' -f1 $dir/$1/id; }
for name in $names; do
	more=
	[ $name = spooled ] && more=-spool
	as "condor_submit -terse -file $dir/$name.sub $more" >$dir/$name/id 2>$dir/$name/submit.err || cat $dir/$name/submit.err
done
has() { case " $names " in *" $1 "*) return 0 ;; *) return 1 ;; esac }
has missing && rm $dir/gone.sh
has notexecutable && chmod -x $dir/plain.sh
has badoutput && rmdir $dir/badoutput/below
has baderror && rmdir $dir/baderror/below
has badinput && rm $dir/badinput/in
has nodirectory && rm -r $dir/nodirectory/below
has badlog && rm -r $dir/badlog/below && touch $dir/badlog/below
has badarguments && as "condor_qedit $(id badarguments) Arguments '\"one '\"'\"'two\"'" >/dev/null
has missed && as "condor_qedit $(id missed) DeferralTime 1" >/dev/null # submitted with it, it would wait for a match
# As if a shadow had said when the job began, which has to be after its starter did.
has executing && as "condor_qedit $(id executing) JobCurrentStartExecutingDate $(($(date +%s) + 20))" >/dev/null
for name in executing missed missing notexecutable badoutput baderror badinput nodirectory badlog badarguments; do
	has $name && as condor_release "$(id $name)" >/dev/null
done
runs() { # NAME, how often it has begun
	has $1 || return 1
	for try in $(seq 100); do
		[ "$(grep -c began $dir/$1/began 2>/dev/null)" = ${2:-1} ] && return 0
		sleep 0.2
	done
	echo "$1 has not begun"
}
runs removed && as condor_rm "$(id removed)" >/dev/null
runs removedby && as condor_rm "$(id removedby)" >/dev/null
runs heldby && as condor_hold "$(id heldby)" >/dev/null
if runs released; then
	as condor_hold "$(id released)" >/dev/null
	for try in $(seq 60); do
		grep -q '^012' $dir/released/log && [ ! -e /proc/$(grep -l "^" /dev/null || echo none) ] && break
		sleep 0.2
	done
	sleep 1
	as condor_release "$(id released)" >/dev/null
fi
runs vacated && as condor_vacate_job "$(id vacated)" >/dev/null
runs vacatedfast && as condor_vacate_job -fast "$(id vacatedfast)" >/dev/null
has spooled && { for try in $(seq 60); do [ "$(as condor_q "$(id spooled)" -af JobStatus)" = 4 ] && break; sleep 0.3; done; as condor_transfer_data "$(id spooled)" >/dev/null || true; }
for name in $names; do
	log=$dir/$name/log
	tries=60
	[ $name != executing ] || tries=160
	for try in $(seq $tries); do # until it has ended or is held
		case $(as "condor_q $(id $name) -af JobStatus" 2>/dev/null) in '' | 4 | 5) break ;; esac
		sleep 0.25
	done
done
sleep 1
for name in $names; do
	job=$(id $name)
	echo "== $name"
	echo "-- log"
	cat $dir/$name/log 2>/dev/null || true
	for file in out err scripts; do
		echo "-- $file"
		cat $dir/$name/$file 2>/dev/null || true
	done
	[ $name = iwd ] && cat $dir/iwd/below/out
	echo "-- files"
	(cd $dir/$name && find . -type f | grep -v "^./id$" | sort | tr '\n' ' ')
	echo
	echo "-- starters"
	grep -o "Local starter pid [0-9]* for job $job exited.*" $dir/log/SchedLog | grep -o "exited.*" || true
	grep -o "starter pid [0-9]*.*for job $job.*died.*" $dir/log/SchedLog || true
	echo "-- ad"
	{ as condor_q $job -l 2>/dev/null; as condor_history $job -l -limit 1 2>/dev/null; } | sort -u | grep . || true
	[ $name = exit ] || continue
	echo "-- event log"
	awk -v text="($(printf %03d ${job%.*})." -v xml="<a n=\"Cluster\"><i>${job%.*}<" 'BEGIN { RS = "\\.\\.\\.\n|</c>\n" } index($0, text) || index($0, xml)' $dir/log/EventLog
done
echo "== event log"
grep -cE '^(001|004|005)' $dir/log/EventLog || true
echo "== processes"
for process in /proc/[0-9]*; do
	tr '\0' '\n' <$process/environ 2>/dev/null | grep -q "^_CONDOR_SCRATCH_DIR=$dir/" && tr '\0' ' ' <$process/cmdline && echo
done
ls $dir/spool/local_univ_execute
echo "== owner of the log"
stat -c %U $dir/log/StarterLog* | sort -u
echo "== starterlog"
cat $dir/log/StarterLog* 2>/dev/null | tail -${TAIL:-400}
echo "== schedlog"
tail -n 5 $dir/log/SchedLog
