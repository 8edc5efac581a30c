# A personal pool on a machine of its own, with files in shared memory and in /tmp, and a GPU, which is another device here: /dev/full. Arguments: path of the
# starter, port. Prints for each job what it found in both directories, its process, the processes that it saw, and whether the device could be
# opened; and what it left in the directories. Then what a slot has of memory, with the knobs from which that comes.
set -eu
port=$2
ownmachine $1 "POD_STARTER_BACKEND = local
POD_STARTER_PAYLOAD_UID = 20301
USE_PSS = True
MEMORY = 1256
RESERVED_MEMORY = 232"
cat >$dir/jobs/job.sh <<'J'
#!/bin/sh
echo "shared memory: $(ls /dev/shm | xargs)"
echo "temporary: $(ls /tmp | grep -x machine)"
[ $PPID -ne 1 ] || echo "a process of the job's own namespace"
[ $(ls /proc | grep -c '^[0-9]*$') -gt 9 ] || echo "no processes of others"
head -c 1 /dev/full >/dev/null 2>&1 && echo "device opened" || echo "no device"
echo mine >/dev/shm/left
echo mine >/tmp/left
sleep 4
exit 3
J
chmod 755 $dir/jobs/job.sh
echo machine >/dev/shm/machine
mount -t tmpfs tmpfs /tmp
echo machine >/tmp/machine
mkdir -p $dir/driver/nvidia/gpus/0000:01:00.0
printf 'Model: \t\t X\nGPU UUID: \t GPU-1\nDevice Minor: \t 7\n' >$dir/driver/nvidia/gpus/0000:01:00.0/information
mount --bind $dir/driver /proc/driver
trap 'rm -f /dev/nvidiactl; ended' EXIT
mknod /dev/nvidiactl c 1 255
job() { # NAME, knobs
	run $1 "$2" $dir/jobs/job.sh
	echo "machine's shared memory: $(ls /dev/shm | xargs)"
	echo "machine's temporary: $(ls /tmp | grep -x left)"
	rm -f /dev/shm/left /tmp/left
}
job default ""
job everybody "MOUNT_PRIVATE_DEV_SHM = False
STARTER_HIDE_GPU_DEVICES = False"
job processes "BASE_CGROUP =
USE_PID_NAMESPACES = True"
echo "== offer"
offer() {
	condor_status -af TotalSlotMemory
	for knob in MEMORY DETECTED_MEMORY RESERVED_MEMORY; do echo "$knob = $(condor_config_val $knob 2>/dev/null || true)"; done
}
offer
sed -i '/^MEMORY = /d' $dir/config
condor_restart -startd >/dev/null
detected() { [ "$(condor_status -af TotalSlotMemory 2>/dev/null)" != 1024 ] && offered; }
wait_for detected
echo "== offer of all"
offer
echo "== log"
tail -n 60 $dir/log/StarterLog.slot1*
