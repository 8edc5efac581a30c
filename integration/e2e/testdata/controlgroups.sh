# A personal pool on a machine of its own whose starter gives each job a control group with 256 MiB of memory. Arguments: path of the starter, port,
# the probe, and a program that has something in shared memory for some seconds.
set -eu
port=$2
ownmachine $1 "MEMORY = 256
POD_STARTER_BACKEND = local
POD_STARTER_PAYLOAD_UID = 20301"
polled=$dir/jobs/polled
printf %s "$4" >$polled
chmod 755 $polled
usage="memory=64 disk=big:96 sleep=8s"
leap="memory=48 sleep=5s eat=leap" # no look comes while it leaps
once="CGROUP_POLLING_INTERVAL = 600"
run usage "" $3 "$usage"
run peak "CGROUP_USE_PEAK_MEMORY = True" $3 "$usage"
run cache "CGROUP_USE_PEAK_MEMORY = True
CGROUP_IGNORE_CACHE_MEMORY = False" $3 "$usage"
run often "CGROUP_POLLING_INTERVAL = 1" $polled
run seldom "CGROUP_POLLING_INTERVAL = 600" $polled
run held "$once
STARTER_ALWAYS_HOLD_ON_OOM = True" $3 "$leap"
run returned "$once
STARTER_ALWAYS_HOLD_ON_OOM = False" $3 "$leap"
# From now on the machine has less than the slot.
echo 128M >$group/htcondor/memory.max
run full "$once
STARTER_ALWAYS_HOLD_ON_OOM = True" $3 "$leap"
run filled "$once
STARTER_ALWAYS_HOLD_ON_OOM = False" $3 "$leap"
echo "== left"
find $group/htcondor -mindepth 1 -type d
echo "== log"
tail -n 200 $dir/log/StarterLog.slot1*
