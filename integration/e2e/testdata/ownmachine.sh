# What personal pools have in common that have a machine to themselves: root with all rights, in namespaces of their own for mounts and
# processes, above which is no other control group. ownmachine makes the directory $dir for the port $port, and the configuration of a pool
# with one slot, which includes the file $dir/knobs. A starter reads that anew for each job.
ownmachine() { # the starter, and more lines of the configuration
	dir=/var/tmp/ownmachine.$port
	rm -rf $dir
	mkdir -p $dir/log $dir/spool $dir/execute $dir/lock $dir/run $dir/jobs
	configure >$dir/config
	printf '%s\n' "NUM_CPUS = 1" "NUM_SLOTS = 1" "STARTER = $1" "STARTER_DEBUG = D_FULLDEBUG" "STARTER_INITIAL_UPDATE_INTERVAL = 2" \
		"STARTER_UPDATE_INTERVAL = 600" "$2" "include : $dir/knobs" >>$dir/config
	: >$dir/knobs
	id personal >/dev/null 2>&1 || useradd -m -u 20007 personal
	chown -R personal: $dir/jobs
	chown condor: $dir/spool $dir/log $dir/lock $dir/execute $dir/run
	export CONDOR_CONFIG=$dir/config
	mount -t tmpfs tmpfs /dev/shm
	mount -t cgroup2 cgroup2 /sys/fs/cgroup
	group=/sys/fs/cgroup/ownmachine.$port
	echo "+memory +pids +cpu" >/sys/fs/cgroup/cgroup.subtree_control || [ -n "${anygroups:-}" ] # who needs none sets it
	mkdir -p $group/daemons
	echo $$ >$group/daemons/cgroup.procs
	condor_master
	trap ended EXIT
	wait_for offered
}

# ended removes the control groups.
ended() {
	condor_off -master -fast >/dev/null 2>&1
	echo $$ >/sys/fs/cgroup/cgroup.procs
	wait_for empty
	find $group -depth -type d -exec rmdir {} +
}
empty() { grep -q '^populated 0' $group/cgroup.events; }
wait_for() { # a command that succeeds
	for try in $(seq 300); do
		"$@" && return
		sleep 0.2
	done
	return 1
}
offered() { condor_status -af HasFileTransfer 2>/dev/null | grep -q true; }

# run runs a job until it ends, is held or goes back to the queue, and prints, after a line "== NAME", its events of that kind, its output, and what
# the history has of its usage.
run() { # NAME, knobs, the executable, its arguments
	name=$1
	printf '%s\n' "$2" >$dir/knobs
	printf '%s\n' "executable = $3" "arguments = \"${4:-}\"" "should_transfer_files = YES" "transfer_output_files =" "output = $name.out" "error = $name.err" \
		"log = $name.log" "initialdir = $dir/jobs" "request_memory = 256" "request_disk = 128M" queue >$dir/jobs/job.sub
	id=$(su personal -s /bin/sh -c "CONDOR_CONFIG=$dir/config condor_submit -terse $dir/jobs/job.sub" | cut -d' ' -f1)
	wait_for grep -qsE '^(004|005|007|012) ' $dir/jobs/$name.log || true
	echo "== $name"
	[ ! -e $dir/jobs/$name.out ] || cat $dir/jobs/$name.out $dir/jobs/$name.err
	grep -q '^005 ' $dir/jobs/$name.log || condor_rm $id >/dev/null 2>&1 || true
	wait_for remembered || true
	sed -n '/^00[457] /,/^\.\.\./p; /^012 /,/^\.\.\./p' $dir/jobs/$name.log | grep -E '^0|termination|Reason|Error from|out of memory|Code [0-9]'
	condor_history $id -limit 1 -af:ln ExitCode HoldReasonCode HoldReasonSubCode ResidentSetSize_RAW ImageSize_RAW ProportionalSetSizeKb_RAW
}
remembered() { condor_history $id -limit 1 -af ClusterId | grep -q .; }
