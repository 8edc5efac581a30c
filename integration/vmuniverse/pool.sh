# A pool of root's, on a machine with Debian's condor_vm-gahp, libvirt and QEMU, which emulates the processor. Arguments: path of the starter,
# and the user that submits. Prints, each after a line "== NAME", what slots say of virtual machines, and what became of each job: its events,
# and what its guest wrote. The guest is a boot sector.
set -eu
starter=$1 user=$2
dir=/var/tmp/vmuniverse
rm -rf $dir
mkdir -p $dir/log $dir/spool $dir/execute $dir/lock $dir/run $dir/jobs /run/libvirt
printf '%s\n' 'user = "root"' 'group = "root"' 'remember_owner = 0' 'security_driver = "none"' 'cgroup_controllers = []' 'namespaces = []' \
	'stdio_handler = "file"' 'seccomp_sandbox = 0' >/etc/libvirt/qemu.conf
libvirtd -d >$dir/log/libvirtd 2>&1
cat >$dir/domain.sh <<'D'
#!/bin/sh
/usr/libexec/condor/libvirt_simple_script.awk "$@" | sed "s/<domain type='kvm'>/<domain type='qemu'>/; s|<cpu mode='host-passthrough'/>||; s|<console.*</console>||"
D
cat >$dir/config <<C
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
NETWORK_INTERFACE = 127.0.0.1
ENABLE_IPV6 = False
START = True
SUSPEND = False
PREEMPT = False
KILL = False
UID_DOMAIN = example.net
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
NUM_CPUS = 6
NUM_SLOTS_TYPE_1 = 1
SLOT_TYPE_1_PARTITIONABLE = True
STARTER = $starter
POD_STARTER_BACKEND = local
POD_STARTER_PAYLOAD_UID = 20301
STARTER_DEBUG = D_FULLDEBUG
VM_TYPE = kvm
VM_MEMORY = 256
# The startd gives condor_vm-gahp five seconds.
VM_RECHECK_INTERVAL = 5
VM_GAHP_SERVER = /usr/sbin/condor_vm-gahp
VM_GAHP_LOG = $dir/log/VMGahpLog
LIBVIRT_XML_SCRIPT = $dir/domain.sh
# The startd has the last word.
HasVM = True
STARTD_ATTRS = \$(STARTD_ATTRS) HasVM
C
# guest NAME HEX...: the disk of a guest whose boot sector is that machine code.
guest() {
	name=$1
	shift
	for byte; do printf "\\$(printf %o 0x$byte)"; done >$dir/jobs/code
	head -c 256 /dev/zero >>$dir/jobs/code
	{
		head -c 256 $dir/jobs/code
		printf 'the guest ran\n'
		head -c 240 /dev/zero
		printf '\125\252'
		head -c 1048064 /dev/zero
	} >$dir/jobs/$name.img
	rm $dir/jobs/code
}
# xor ax,ax; mov ds,ax; mov es,ax; write 1 sector from 7d00 to the disk's second; then, out 604,2000 (power off) or hlt; jmp to the hlt
store="31 c0 8e d8 8e c0 bb 00 7d b8 01 03 b9 02 00 cd 13"
guest ends $store ba 04 06 b8 00 20 ef f4 eb fd
guest stays $store fb f4 eb fd
chown -R $user: $dir/jobs
chmod 755 $dir/domain.sh
chown condor: $dir/spool $dir/log $dir/lock $dir/execute $dir/run
export CONDOR_CONFIG=$dir/config
condor_master
trap 'condor_off -master -fast >/dev/null 2>&1' EXIT # all else ends with the namespace
wait_for() { # what is printed by a command
	for try in $(seq 600); do
		"$@" && return
		sleep 0.2
	done
	return 1
}
said() { # EXPRESSION, of a slot
	[ -n "$(condor_status -constraint "$1" -af Name 2>/dev/null)" ]
}
submit() { # NAME, DISK, REQUIREMENTS, more commands
	cp $dir/jobs/$2.img $dir/jobs/$1.img
	printf '%s\n' "universe = vm" "executable = guest" "vm_type = kvm" "vm_memory = 16" "vm_networking = false" "initialdir = $dir/jobs" "vm_disk = $1.img:hda:w:raw" \
		"transfer_input_files = $1.img" "log = $1.log" "requirements = $3 && \"$1\" != \"\"" "${4:-}" queue >$dir/jobs/$1.sub
	chown -R $user: $dir/jobs
	su $user -s /bin/sh -c "CONDOR_CONFIG=$dir/config condor_submit -terse $dir/jobs/$1.sub" 2>/dev/null | sed 's/ .*//' >$dir/jobs/$1.id
}
# Without, jobs come back for ever.
once='(NumShadowStarts ?: 0) < 1'
anywhere='HasVM =!= 0 && VM_Type =!= 0 && VM_AvailNum =!= 0 && VM_Memory =!= 0'
event() { # NAME, numbers of events as a pattern
	wait_for grep -qE "^($2) " $dir/jobs/$1.log
}
report() { # NAME
	echo "== $1"
	cat $dir/jobs/$1.log
	echo "disk: $(tail -c +513 $dir/jobs/$1.img | head -c 13 | tr -d '\0')"
}
offered() {
	condor_status -limit 1 -af:r HasVM VMOfflineReason
}
slots() {
	condor_status -limit 1 -af:r HasVM VM_Type VM_Memory 2>/dev/null | grep .
}
echo "== slots"
if [ $starter != /usr/sbin/condor_starter ]; then
	wait_for said 'HasVM isnt undefined'
	slots
	submit ran ends "$once"
	submit anywhere ends "$anywhere"
	wait_for grep -q "activate_claim refused" $dir/log/StartLog || true
	report anywhere
	report ran
	echo "== startd"
	grep -o "activate_claim refused.*" $dir/log/StartLog | head -n 1
	echo "== started"
	ls $dir/log | grep StarterLog.slot || true
else
	wait_for said HasVM
	slots
	# Each job's starter reads the knobs when the job begins.
	submit mismatched ends "$once" 'vm_checkpoint = true
MY.VM_CkptMac = "52:54:00:12:34:56"'
	event mismatched 001
	echo "STARTER.VM_GAHP_SERVER = /no/such/server" >>$dir/config
	submit serverless ends "$once"
	event serverless '004|012|024'
	printf '%s\n' "STARTER.VM_GAHP_SERVER = /usr/sbin/condor_vm-gahp" "VM_STATUS_INTERVAL = 7" "VM_GAHP_SEND_ALL_CLASSAD = False" "MEMORY_USAGE_METRIC_VM = 41 + 1" >>$dir/config
	submit ran ends "$once"
	event ran 001
	printf '%s\n' "VM_STATUS_INTERVAL = 30" "VM_SOFT_SUSPEND = True" "VM_GAHP_SEND_ALL_CLASSAD = True" >>$dir/config
	submit suspended stays "$once"
	event suspended 001
	wait_for sh -c "[ \$(cat $dir/log/StarterLog.slot* | grep -ac 'StartJob for VM succeeded') = 2 ]"
	condor_suspend $(cat $dir/jobs/suspended.id) >/dev/null 2>&1
	event suspended 010
	condor_continue $(cat $dir/jobs/suspended.id) >/dev/null 2>&1
	event suspended 011
	echo "VMU_TESTING = 2" >>$dir/config
	submit tested ends "$once"
	event tested 004
	echo "== offered"
	offered
	event ran 005
	# condor_vm-gahp ends without libvirt.
	kill $(cat /run/libvirtd.pid)
	event suspended '004|007'
	for job in mismatched serverless ran suspended tested; do report $job; done
fi
echo "== gahp"
ls $dir/log | grep VMGahpLog || true
echo "== log"
cat $dir/log/StarterLog.* | grep -av "VMGAHP.*<- '[A-Za-z_0-9]* = "
