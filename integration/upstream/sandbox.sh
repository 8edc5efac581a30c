# Runs one of HTCondor's test files in a copy of the root file system, with namespaces of its own: no daemon outlives it, no port
# is taken, no other network is reached. Arguments: root, scratch directory, HTCondor's source, sh file with the configuration,
# directory for what is kept, starter or "", whose the daemons are, name of the test.
set -e
root=$1 scratch=$2 source=$3 configuration=$4 kept=$5 starter=$6 as=$7 name=$8
m=$scratch/root
mkdir $scratch/upper $scratch/work $m
mount -t overlay overlay -o lowerdir=$root,upperdir=$scratch/upper,workdir=$scratch/work $m
mount -t proc proc $m/proc
mount --rbind /dev $m/dev
mount -t tmpfs tmpfs $m/dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,gid=5 devpts $m/dev/pts
mount --bind $m/dev/pts/ptmx $m/dev/ptmx
if [ -e /dev/fuse ]; then # for Apptainer, whoever runs it
	mknod -m 666 $m/root/fuse c 10 229
	mount --bind $m/root/fuse $m/dev/fuse
fi
mkdir -p $m/kept $m/home/tester/t $m/src
mount --bind $kept $m/kept
ip link set lo up
hostname ep.example.net
echo "127.0.0.1 ep.example.net ep localhost" >$m/etc/hosts
cp -a $source/src/condor_tests $m/src/
# What HTCondor's build puts beside its tests.
cp -an $source/src/condor_scripts/. $m/src/condor_tests/
cp $configuration $m/etc/condor/upstream_config
[ -z "$starter" ] || cp $starter $m/usr/local/sbin/condor_pod_starter
cp $kept/podstarter_outcomes.py $m/src/condor_tests/
# Accounts of the users that jobs have under a startd that is root (docs/admin/plain.md).
for i in $(seq 0 15); do echo "job$i:x:$((10001 + i)):65534::/:/usr/sbin/nologin"; done >>$m/etc/passwd
chroot $m chown -R tester: /home/tester /src
chmod 755 $m/home/tester
chmod 777 $kept
user=tester
case $as in
sudo) as_root=HTCONDOR_TEST_USE_SUDO=1 ;;
root) user=root as_root= ;;
*) as_root= ;;
esac
case $name in
*.run) # HTCondor's runner makes a pool's configuration of the one that is in force
	mkdir -p $m/src/condor_tests/local_dir/config.d
	: >$m/src/condor_tests/condor_config.local
	{
		cat $m/etc/condor/upstream_config
		echo LOCAL_DIR = /src/condor_tests/local_dir
		echo 'LOCAL_CONFIG_DIR = $(LOCAL_DIR)/config.d'
		echo LOCAL_CONFIG_FILE = /src/condor_tests/condor_config.local
	} >$m/src/condor_tests/base_config
	chroot $m chown -R tester: /src/condor_tests
	program="env PERL5LIB=/src/condor_tests:. CONDOR_CONFIG=/src/condor_tests/base_config perl run_test.pl ${name%.run}" ;;
*)
	program="python3 -m pytest -p no:cacheprovider -p podstarter_outcomes $name.py --base-test-dir=/home/tester/t" ;;
esac
# Not chroot alone: in one, the kernel makes no user namespaces, which Apptainer needs.
mkdir $m/.before
cd $m
pivot_root . .before
export image=
# Debian's package lacks the image by which a startd finds out that .sif files run.
if grep -qs /usr/bin/singularity src/condor_tests/$name.py; then image=/usr/libexec/condor/exit_37.sif; fi
exec chroot . sh -ec 'umount -l /.before; rmdir /.before; [ -z "$image" ] || singularity -s build $image /usr/libexec/condor/singularity_test_sandbox; exec runuser -u "$0" -- "$@"' $user env -i PATH=/usr/bin:/usr/sbin:/bin:/sbin HOME=/home/tester \
	USER=$user LOGNAME=$user LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=/src/condor_tests CONDOR_CONFIG=/etc/condor/upstream_config \
	OUTCOMES=/kept/outcomes.jsonl $as_root \
	sh -c "cd /src/condor_tests && exec $program"
