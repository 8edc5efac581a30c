package family

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// firstThread is what was found out while the test's main goroutine had the
// process's first thread.
var firstThread struct{ reached, served int }

func TestMain(m *testing.M) {
	procs := runtime.GOMAXPROCS(1)
	const tries = 1000
	for range tries {
		at := make(chan int)
		go func() { at <- unix.Gettid() }()
		if <-at == unix.Getpid() {
			firstThread.reached++
		}
		onOtherThread(func() { at <- unix.Gettid() })
		if <-at == unix.Getpid() {
			firstThread.served++
		}
	}
	runtime.GOMAXPROCS(procs)
	os.Exit(m.Run())
}

// A Killer on the first thread could be killed, process and all, by another that
// has chosen the same guard.
func TestKillerIsNotOnTheFirstThread(t *testing.T) {
	if firstThread.reached == 0 {
		t.Fatal("no goroutine ran on the first thread: this proves nothing")
	}
	if firstThread.served > 0 {
		t.Errorf("%d of the threads were the first", firstThread.served)
	}
}
