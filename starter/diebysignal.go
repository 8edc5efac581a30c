package main

import (
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

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

// fatal are the signals that end a program which does nothing about them, and that somebody
// sends to a starter that is to end at once, or to say what it is doing.
var fatal = []os.Signal{syscall.SIGABRT, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGILL, syscall.SIGSEGV}

// dieAtOnce ends this process when somebody sends one of these signals. By itself the Go runtime
// then asks each thread by a SIGQUIT what it does, and waits 10 s for answers (runtime
// signal_unix.go:sighandler): the SIGQUIT is taken for an order of the startd. So long the job
// would run on. A fault of the program itself is a panic, as ever.
func dieAtOnce() {
	sent := make(chan os.Signal, 1)
	signal.Notify(sent, fatal...)
	go func() { // not by rescue: nothing may catch the panic
		panic(fmt.Sprintf("somebody sent signal %q to this starter", <-sent))
	}()
}
