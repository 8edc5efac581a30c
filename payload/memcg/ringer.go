package memcg

import (
	"os"

	"golang.org/x/sys/unix"

	"podstarter/rescue"
)

// ringer hears from the kernel when something happens at a group's limits. The kernel says so to
// those who wait for priority events on memory.events, which the Go runtime does not; so
// the runtime waits for an epoll instance that does. That takes no thread.
type ringer struct {
	bell   chan struct{} // holds one ring
	poll   *os.File      // the epoll instance
	events *os.File
	over   chan struct{}
}

// newRinger returns nil if the kernel cannot ring. What happened is heard again until
// memory.events has been read.
func newRinger(files *Files) *ringer {
	events := files.events()
	if events == nil {
		return nil
	}
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err == nil {
		err = unix.EpollCtl(fd, unix.EPOLL_CTL_ADD, int(events.Fd()), &unix.EpollEvent{Events: unix.EPOLLPRI | unix.EPOLLET})
	}
	if err == nil {
		err = unix.SetNonblock(fd, true) // or the runtime would read it in a thread
	}
	if err != nil {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
		events.Close()
		return nil
	}
	r := &ringer{bell: make(chan struct{}, 1), poll: os.NewFile(uintptr(fd), "epoll"), events: events, over: make(chan struct{})}
	rescue.Go(func() {
		defer close(r.over)
		r.listen()
	})
	return r
}

func (r *ringer) listen() {
	raw, err := r.poll.SyscallConn()
	if err != nil {
		return
	}
	for {
		err := raw.Read(func(fd uintptr) bool {
			var heard [1]unix.EpollEvent
			n, err := unix.EpollWait(int(fd), heard[:], 0)
			return n > 0 || err != nil && err != unix.EINTR
		})
		if err != nil {
			return // closed
		}
		select {
		case r.bell <- struct{}{}:
		default:
		}
	}
}

// end ends it; a nil ringer has ended.
func (r *ringer) end() {
	if r == nil {
		return
	}
	r.poll.Close()
	<-r.over
	r.events.Close()
}
