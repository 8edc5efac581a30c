# Runs a shell script, its standard input, in a copy of a root file system, in the namespaces that its caller made: no process outlives it, no
# port is taken, no other network is reached. Arguments: root, scratch directory, our starter, arguments of the script.
set -e
root=$1 scratch=$2 program=$3
shift 3
mkdir $scratch/upper $scratch/work $scratch/root
mount -t overlay overlay -o lowerdir=$root,upperdir=$scratch/upper,workdir=$scratch/work $scratch/root
cd $scratch/root
mount -t proc proc proc
mount --rbind /sys sys
mount -t tmpfs -o mode=755 tmpfs dev
for device in null zero full random urandom tty; do
	: >dev/$device
	mount --bind /dev/$device dev/$device
done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,gid=5 devpts dev/pts
mount -t tmpfs tmpfs dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
: >dev/kvm # condor_vm-gahp looks only at its rights
ip link set lo up
hostname machine.example.net
echo "127.0.0.1 machine.example.net machine localhost" >etc/hosts
cp $program usr/local/sbin/condor_pod_starter
exec chroot . env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root sh -s "$@"
