# A personal pool without root, in which a daemon falls silent where another waits for it. Arguments: path of the starter, port.
# For each row it prints, after a line "== NAME": the job's events until it had ended, how many seconds passed until the silence was
# noticed, how often the job began, and what the starter's log says of it.
set -eu
starter=$1 port=$2 user=personal
exec 9>/tmp/users.lock
flock 9 # several of these scripts run at once
id $user >/dev/null 2>&1 || useradd -m -u 20007 $user
exec 9>&-
dir=/home/$user/silence.$port
rm -rf $dir
mkdir -p $dir/log $dir/spool $dir/execute $dir/lock $dir/run
configure >$dir/config
cat >>$dir/config <<C
NUM_CPUS = 1
NUM_SLOTS = 1
STARTER = $starter
POD_STARTER_BACKEND = local
STARTER_DEBUG = D_FULLDEBUG
STARTD_DEBUG = D_DAEMONCORE
JOB_START_DELAY = 0
SUBMIT_SKIP_FILECHECKS = True
SEC_DEFAULT_ENCRYPTION = NEVER
SEC_DEFAULT_INTEGRITY = NEVER
SEC_CREDENTIAL_DIRECTORY_OAUTH = $dir/tokens
include ifexist : $dir/knobs
C
cat >$dir/job.sh <<'J'
#!/bin/sh
echo ran >>$1/runs
[ -z "${_CONDOR_CREDS-}" ] || cat $_CONDOR_CREDS/*
while [ ! -e $1/go ]; do sleep 0.1; done
echo made >result
J
# A write lease makes whoever opens the file wait, and tells its holder, which notes that.
cat >$dir/hold.py <<'P'
import fcntl, os, signal, sys
signal.signal(signal.SIGIO, lambda *_: open(sys.argv[2], "w").close())
f = os.open(sys.argv[1], os.O_RDWR)
fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_WRLCK)
open(sys.argv[2] + ".held", "w").close()
while True: signal.pause()
P
chmod 755 $dir/job.sh
mkdir -p -m 700 $dir/tokens/$user
(umask 077 && echo "a token" >$dir/tokens/$user/site.use)
chown -R $user: $dir
as() { su $user -s /bin/sh -c "cd $dir; export CONDOR_CONFIG=$dir/config; $*"; }
as condor_master
trap 'as condor_off -master -fast >/dev/null 2>&1' EXIT
offered() { as condor_status -af HasFileTransfer 2>/dev/null | grep -q true; }
awaited 120 offered
awaited 60 as "condor_q >/dev/null 2>&1"
has() { grep -qE "$1" $at/log; }
logged() { grep -qE "$1" $dir/log/StarterLog.slot1*; }
# row NAME, lines of the submit file, lines of configuration that starters have.
row() {
	at=$dir/$1
	printf '%s\n' "$3" >$dir/knobs
	mkdir $at
	echo input >$at/input
	rm -f $dir/log/StarterLog.slot1*
	printf '%s\n' "executable = $dir/job.sh" "arguments = $at" "should_transfer_files = YES" "when_to_transfer_output = ON_EXIT" \
		"log = $at/log" "initialdir = $at" "output = out" "error = err" "request_memory = 100" "$2" queue >$at.sub
	chown -R $user: $at
	echo "== $1"
}
submitted() { id=$(as "condor_submit -terse $at.sub" | cut -d' ' -f1); }
# noticed waits for an event after the silence began.
noticed() {
	awaited 60 has "$1" || true
	echo "seconds: $(($(date +%s) - began))"
}
ended() { # and lines of the starter's log, in order
	awaited 60 has '^(005|009|012)' || true
	echo "events:" $(grep -oE '^0[0-9][0-9] ' $at/log | grep -v 006)
	grep -ohE "$1" $dir/log/StarterLog.slot1* | sort -u || true
	echo "runs: $(wc -l <$at/runs)"
}
# input: the shadow is silent when it should send a file.
input() {
	row $1 "transfer_input_files = input" "$2"
	touch $at/go
	as "python3 $dir/hold.py $at/input $at/asked & echo \$! >$at/holder"
	awaited 20 test -e $at/asked.held || true
	submitted
	awaited 60 test -e $at/asked || true
	began=$(date +%s)
	noticed '^(004|007|021|022|024|012)'
	kill $(cat $at/holder)
	ended 'no progress for [0-9]* seconds|Input File transfer stalled for [0-9]* seconds'
}
# output: the shadow is silent when it should acknowledge the output, since nobody reads the pipe into which it writes.
output() {
	row $1 "transfer_output_files = result" "$2"
	mkfifo $at/result
	chown $user: $at/result
	submitted
	awaited 60 test -s $at/runs || true
	touch $at/go
	awaited 60 has '^040.*Started transferring output' || true
	began=$(date +%s)
	noticed '^022'
	as condor_rm $id >/dev/null
	awaited 60 has '^009' || true
	as condor_rm -forcex $id >/dev/null 2>&1 || true
	ended 'Peer specified different timeout for GoAhead protocol: [0-9]+'
}
often="STARTER_XFER_LAST_ALIVE_DELAY = 1
STARTER_XFER_LAST_ALIVE_INTERVAL = 1"
input stall "$often
STARTER_FILE_XFER_STALL_TIMEOUT = 3"
input first "STARTER_XFER_LAST_ALIVE_DELAY = 8
STARTER_XFER_LAST_ALIVE_INTERVAL = 1
STARTER_FILE_XFER_STALL_TIMEOUT = 2"
input later "STARTER_XFER_LAST_ALIVE_DELAY = 1
STARTER_XFER_LAST_ALIVE_INTERVAL = 7
STARTER_FILE_XFER_STALL_TIMEOUT = 2"
output upload "STARTER_UPLOAD_TIMEOUT = 2"
output slow "STARTER_UPLOAD_TIMEOUT = 2
TIMEOUT_MULTIPLIER = 4"
output starters "STARTER_UPLOAD_TIMEOUT = 2
TIMEOUT_MULTIPLIER = 2
STARTER_TIMEOUT_MULTIPLIER = 5"
# A shadow that does not answer a call.
row call "should_transfer_files = NO
when_to_transfer_output =" "STARTER_UPLOAD_TIMEOUT = 3"
sed -i '/^when_to\|^should_transfer_files = YES/d' $at.sub
submitted
awaited 60 test -s $at/runs || true
shadow=$(pgrep -o -f "^condor_shadow $id .*127.0.0.1:$port")
kill -STOP $shadow
touch $at/go
began=$(date +%s)
awaited 60 logged 'waiting for job lease' || true
echo "seconds: $(($(date +%s) - began))"
kill -CONT $shadow
ended 'xxx'
# A starter that no longer says that it is alive.
row hung "" "STARTER.NOT_RESPONDING_TIMEOUT = 9
STARTER.STARTER_FIRST_CHILDALIVE_DELAY = 1"
submitted
awaited 60 grep -qE "received childalive, pid=.*secs=1?[0-9]," $dir/log/StartLog && echo "told: yes" || true
awaited 60 test -s $at/runs || true
hung=$(cat $dir/log/StarterLog.slot1* | grep -o 'PID = [0-9]*' | cut -d' ' -f3)
kill -STOP $hung
began=$(date +%s)
noticed '^(004|007|021|022|024|012)'
touch $at/go
ended 'xxx'
grep -o "appears hung! Killing it hard." $dir/log/StartLog || true
plain() { # a token is wanted over a connection without encryption
	row $1 'My.OAuthServicesNeeded = "site"' "$2"
	touch $at/go
	submitted
	awaited 60 has '^(005|012|021|004|007)' || true
	as condor_rm $id >/dev/null 2>&1 || true
	ended 'not encrypted.*'
	cat $at/out 2>/dev/null || true
}
plain refused ""
plain allowed "ALLOW_OAUTH_WITHOUT_ENCRYPTION = True"
echo "== log"
tail -q -n 60 $dir/log/StarterLog.slot*
