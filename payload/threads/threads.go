// Package threads keeps operating-system threads in reserve. A Go program dies when the
// kernel refuses it a thread ("failed to create new OS thread"). A payload can cause this,
// since the whole pod shares one limit of processes and threads (podPidsLimit). Go reuses
// its threads, so those made at the start are available when the kernel gives no more.
//
// The package runs on both sides of the socket, and therefore imports only the standard
// library and rescue, which has the same restriction.
package threads

import (
	"runtime"

	"podstarter/rescue"
)

// Reserve makes sure that n threads exist besides those in use. A goroutine that ends while
// locked to its thread removes one for good.
func Reserve(n int) {
	var over rescue.Group
	ready, leave := make(chan struct{}, n), make(chan struct{})
	for range n {
		over.Go(func() {
			runtime.LockOSThread() // so that no two share a thread
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
