// Package threads keeps operating-system threads in reserve. A program in Go dies when
// the kernel refuses it a thread ("failed to create new OS thread"), which a payload can
// bring about: the limit of processes and threads (podPidsLimit) is one for the
// whole pod. Threads that have been made are used again and again, so those made
// at the start are there when no others are to be had.
//
// The package runs on both sides of the socket, and therefore imports nothing but the
// standard library and rescue, which does the same.
package threads

import (
	"runtime"

	"podstarter/rescue"
)

// Reserve sees to it that n threads more than are at work now exist. Whoever locks
// a goroutine to its thread and lets it end so takes one away for good.
func Reserve(n int) {
	var over rescue.Group
	ready, leave := make(chan struct{}, n), make(chan struct{})
	for range n {
		over.Go(func() {
			runtime.LockOSThread() // so that no two have the same
			defer runtime.UnlockOSThread()
			ready <- struct{}{}
			<-leave
		})
	}
	for range n {
		<-ready
	}
	close(leave)
	over.Wait()
}
