# A personal schedd that refuses to be told how a job of the local universe ended, and starters whose system calls are looked at.
# Arguments: path of the starter, port. For each row it prints, after a line "== NAME": the job's events, what its starters ended with and
# how often each tried to tell the queue, or which logs they wrote to the disk at once.
set -eu
starter=$1 port=$2 user=personal
exec 9>/tmp/users.lock
flock 9 # several of these scripts run at once
id $user >/dev/null 2>&1 || useradd -m -u 20007 $user
exec 9>&-
dir=/home/$user/localends.$port
rm -rf $dir
mkdir -p $dir/log $dir/spool $dir/execute $dir/lock $dir/run
configure | grep -v role:Execute >$dir/config
cat >>$dir/config <<C
DAEMON_LIST = MASTER SHARED_PORT COLLECTOR SCHEDD
STARTER_LOCAL = $dir/starter.sh
STARTER_DEBUG = D_FULLDEBUG
JOB_START_DELAY = 0
MAIL = $dir/mail.sh
CONDOR_ADMIN = help@site.example
EVENT_LOG = $dir/log/EventLog
ENABLE_USERLOG_LOCKING = False
include ifexist : $dir/knobs
include ifexist : $dir/rights
SCHEDD_INTERVAL = 1
C
cat >$dir/starter.sh <<S
#!/bin/sh
[ ! -e $dir/traced ] || exec ${STRACE:-strace} -f -y -e trace=fsync,fdatasync -o $dir/trace.\$\$ $starter "\$@"
exec $starter "\$@"
S
printf '#!/bin/sh\ncat >>%s/mailed\n' $dir >$dir/mail.sh
cat >$dir/job.sh <<'J'
#!/bin/sh
echo ran >>runs
while [ ! -e go ]; do sleep 0.1; done
exit 3
J
touch $dir/mailed
chmod 755 $dir/*.sh
chown -R $user: $dir
as() { su $user -s /bin/sh -c "cd $dir; export CONDOR_CONFIG=$dir/config; $*"; }
as condor_master
trap 'as condor_off -master -fast >/dev/null 2>&1' EXIT
awaited 60 as "condor_q >/dev/null 2>&1"
begun() { test -s $at/runs || has '^012'; } # or is held
has() { grep -qE "$1" $at/log; }
row() { # NAME, lines of configuration that starters have
	at=$dir/$1
	echo "$2" >$dir/knobs
	mkdir $at
	rm -f $dir/log/StarterLog.local
	printf '%s\n' "universe = local" "executable = $dir/job.sh" "initialdir = $at" "log = log" "notification = ${notify:-never}" queue >$at.sub
	chown -R $user: $at
	echo "== $1"
	id=$(as "condor_submit -terse $at.sub" | cut -d' ' -f1)
	awaited 60 begun || true
}
# rights sets what the schedd lets daemons do, and waits until it has read it.
rights() {
	echo "$1" >$dir/rights
	before=$(grep -c "config super users" $dir/log/SchedLog || true)
	as "condor_reconfig -schedd" >/dev/null
	awaited 20 sh -c "[ \$(grep -c 'config super users' $dir/log/SchedLog) != $before ]" || true
}
ended() { # kinds of events
	awaited 60 has "$1" || true
	echo "events:" $(grep -oE '^0[0-9][0-9] ' $at/log | grep -v 006)
}
exits() { grep -c "Local starter pid [0-9]* for job $id exited with status $1" $dir/log/SchedLog || true; }
gone() { [ "$(exits "")" -ge ${1:-1} ]; }
tries() { grep -c "attempt to edit immutable attribute .* in job $id" $dir/log/SchedLog || true; }
tried() { [ "$(tries)" -ge $1 ]; }
refuse="IMMUTABLE_JOB_ATTRS = ExitCode, ExitBySignal"
row refused "LOCAL_UNIVERSE_MAX_JOB_CLEANUP_RETRIES = 2
LOCAL_UNIVERSE_JOB_CLEANUP_RETRY_DELAY = 1"
rights "$refuse"
touch $at/go
awaited 60 gone || true
ended '^021'
echo "tries: $(tries)"
grep -o "Maximum number of job cleanup retry attempts (LOCAL_UNIVERSE_MAX_JOB_CLEANUP_RETRIES=[0-9]*) reached" $at/log || true
rights ""
awaited 60 gone 2 || true # it runs again
echo "runs: $(wc -l <$at/runs), ended $(exits 100)"
row later "LOCAL_UNIVERSE_MAX_JOB_CLEANUP_RETRIES = 1000
LOCAL_UNIVERSE_JOB_CLEANUP_RETRY_DELAY = 1"
rights "$refuse"
touch $at/go
awaited 60 tried 7 || true # more than five, the default
rights ""
awaited 60 gone || true
ended '^005'
echo "runs: $(wc -l <$at/runs), ended $(exits 100)"
row seldom "LOCAL_UNIVERSE_JOB_CLEANUP_RETRY_DELAY = 4
LOCAL_UNIVERSE_MAX_JOB_CLEANUP_RETRIES = 1"
rights "$refuse"
touch $at/go
awaited 60 tried 1 || true
began=$(date +%s)
awaited 60 tried 2 || true
echo "seconds: $(($(date +%s) - began))"
rights ""
awaited 60 gone 2 || true
notify=always
row mail ""
touch $at/go
ended '^(005|012)'
awaited 60 gone || true
grep -ohE 'administrator: .*' $dir/mailed || true
grep -oE 'sends no mail' $at/log || true
notify=never
touch $dir/traced
synced() { # NAME, lines of configuration
	row $1 "$2"
	touch $at/go
	awaited 60 gone || true
	ended '^005'
	cat $dir/trace.* | grep -oE 'f(data)?sync\([0-9]+<.*>\) *= 0' | grep -oE "$at/log|EventLog" | sed 's|.*/||' | sort | uniq -c | sed 's/^ */synced: /'
	rm -f $dir/trace.*
}
synced neither ""
synced own "ENABLE_USERLOG_FSYNC = True"
synced site "EVENT_LOG_FSYNC = True"
echo "== log"
tail -n 60 $dir/log/StarterLog*
tail -n 20 $dir/log/SchedLog
