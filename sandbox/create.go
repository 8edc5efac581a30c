package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"podstarter/sandbox/beneath"
)

// Owner is who job files belong to. UID < 0 stands for the process itself.
type Owner = beneath.Owner

// Self is the owner that stands for the process itself: it switches no identity and
// gives no files away.
func Self() Owner { return beneath.Self() }

// Options say how a sandbox is laid out.
type Options struct {
	Execute string      // the EXECUTE directory; exists and is trusted
	Scratch string      // a volume of the payload only, in place of EXECUTE; see [Create]
	PID     int         // the starter's pid as the startd knows it: it looks for dir_<pid>
	Nested  bool        // STARTER_NESTED_SCRATCH: htcondor, user and scratch below dir_<pid>
	Keeps   bool        // common files will be kept in it, and no payload runs there; see [Create]
	Mode    fs.FileMode // of the scratch directory, from JOB_EXECDIR_PERMISSIONS; 0 means 0700
	Condor  Owner       // owns dir_<pid> and htcondor
	Payload Owner       // owns user and scratch
	Log     *slog.Logger
}

// Sandbox is the directory tree of one activation. Its methods may be called
// from any number of goroutines at once, Remove once the others have returned.
type Sandbox struct {
	dir, htcondor, user, scratch string

	condor  Owner
	payload Owner
	keeps   bool          // common files
	apart   string        // dir_<pid> in EXECUTE, if that is not what dir is in
	execute int           // descriptor of the directory that dir is in
	top     int           // of dir_<pid>
	inUser  *beneath.Root // what the payload owns
	inside  *beneath.Root
}

// Create makes the directories of an activation (HTCondor
// src/condor_starter.V6.1/starter.cpp:createTempExecuteDir). It first removes a
// directory of the same name, which an earlier process with this pid left. On an error
// it leaves nothing behind.
//
// Without root's rights everything belongs to the process itself. If EXECUTE
// refuses root, as a directory on a root-squashing file server does, and the
// payload may write there, the tree is made by and for the payload.
//
// With Scratch the payload sees nothing of EXECUTE: its tree is made in Scratch, and
// EXECUTE gets a dir_<pid> only for the startd's files. That is for payloads that have
// the process's own user ID, so that only their mounts keep them apart from it: a
// startd follows any link that it finds in place of its file. Create removes whatever
// else is in Scratch: there is one payload at a time.
//
// What keeps common files is in EXECUTE, and nested, in any case: payloads own neither.
func Create(ctx context.Context, o Options) (*Sandbox, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Mode == 0 {
		o.Mode = 0o700
	}
	startdKnowsNested := o.Nested
	if o.Keeps {
		o.Scratch, o.Nested = "", true
	}
	name := "dir_" + strconv.Itoa(o.PID)
	in := o.Execute
	if o.Scratch != "" {
		in = o.Scratch
	}
	s := &Sandbox{dir: filepath.Join(in, name), condor: o.Condor, payload: o.Payload, keeps: o.Keeps, execute: -1, top: -1}
	s.htcondor, s.user, s.scratch = s.dir, s.dir, s.dir
	if o.Nested {
		s.htcondor = filepath.Join(s.dir, "htcondor")
		s.user = filepath.Join(s.dir, "user")
		s.scratch = filepath.Join(s.dir, "scratch")
	}
	if !startdKnowsNested {
		s.htcondor = s.dir
	}
	var err error
	s.execute, err = unix.Open(in, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open the directory of sandboxes", Path: in, Err: err}
	}
	if o.Scratch != "" {
		err = beneath.Empty(ctx, s.execute)
	} else {
		err = beneath.RemoveAll(ctx, s.execute, name)
	}
	if err != nil {
		s.close()
		return nil, fmt.Errorf("remove what an earlier job left in %s: %w", s.dir, err)
	}
	err = s.lay(name, o, Self())
	if (errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM)) && o.Payload.Switches() {
		o.Log.Info("root may not create directories here, creating them as the payload", "dir", s.dir, "error", err)
		s.undo(ctx, name, Self())
		o.Condor = Self()
		s.condor = Self()
		err = o.Payload.Do(func() error { return s.lay(name, o, o.Payload) })
	}
	if err == nil && o.Scratch != "" {
		err = s.layApart(ctx, name, o)
	}
	if err == nil {
		s.inside, err = s.openRoot(s.scratch)
	}
	if err == nil {
		s.inUser, err = s.openRoot(s.user)
	}
	if err != nil {
		s.undo(ctx, name, o.Payload)
		s.close()
		return nil, fmt.Errorf("create the scratch directory of a job in %s: %w", in, err)
	}
	return s, nil
}

// openRoot opens one of the new directories. Where payloads have this process's user, a
// process that outlived its job could have put a link in its place.
func (s *Sandbox) openRoot(path string) (*beneath.Root, error) {
	root, err := beneath.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	var made, opened unix.Stat_t
	err = unix.Fstat(root.FD(), &opened)
	if err == nil && path == s.dir {
		err = unix.Fstat(s.top, &made)
	} else if err == nil {
		err = unix.Fstatat(s.top, filepath.Base(path), &made, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err == nil && (made.Dev != opened.Dev || made.Ino != opened.Ino) {
		err = errors.New("it is not the directory that was made: a process of an earlier job is alive")
	}
	if err != nil {
		root.Close()
		return nil, &fs.PathError{Op: "open the new directory", Path: path, Err: err}
	}
	return root, nil
}

// layApart makes the directory that the startd knows of.
func (s *Sandbox) layApart(ctx context.Context, name string, o Options) error {
	execute, err := unix.Open(o.Execute, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open the EXECUTE directory", Path: o.Execute, Err: err}
	}
	defer closeFD(execute)
	if err := beneath.RemoveAll(ctx, execute, name); err != nil {
		return fmt.Errorf("remove what an earlier job left in %s: %w", o.Execute, err)
	}
	top, err := makeDir(execute, name, 0o755)
	if err != nil {
		return err
	}
	defer closeFD(top)
	s.apart = filepath.Join(o.Execute, name)
	s.htcondor = s.apart
	if o.Nested {
		s.htcondor = filepath.Join(s.apart, "htcondor")
		fd, err := makeDir(top, "htcondor", 0o755)
		if err != nil {
			return err
		}
		err = finishDir(fd, "htcondor", o.Condor, 0o755)
		closeFD(fd)
		if err != nil {
			return err
		}
	}
	return finishDir(top, name, o.Condor, 0o755)
}

// lay makes the directories as the calling thread's identity, which is by.
func (s *Sandbox) lay(name string, o Options, by Owner) error {
	payload := o.Payload
	if by.Switches() {
		payload = Self() // already its own
	}
	top, err := makeDir(s.execute, name, 0o755)
	if err != nil {
		return err
	}
	s.top = top
	if !o.Nested {
		return finishDir(top, name, payload, o.Mode)
	}
	for _, d := range []struct {
		name  string
		owner Owner
		mode  fs.FileMode
	}{
		{"htcondor", o.Condor, 0o755},
		{"user", payload, 0o700},
		{"scratch", payload, o.Mode},
	} {
		if d.name == "htcondor" && o.Scratch != "" {
			continue // see layApart
		}
		fd, err := makeDir(top, d.name, 0o700)
		if err != nil {
			return err
		}
		err = finishDir(fd, d.name, d.owner, d.mode)
		closeFD(fd)
		if err != nil {
			return err
		}
	}
	return finishDir(top, name, o.Condor, 0o755)
}

func makeDir(at int, name string, mode uint32) (int, error) {
	if err := unix.Mkdirat(at, name, mode); err != nil {
		return -1, &fs.PathError{Op: "make directory", Path: name, Err: err}
	}
	return openMade(at, name)
}

// openMade opens a directory that was just made. A process of an earlier job may be
// alive and have put a link in its place.
func openMade(at int, name string) (int, error) {
	fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &fs.PathError{Op: "open the new directory", Path: name, Err: err}
	}
	return fd, nil
}

// finishDir sets the exact mode and only then gives the directory away: afterwards the
// process may have no permission for it.
func finishDir(fd int, name string, owner Owner, mode fs.FileMode) error {
	if err := unix.Fchmod(fd, uint32(mode.Perm())); err != nil {
		return &fs.PathError{Op: "set the mode of directory", Path: name, Err: err}
	}
	if err := owner.Chown(fd); err != nil {
		return &fs.PathError{Op: fmt.Sprintf("give to uid %d the directory", owner.UID), Path: name, Err: err}
	}
	return nil
}

// undo removes what lay has made.
func (s *Sandbox) undo(ctx context.Context, name string, by Owner) {
	if s.top >= 0 {
		closeFD(s.top)
		s.top = -1
	}
	if s.apart != "" {
		_ = removeDir(context.WithoutCancel(ctx), s.apart)
	}
	remove := func() error { return beneath.RemoveAll(context.WithoutCancel(ctx), s.execute, name) }
	if remove() != nil {
		_ = by.Do(remove)
	}
}

func (s *Sandbox) close() {
	for _, fd := range []*int{&s.execute, &s.top} {
		if *fd >= 0 {
			closeFD(*fd)
			*fd = -1
		}
	}
	for _, r := range []**beneath.Root{&s.inside, &s.inUser} {
		if *r != nil {
			(*r).Close()
			*r = nil
		}
	}
}

// closeFD closes the descriptor of a directory.
func closeFD(fd int) { _ = unix.Close(fd) }

// Permissions translates JOB_EXECDIR_PERMISSIONS: "user" (also anything
// unknown) is 0700, "group" 0750, "world" 0755.
func Permissions(word string) fs.FileMode {
	switch {
	case strings.EqualFold(word, "group"):
		return 0o750
	case strings.EqualFold(word, "world"):
		return 0o755
	}
	return 0o700
}
