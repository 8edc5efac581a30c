package nonetwork

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestNumbers compares the numbers of this machine's system calls with those of x/sys.
func TestNumbers(t *testing.T) {
	m, ok := machines[runtime.GOARCH]
	if !ok {
		t.Skipf("there is no filter for %s", runtime.GOARCH)
	}
	got := []uint32{m.socket, m.socketpair, m.ringSetup, m.ringEnter, m.ringRegister, m.addKey, m.requestKey, m.keyctl}
	for i, want := range []uint32{unix.SYS_SOCKET, unix.SYS_SOCKETPAIR, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL} {
		if got[i] != want {
			t.Errorf("number %d is %d, want %d", i, got[i], want)
		}
	}
}

// call is a struct seccomp_data.
type call struct {
	number, arch uint32
	family       uint64
}

// want is what the filter has to say, in other words than its own.
func (m machine) want(c call) uint32 {
	switch {
	case c.arch != m.arch:
		return kill
	case m.foreignFrom != 0 && c.number&0x40000000 != 0 && c.number != 0xffffffff, m.foreignFrom != 0 && c.number > 0x7fffffff && c.number != 0xffffffff:
		return kill
	case c.number == m.ringSetup, c.number == m.ringEnter, c.number == m.ringRegister, c.number == m.addKey, c.number == m.requestKey, c.number == m.keyctl:
		return unix.SECCOMP_RET_ERRNO | 38
	case (c.number == m.socket || c.number == m.socketpair) && int32(c.family) != 1:
		return unix.SECCOMP_RET_ERRNO | 97
	}
	return allow
}

// run interprets a program. An error is one for which the kernel would refuse it.
func run(program []unix.SockFilter, c call) (uint32, error) {
	var data [64]byte
	binary.LittleEndian.PutUint32(data[0:], c.number)
	binary.LittleEndian.PutUint32(data[4:], c.arch)
	binary.LittleEndian.PutUint64(data[16:], c.family)
	var accumulator uint32
	for at := 0; at < len(program); at++ {
		i := program[at]
		branch := func(taken bool) {
			if taken {
				at += int(i.Jt)
			} else {
				at += int(i.Jf)
			}
		}
		switch i.Code {
		case load:
			if i.K%4 != 0 || i.K > 60 {
				return 0, fmt.Errorf("instruction %d loads from %d", at, i.K)
			}
			accumulator = binary.LittleEndian.Uint32(data[i.K:])
		case jumpIfEqual:
			branch(accumulator == i.K)
		case jumpIfAtLeast:
			branch(accumulator >= i.K)
		case returnConstant:
			return i.K, nil
		default:
			return 0, fmt.Errorf("instruction %d has the unknown code %#x", at, i.Code)
		}
	}
	return 0, fmt.Errorf("the program does not return")
}

// TestFilter asks the filters of all machines about every call that matters to any of them.
func TestFilter(t *testing.T) {
	arches := []uint32{unix.AUDIT_ARCH_X86_64, unix.AUDIT_ARCH_AARCH64, unix.AUDIT_ARCH_I386, unix.AUDIT_ARCH_ARM, 0, 0xffffffff}
	families := []uint64{0, unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK, unix.AF_PACKET, unix.AF_VSOCK, unix.AF_ALG, unix.AF_BLUETOOTH,
		1 << 32, 1<<32 | unix.AF_UNIX, 1<<32 | unix.AF_INET, 0xffffffff, 1<<64 - 1}
	var numbers []uint32
	for n := range uint32(600) {
		numbers = append(numbers, n, n|0x40000000, n|0x80000000)
	}
	numbers = append(numbers, 0x3fffffff, 0x7fffffff, 0xfffffffe, 0xffffffff)
	for name, m := range machines {
		program := m.filter()
		for _, arch := range arches {
			for _, number := range numbers {
				for _, family := range families {
					c := call{number, arch, family}
					if got, err := run(program, c); err != nil || got != m.want(c) {
						t.Fatalf("%s: %+v gives %#x, %v; want %#x", name, c, got, err, m.want(c))
					}
				}
			}
		}
	}
}

func FuzzFilter(f *testing.F) {
	for _, m := range machines {
		for _, n := range []uint32{m.socket, m.socketpair, m.ringSetup, m.ringEnter, m.ringRegister, m.socket | 0x40000000, 0xffffffff} {
			f.Add(n, m.arch, uint64(unix.AF_UNIX))
			f.Add(n, m.arch, uint64(unix.AF_INET))
		}
	}
	f.Fuzz(func(t *testing.T, number, arch uint32, family uint64) {
		for name, m := range machines {
			c := call{number, arch, family}
			if got, err := run(m.filter(), c); err != nil || got != m.want(c) {
				t.Errorf("%s: %+v gives %#x, %v; want %#x", name, c, got, err, m.want(c))
			}
		}
	})
}
