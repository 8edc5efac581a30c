// The program of the image that holds a pod's namespaces. In a pod that shares its process namespace it is process 1:
// orphans of all containers become its children, and it reaps them. It leaves when told to.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGCHLD)
	for {
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 && err != syscall.EINTR {
				break
			}
		}
		if s := <-signals; s != syscall.SIGCHLD {
			return
		}
	}
}
