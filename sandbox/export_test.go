package sandbox

import (
	"golang.org/x/sys/unix"

	"podstarter/sandbox/beneath"
)

// LayAsPayload makes the tree of a job in a directory as Create does where root may not.
func LayAsPayload(in, name string, o Options) error {
	execute, err := unix.Open(in, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	s := &Sandbox{payload: o.Payload, execute: execute, top: -1}
	defer s.close()
	return o.Payload.Do(func() error { return s.lay(name, o, o.Payload) })
}

// OpenRoot opens one of the directories that Create made.
func (s *Sandbox) OpenRoot(path string) (*beneath.Root, error) { return s.openRoot(path) }

// OpenMade opens a directory as Create does when it has made it.
func OpenMade(at int, name string) error {
	fd, err := openMade(at, name)
	if err == nil {
		closeFD(fd)
	}
	return err
}
