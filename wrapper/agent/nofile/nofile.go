// Package nofile remembers the limit of open files a program was started with.
//
// Package os raises the soft limit to the hard one when a program starts (see
// os/rlimit.go) and offers no way to ask for the former value, which a program
// that turns into another one by its own execve(2) must put back: select(2) and
// other old code breaks with more than 1024 files.
//
// It works because packages are initialized in the order of their import paths
// as soon as all they import is (Go specification, "Program initialization"):
// this one needs syscall alone, while os also waits for time, which sorts
// behind it. A test watches over that.
package nofile

import "syscall"

var original = read()

func read() syscall.Rlimit {
	var l syscall.Rlimit
	// It cannot fail for a valid resource and pointer.
	_ = syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l)
	return l
}

// Original is the limit as it was when the program started.
func Original() syscall.Rlimit { return original }
