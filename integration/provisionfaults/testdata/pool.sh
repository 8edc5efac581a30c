# The daemons of an HTCondor pool, and of another one from which jobs flock to it, in a copy of a root file system, in namespaces of their own for mounts and processes: all end with this
# process. Arguments: root file system, directory for what is written, directory that is /site inside.
set -e
lower=$1 dir=$2 site=$3
m=$dir/root
mount --make-rprivate /
mkdir -p $dir/upper $dir/work $m
mount -t overlay overlay -o lowerdir=$lower,upperdir=$dir/upper,workdir=$dir/work $m
mount -t proc proc $m/proc
mount --rbind /dev $m/dev
mount -t tmpfs -o mode=1777 tmpfs $m/tmp
mkdir -p $m/site
mount --bind $site $m/site
for sub in log spool two/spool lock run execute; do mkdir -p $m/var/pool/$sub $m/var/home/$sub; done
chroot $m useradd --system --no-create-home daemons 2>/dev/null || :
mkdir -p $site/log $site/home-log
mount --bind $site/log $m/var/pool/log
mount --bind $site/home-log $m/var/home/log
chroot $m chown -R daemons: /var/pool /var/home
ids=$(chroot $m id -u daemons).$(chroot $m id -g daemons)
echo "CONDOR_IDS = $ids" >$site/ids
# The tests enter when this is there.
touch $site/ready
start() { exec chroot $m env -i PATH=/usr/bin:/usr/sbin:/bin:/sbin HOME=/ CONDOR_CONFIG=/site/$1 condor_master -f; }
start home_config &
start condor_config
