package main

import (
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// dieBySignal has the Go runtime end this process by SIGABRT where nothing can
// catch a failure of the program: a fatal error, such as two goroutines that
// write to one map or a thread that the kernel refuses, and a panic in a
// goroutine of a library. The startd takes that for a crash of the starter; the
// runtime's own exit code would be ExitLostShadow. No core is left: it would
// hold the keys of the job's sessions.
func dieBySignal() {
	debug.SetTraceback("crash")
	var core unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_CORE, &core) == nil {
		core.Cur = 0 // a job that wants cores raises it again
		_ = unix.Setrlimit(unix.RLIMIT_CORE, &core)
	}
}
