# What personal pools of these tests have in common: configure prints a configuration of all daemons, for the directory $dir
# and the port $port.
configure() {
	cat <<C
LOCAL_DIR = $dir
BIN = /usr/bin
SBIN = /usr/sbin
LIBEXEC = /usr/libexec/condor
LIB = /usr/lib/condor
LOG = $dir/log
SPOOL = $dir/spool
EXECUTE = $dir/execute
LOCK = $dir/lock
RUN = $dir/run
use role:CentralManager
use role:Submit
use role:Execute
CONDOR_HOST = 127.0.0.1
SHARED_PORT_PORT = $port
COLLECTOR_HOST = 127.0.0.1:$port
NETWORK_INTERFACE = 127.0.0.1
BIND_ALL_INTERFACES = False
ENABLE_IPV6 = False
START = True
SUSPEND = False
PREEMPT = False
KILL = False
UID_DOMAIN = personal.invalid
SEC_DEFAULT_AUTHENTICATION = REQUIRED
SEC_DEFAULT_AUTHENTICATION_METHODS = FS
ALLOW_READ = *
ALLOW_WRITE = *
ALLOW_DAEMON = *
ALLOW_NEGOTIATOR = *
ALLOW_ADMINISTRATOR = *
ALLOW_ADVERTISE_STARTD = *
ALLOW_ADVERTISE_SCHEDD = *
ALLOW_ADVERTISE_MASTER = *
NEGOTIATOR_INTERVAL = 2
NEGOTIATOR_MIN_INTERVAL = 1
NEGOTIATOR_CYCLE_DELAY = 1
SCHEDD_INTERVAL = 3
C
}

# rootdaemons makes the daemons those of root, which give jobs the users contained1 to contained4.
rootdaemons() {
	echo "CONDOR_IDS = 20007.20007" >>$dir/config
	for i in 1 2 3 4; do id contained$i >/dev/null 2>&1 || useradd -M -d / -u $((20100 + i)) contained$i; done
	chmod 755 /home/$user
}
