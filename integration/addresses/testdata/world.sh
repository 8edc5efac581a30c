# An access point's half of the world: a copy of a root file system, and namespaces of its own for mounts, processes, network and name.
# All daemons end with this process. Arguments: root file system, directory for what is written, directory that is /site inside.
set -e
lower=$1 dir=$2 site=$3
m=$dir/root
mount --make-rprivate /
mkdir -p $dir/upper/site $dir/work $m
mount -t overlay overlay -o lowerdir=$lower,upperdir=$dir/upper,workdir=$dir/work $m
mount -t proc proc $m/proc
mount --rbind /dev $m/dev
mount -t tmpfs tmpfs $m/dev/shm
mount -t tmpfs -o mode=1777 tmpfs $m/tmp
mount -t tmpfs tmpfs $m/run
mount --bind $site $m/site
hostname world
# Nobody answers questions about names here.
: >$m/etc/resolv.conf
{
	echo "127.0.0.1 localhost"
	echo "192.0.2.1 world.example.net world"
	echo "2001:db8::1 world.example.net world"
} >$m/etc/hosts
ip link set lo up
ip link add name lan type bridge
ip addr add 192.0.2.1/24 dev lan
ip addr add 10.77.0.1/24 dev lan
ip addr add 2001:db8::1/64 dev lan nodad
ip link set lan up
chroot $m chown -R tester: /site
touch $site/made
exec sleep infinity
