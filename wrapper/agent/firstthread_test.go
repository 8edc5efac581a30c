package agent

import (
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// TryFirstThread fails if a goroutine that runs on the process's first thread lets it take
// on the payload's identity.
func TryFirstThread() error {
	const uid, tries = 54321, 1000
	runtime.GOMAXPROCS(1)
	free, err := freeFirstThread()
	if err != nil {
		return err
	}
	defer free()
	reached := 0
	for range tries {
		at := make(chan int)
		go func() { at <- unix.Gettid() }()
		if <-at == unix.Getpid() {
			reached++
		}
		err := asPayload(uid, uid, func() error {
			if unix.Gettid() == unix.Getpid() {
				return errors.New("the process's first thread took on the payload's identity")
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if reached == 0 {
		return errors.New("no goroutine ran on the first thread: this proves nothing")
	}
	return nil
}

// freeFirstThread keeps threads busy until a goroutine gets the process's first one, which
// is then the next that is free. The others are free again when the result is called.
func freeFirstThread() (free func(), err error) {
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
			return func() { close(done) }, nil
		}
	}
	close(done)
	return nil, fmt.Errorf("the process's first thread is not among %d", most)
}
