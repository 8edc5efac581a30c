package agent

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFirstThreadKeepsItsIdentity: kill(2), ptrace(2) and the look for processes of the
// payload check the first thread's user. If that were the payload's, the payload could stop
// and trace its wrapper, and no sweep would ever end.
func TestFirstThreadKeepsItsIdentity(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can become another user")
	}
	const uid, tries = 54321, 1000
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer freeFirstThread(t)()
	reached := 0
	for range tries {
		at := make(chan int)
		go func() { at <- unix.Gettid() }()
		if <-at == unix.Getpid() {
			reached++
		}
		err := asPayload(uid, uid, func() error {
			if unix.Gettid() == unix.Getpid() {
				t.Error("the process's first thread took on the payload's identity")
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if t.Failed() {
			return
		}
	}
	if reached == 0 {
		t.Fatal("no goroutine ran on the first thread: this proves nothing")
	}
}

// freeFirstThread keeps threads busy until a goroutine gets the process's first one, which
// is then the next that is free. The others are free again when the result is called.
func freeFirstThread(t *testing.T) func() {
	t.Helper()
	const most = 200
	done := make(chan struct{})
	for range most {
		got := make(chan bool)
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			first := unix.Gettid() == unix.Getpid()
			got <- first
			if !first {
				<-done
			}
		}()
		if <-got {
			return func() { close(done) }
		}
	}
	close(done)
	t.Fatalf("the process's first thread is not among %d", most)
	return nil
}
