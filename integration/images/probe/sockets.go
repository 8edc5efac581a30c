package main

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// lastFamily is above all families that Linux has.
const lastFamily = 64

// makeSockets tries whatever can lead to a connection, except Unix sockets. What a kernel does not have is refused as
// well.
func makeSockets(a *attempt) {
	for family := range lastFamily {
		if family == unix.AF_UNIX {
			continue
		}
		for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_RAW, unix.SOCK_SEQPACKET, unix.SOCK_RDM} {
			fd, err := unix.Socket(family, kind, 0)
			if err == nil {
				_ = unix.Close(fd)
			}
			a.try(fmt.Sprintf("a socket of family %d and kind %d", family, kind), err)
		}
	}
	var parameters [120]byte // struct io_uring_params
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&parameters)), 0)
	if errno != 0 {
		a.try("a ring of io_uring", errno)
		return
	}
	_ = unix.Close(int(fd))
	a.try("a ring of io_uring", nil)
}
