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
