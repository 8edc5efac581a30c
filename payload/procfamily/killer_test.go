package procfamily

import (
	"os"
	"runtime"
	"syscall"
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

// TestStrikeNeedsNoLook: what a payload makes of the list of processes does not delay
// the blow.
func TestStrikeNeedsNoLook(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	killer, err := NewKiller()
	if err != nil {
		t.Fatal(err)
	}
	defer killer.Close()
	uid := 1_995_000_000 + os.Getpid() // nobody's
	if err := OfUser("/no/list/of/processes", uid).Strike(syscall.SIGKILL, killer); err != nil {
		t.Error(err)
	}
}

// BenchmarkKillNobody measures the proof that nobody of a user lives, which each job
// waits for before it begins.
func BenchmarkKillNobody(b *testing.B) {
	if os.Geteuid() != 0 {
		b.Skip("needs root")
	}
	for b.Loop() {
		killer, err := NewKiller()
		if err != nil {
			b.Fatal(err)
		}
		if err := OfUser("/proc", 1_995_000_000+os.Getpid()).Kill(b.Context(), killer); err != nil {
			b.Fatal(err)
		}
		killer.Close()
	}
}
