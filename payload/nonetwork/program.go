package nonetwork

import "golang.org/x/sys/unix"

// machine is what of an architecture the filter has to know.
type machine struct {
	arch uint32 // AUDIT_ARCH_...
	// foreignFrom is the first number that belongs to another table of system calls under the
	// same arch, as those of x32 do; 0 for none.
	foreignFrom uint32

	socket, socketpair   uint32
	ringSetup, ringEnter uint32
	ringRegister         uint32
	// The kernel asks programs of the machine, or a name server, for keys that it does not have
	// (keyrings(7), request_key(2)).
	addKey, requestKey, keyctl uint32
}

// Offsets in struct seccomp_data (linux/seccomp.h). The machines here are little-endian: the
// low half of an argument comes first. A family is an int, and the kernel looks at no more
// of the argument than that half.
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetFamily = 16
)

// skipped is the number of a call that a tracer has the kernel leave out.
const skipped = 0xffffffff

const (
	allow          = unix.SECCOMP_RET_ALLOW
	kill           = unix.SECCOMP_RET_KILL_PROCESS
	refuseFamily   = unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT)
	refuseUnknown  = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	load           = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	jumpIfEqual    = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	jumpIfAtLeast  = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	returnConstant = unix.BPF_RET | unix.BPF_K
)

// filter is the program for a machine.
func (m machine) filter() []unix.SockFilter {
	// is gives a verdict if what was loaded has this value, and goes on otherwise.
	is := func(value, verdict uint32) []unix.SockFilter {
		return []unix.SockFilter{{Code: jumpIfEqual, Jf: 1, K: value}, {Code: returnConstant, K: verdict}}
	}
	f := []unix.SockFilter{
		{Code: load, K: offsetArch},
		{Code: jumpIfEqual, Jt: 1, K: m.arch},
		{Code: returnConstant, K: kill},
		{Code: load, K: offsetNumber},
	}
	if m.foreignFrom != 0 {
		f = append(f, is(skipped, allow)...)
		f = append(f, unix.SockFilter{Code: jumpIfAtLeast, Jf: 1, K: m.foreignFrom}, unix.SockFilter{Code: returnConstant, K: kill})
	}
	for _, number := range []uint32{m.ringSetup, m.ringEnter, m.ringRegister, m.addKey, m.requestKey, m.keyctl} {
		f = append(f, is(number, refuseUnknown)...)
	}
	f = append(f,
		unix.SockFilter{Code: jumpIfEqual, Jt: 2, K: m.socket},
		unix.SockFilter{Code: jumpIfEqual, Jt: 1, K: m.socketpair},
		unix.SockFilter{Code: returnConstant, K: allow},
		unix.SockFilter{Code: load, K: offsetFamily})
	f = append(f, is(unix.AF_UNIX, allow)...)
	return append(f, unix.SockFilter{Code: returnConstant, K: refuseFamily})
}

// machines are those for which programs are built, by GOARCH. The numbers are those of the kernel
// (asm/unistd_64.h, asm-generic/unistd.h); a test compares those of this machine with
// x/sys.
var machines = map[string]machine{
	"amd64": {arch: unix.AUDIT_ARCH_X86_64, foreignFrom: 0x40000000, socket: 41, socketpair: 53, ringSetup: 425, ringEnter: 426, ringRegister: 427, addKey: 248, requestKey: 249, keyctl: 250},
	"arm64": {arch: unix.AUDIT_ARCH_AARCH64, socket: 198, socketpair: 199, ringSetup: 425, ringEnter: 426, ringRegister: 427, addKey: 217, requestKey: 218, keyctl: 219},
}
