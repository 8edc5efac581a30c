# A personal pool with knobs about which a job hears little. Arguments: path of the starter, port. For each row it prints, after a line
# "== NAME", what the job, the machine or the starter's log shows of the knob.
set -eu
starter=$1 port=$2 user=personal
exec 9>/tmp/users.lock
flock 9 # several of these scripts run at once
id $user >/dev/null 2>&1 || useradd -m -u 20007 $user
exec 9>&-
dir=/var/tmp/sitehabits.$port
rm -rf $dir
mkdir -p $dir/log $dir/spool $dir/execute $dir/lock $dir/run $dir/jobs
configure >$dir/config
cat >>$dir/config <<C
NUM_CPUS = 1
NUM_SLOTS = 1
STARTD_RESOURCE_PREFIX = place
STARTER = $dir/starter.sh
POD_STARTER_BACKEND = local
POD_STARTER_PAYLOAD_UID = 20301
STARTER_DEBUG = D_FULLDEBUG
STARTER_UPDATE_INTERVAL = 1
STARTER_INITIAL_UPDATE_INTERVAL = 1
JOB_START_DELAY = 0
SHADOW.SEC_CREDENTIAL_DIRECTORY_KRB = $dir/stored
include ifexist : $dir/knobs
C
# What a startd before 8.1.5 did not say: the name of the slot, which a starter had from that of its log then.
cat >$dir/starter.sh <<S
#!/bin/sh
[ ! -e $dir/old ] || set -- \$(echo "\$*" | sed 's/-slot-name [^ ]*//; s/-a place/-a old.place/')
exec $starter "\$@"
S
chmod 755 $dir/starter.sh
mkdir -m 700 $dir/stored $dir/tickets
(umask 077 && echo credential >$dir/stored/$user.cred)
chown -R $user: $dir/jobs
chown condor: $dir/spool $dir/log $dir/lock $dir/execute $dir/run
export CONDOR_CONFIG=$dir/config
condor_master
trap 'condor_off -master -fast >/dev/null 2>&1' EXIT
offered() { condor_status -af HasFileTransfer 2>/dev/null | grep -q true; }
queue() { condor_q >/dev/null 2>&1; }
awaited 120 offered
awaited 60 queue
has() { grep -qE "$1" $at/log; }
row() { # NAME, lines of configuration that starters have, lines of the submit file
	at=$dir/jobs/$1
	echo "$2" >$dir/knobs
	mkdir -m 777 $at
	shift 2
	printf '%s\n' "should_transfer_files = YES" "log = log" "output = out" "error = err" "initialdir = $at" "notification = never" "request_memory = 100" "$@" queue >$at/sub
	chown -R $user: $at
	echo "== $(basename $at)"
	id=$(su $user -s /bin/sh -c "CONDOR_CONFIG=$dir/config condor_submit -terse $at/sub" | cut -d' ' -f1)
}
over() {
	condor_rm $id >/dev/null 2>&1 || true
	awaited 60 sh -c "! condor_q $id -af ClusterId | grep -q ." || true
}
shell() { printf '%s\n' "executable = /bin/sh" "transfer_executable = False" "arguments = \"-c '$1'\""; }
row slot "" "$(shell 'echo $_CONDOR_SLOT')"
awaited 60 has '^005' || true
cat $at/out
ls $dir/log | grep '^StarterLog.place'
touch $dir/old
row oldslot "" "$(shell 'echo $_CONDOR_SLOT')"
awaited 60 has '^005' || true
cat $at/out $at/err
rm $dir/old
row lock "STARTER.LOCK = $dir/otherlock" "$(shell 'echo ran; sleep 600')"
mkdir -m 1777 $dir/otherlock
awaited 60 has '^001' || true
ls $dir/otherlock
over
rm $dir/log/StarterLog.*place*
row nolog "STARTER_LOG =" "$(shell 'echo ran')"
awaited 30 has '^(005|007|004|012|021|022)' || true
cat $at/out 2>/dev/null || true
ls $dir/log | grep '^StarterLog.place' || true
over
row keys "STARTER_DEBUG = D_SECURITY:2 D_FULLDEBUG D_NETWORK:2
SEC_DEBUG_PRINT_KEYS = True" "$(shell 'echo ran')"
awaited 60 has '^005' || true
cat $at/out
echo "keys: $(cat $dir/log/StarterLog.place* | grep -ciE 'KEYPRINTF' || true)"
row patient "STARTER.SEC_CREDENTIAL_DIRECTORY_KRB = $dir/tickets
CREDD_POLLING_TIMEOUT = 2" "$(shell 'echo ran')" "My.SendCredential = True"
awaited 60 sh -c "ls $dir/tickets | grep -q cred" || true
began=$(date +%s)
awaited 60 has '^(005|007|004|012|021|022)' || true
echo "seconds: $(($(date +%s) - began))"
grep -oE '^(021|005|012)' $at/log | head -n 1
grep -E 'Starter failed to initialize|Code' $at/log | head -n 2
over
row waits "STARTER.SEC_CREDENTIAL_DIRECTORY_KRB = $dir/tickets
CREDD_POLLING_TIMEOUT = 30" "$(shell 'echo ran')" "My.SendCredential = True"
awaited 60 sh -c "ls $dir/tickets | grep -q cred" || true
awaited 20 grep -q "" $dir/tickets/$user.cred
for f in $dir/tickets/*.cred; do cp -p $f ${f%.cred}.cc; done
awaited 60 has '^(005|007|004|012|021|022)' || true
cat $at/out
echo "== log"
cat $dir/log/StarterLog* | tail -n 100
