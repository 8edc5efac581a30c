# A personal pool without root, with one partitionable slot for one job at a time, and a cluster whose jobs need a common file. The first
# job changes the file that it got and every copy of it that it finds in EXECUTE, with the old size and times. Arguments: path of the
# starter, port. Prints, each after a line "== NAME", what the jobs printed, and the starters' logs.
set -eu
starter=$1 port=$2 user=personal
exec 9>/tmp/users.lock
flock 9 # two of these scripts run at once
id $user >/dev/null 2>&1 || useradd -m -u 20007 $user
exec 9>&-
dir=/home/$user/common.$port
rm -rf $dir
mkdir -p $dir/log $dir/spool $dir/execute $dir/lock $dir/run
configure >$dir/config
cat >>$dir/config <<C
NUM_CPUS = 1
NUM_SLOTS = 1
NUM_SLOTS_TYPE_1 = 1
SLOT_TYPE_1_PARTITIONABLE = True
STARTER = $starter
POD_STARTER_BACKEND = local
MAX_STARTER_LOG = 100 Mb
C
echo "as it was" >$dir/shared
cat >$dir/job.sh <<'J'
#!/bin/sh
cat shared
[ $1 = 0 ] || exit 0
poison() {
	cp -p $1 before && chmod u+w $1 && echo "poison   " >$1 && touch -r before $1 && chmod 444 $1 && rm -f before && echo "changed one"
}
poison shared
find $2 -name shared -type f ! -path "$PWD/*" >list
while read -r kept; do poison $kept; done <list
rm list
J
cat >$dir/job.sub <<J
executable = $dir/job.sh
arguments = \$(Process) $dir/execute
should_transfer_files = YES
transfer_output_files = ""
output = out.\$(Process)
error = err.\$(Process)
log = job.log
initialdir = $dir
My.CommonInputFiles = "$dir/shared"
queue 3
J
chmod 755 $dir/job.sh
chown -R $user: $dir
as() { su $user -s /bin/sh -c "cd $dir; export CONDOR_CONFIG=$dir/config; $*"; }
as condor_master
trap 'as condor_off -master -fast >/dev/null 2>&1' EXIT
for try in $(seq 120); do
	[ -z "$(as condor_status -af HasCommonFilesTransfer 2>/dev/null)" ] || break
	sleep 0.5
done
echo "== offered"
as condor_status -af HasCommonFilesTransfer MappingMethod
as condor_submit job.sub >/dev/null
as condor_wait -wait 240 job.log >/dev/null || true
for i in 0 1 2; do
	echo "== job $i"
	cat $dir/out.$i $dir/err.$i
done
echo "== stagings"
grep -h "Finished common files transfer: success" $dir/log/StarterLog.* | wc -l
echo "== log"
cat $dir/job.log
cat $dir/log/StarterLog.*
