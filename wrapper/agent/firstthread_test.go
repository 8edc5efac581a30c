package agent

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFirstThreadKeepsItsIdentity: kill(2) and ptrace(2) go by the first thread's
// user, and so does the look for what is left of the payload. Were that thread
// the payload's, the payload could stop and trace its wrapper, and no sweep would
// ever end.
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
				t.Error("the process's first thread took the payload's identity on")
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
