package nonetwork_test

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// foreign are calls by other tables than that of amd64, all of them getpid, which harms nobody.
var foreign = map[string]func(){
	"x32": func() { _, _, _ = unix.RawSyscall(unix.SYS_GETPID|0x40000000, 0, 0, 0) },
	"i386": func() {
		code, err := unix.Mmap(-1, 0, unix.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			panic(err)
		}
		// mov eax, 20; int 0x80; ret
		copy(code, []byte{0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0xc3})
		entry := &code[0]
		variable := &entry
		(*(*func())(unsafe.Pointer(&variable)))()
	},
}
