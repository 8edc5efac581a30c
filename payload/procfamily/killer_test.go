package procfamily

import (
	"os"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// firstThread holds what was observed while the test's main goroutine had the process's
// first thread.
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

// TestKillerIsNotOnTheFirstThread: on the first thread, another Killer with the same guard
// could kill the whole process.
func TestKillerIsNotOnTheFirstThread(t *testing.T) {
	if firstThread.reached == 0 {
		t.Fatal("no goroutine ran on the first thread: this proves nothing")
	}
	if firstThread.served > 0 {
		t.Errorf("%d times the thread was the process's first", firstThread.served)
	}
}

// TestStrikeNeedsNoLook: Strike does not read the list of processes, which a payload can
// make slow.
func TestStrikeNeedsNoLook(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	killer, err := NewKiller()
	if err != nil {
		t.Fatal(err)
	}
	defer killer.Close()
	uid := 1_995_000_000 + os.Getpid() // nobody's user ID
	if err := OfUser("/no/list/of/processes", uid).Strike(syscall.SIGKILL, killer); err != nil {
		t.Error(err)
	}
}

// BenchmarkKillNobody measures the proof that no process of a user lives; each job waits
// for it before it starts.
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
