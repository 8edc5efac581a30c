# A personal pool on a machine of its own, whose jobs have PID namespaces. Arguments: path of the starter, port. Prints for each job what it found,
# how it ended, and what of it was left on the machine. With a third argument, "all", it also suspends and continues a job, and kills a starter.
set -eu
port=$2
anygroups=yes
ownmachine $1 "POD_STARTER_BACKEND = local
POD_STARTER_PAYLOAD_UID = 20301
USE_PID_NAMESPACES = True
KILLING_TIMEOUT = 5
MachineMaxVacateTime = 2
STARTER_ALLOW_JOB_PRE_AND_POST_CMD = True"
chmod 1777 $dir/jobs
cat >$dir/jobs/facts.sh <<'J'
#!/bin/sh
# What a process of the job finds. Argument: who it is.
echo "$1: the first process is $(cat /proc/1/comm), $(grep -qs facts /proc/$$/cmdline && echo its own /proc || echo the /proc of others)"
J
cat >$dir/jobs/look.sh <<'J'
#!/bin/sh
/bin/sh $1 job
echo "parent: $PPID"
echo "variables of the namespace: $(env | grep -c PID_NS)"
kill -KILL 1 2>/dev/null
kill -TERM -1 2>/dev/null
echo "lives on"
(setsid sh -c 'trap "" TERM HUP INT QUIT; sleep 1000' >/dev/null 2>&1 &)
sh -c 'i=0; while [ $i -lt 3000000 ]; do i=$((i+1)); done' &
wait
exit 3
J
cat >$dir/jobs/end.sh <<'J'
#!/bin/sh
echo "to end by $1"
kill -$1 $$
J
cat >$dir/jobs/soft.sh <<'J'
#!/bin/sh
trap "echo told >>$1; exit 0" TERM
: >$1
while :; do sleep 0.2; done
J
cat >$dir/jobs/stay.sh <<'J'
#!/bin/sh
trap "" TERM QUIT HUP
(setsid sh -c 'trap "" TERM HUP INT QUIT; exec sleep 1000.25' >/dev/null 2>&1 &)
: >$1
while :; do echo x >>$1; sleep 0.2; done
J
cat >$dir/jobs/note.sh <<'J'
#!/bin/sh
# Arguments: who it is, facts.sh, a file to write to.
umask 0
/bin/sh $2 $1 >>$3
J
cat >$dir/jobs/beside.sh <<'J'
#!/bin/sh
# Arguments: facts.sh, a file to write to, one that says that it may end.
umask 0
/bin/sh $1 job >>$2
/usr/libexec/condor/condor_chirp set_job_attr Seen $(ls -d /proc/[0-9]* | wc -l)
until [ -e $3 ]; do sleep 0.2; done
J
chmod 755 $dir/jobs/*.sh
left() { echo "left: $(pgrep -cfx 'sleep 1000(.25)?' || true)"; }
none() { ! pgrep -fx 'sleep 1000(.25)?' >/dev/null; }
submit() { # NAME, the executable, its arguments, more lines
	: >$dir/knobs
	printf '%s\n' "executable = $2" "arguments = \"$3\"" "should_transfer_files = YES" "transfer_output_files =" "output = $1.out" "error = $1.err" \
		"log = $1.log" "initialdir = $dir/jobs" "request_memory = 256" "request_disk = 128M" "${4:-}" queue >$dir/jobs/job.sub
	id=$(su personal -s /bin/sh -c "CONDOR_CONFIG=$dir/config condor_submit -terse $dir/jobs/job.sub" | cut -d' ' -f1)
}
start() { # NAME, the executable, the file that it makes: submits a job and waits for the file
	submit $1 $2 $3
	wait_for test -e $3
	echo "== $1"
}
as() { su personal -s /bin/sh -c "CONDOR_CONFIG=$dir/config $*"; }
cat >$dir/jobs/place.sh <<'J'
#!/bin/sh
/bin/sh $1 job
echo "temporary: $(ls /tmp | grep -x machine)"
J
chmod 755 $dir/jobs/place.sh
mount -t tmpfs tmpfs /tmp
echo machine >/tmp/machine
run place "" $dir/jobs/place.sh $dir/jobs/facts.sh
run nomounts "PER_JOB_NAMESPACES = False" $dir/jobs/place.sh $dir/jobs/facts.sh
run noinit "USE_PID_NAMESPACE_INIT = False" $dir/jobs/place.sh $dir/jobs/facts.sh
run look "" $dir/jobs/look.sh $dir/jobs/facts.sh
left
for sig in SEGV TERM KILL USR1; do run $sig "" $dir/jobs/end.sh $sig; done
start soft $dir/jobs/soft.sh $dir/jobs/soft.mark
pid=$(sed -n 's/.*Create_Process succeeded, pid=//p' $dir/log/StarterLog.slot1* | tail -n 1)
echo "the process of the log has $(grep NSpid /proc/$pid/status | wc -w) words of numbers: $(grep -ao soft.sh /proc/$pid/cmdline)"
condor_rm $id >/dev/null
wait_for grep -qs '^009 ' $dir/jobs/soft.log
wait_for grep -q told $dir/jobs/soft.mark && cat $dir/jobs/soft.mark
submit beside $dir/jobs/beside.sh "$dir/jobs/facts.sh $dir/jobs/facts.txt $dir/jobs/end" "+PreCmd = \"note.sh\"
+PreArguments = \"before $dir/jobs/facts.sh $dir/jobs/facts.txt\"
+PostCmd = \"note.sh\"
transfer_input_files = note.sh
+PostArguments = \"after $dir/jobs/facts.sh $dir/jobs/facts.txt\"
+WantIOProxy = True"
wait_for grep -qs job: $dir/jobs/facts.txt
echo "== beside"
chirped() { [ "$(condor_q $id -af Seen)" -lt 20 ] 2>/dev/null && echo chirped; }
wait_for chirped
as condor_ssh_to_job $id /bin/sh $dir/jobs/facts.sh session </dev/null 2>&1 || true
: >$dir/jobs/end
wait_for grep -qs '^005 ' $dir/jobs/beside.log
cat $dir/jobs/facts.txt
[ "${3:-}" = all ] || exit 0
start suspend $dir/jobs/stay.sh $dir/jobs/suspend.mark
size() { stat -c %s $dir/jobs/$name.mark; }
goes_on() { before=$(size); sleep 1; [ $(size) -gt $before ]; }
stands() { ! goes_on; }
name=suspend
wait_for goes_on
condor_suspend $id >/dev/null
wait_for stands && echo suspended
wait_for condor_continue $id >/dev/null 2>&1
wait_for goes_on && echo continued
condor_rm $id >/dev/null
wait_for none
left
start killed $dir/jobs/stay.sh $dir/jobs/killed.mark
name=killed
wait_for goes_on
kill -KILL $(pgrep -f '^condor_(pod_)?starter ')
wait_for none
left
condor_rm $id >/dev/null
echo "== log"
tail -n 80 $dir/log/StarterLog.slot1*
