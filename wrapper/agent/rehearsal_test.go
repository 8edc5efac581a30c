package agent_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"podstarter/payload"
	"podstarter/wrapper/agent/agenttest"
)

// rehearse rehearses a start whose program would leave a mark.
func rehearse(t *testing.T, c *payload.Client, s payload.Spec) error {
	t.Helper()
	s.Activation += ".rehearsal"
	s.Path, s.Args, s.Rehearse = "/bin/sh", []string{"sh", "-c", ">mark; echo executed"}, true
	if _, err := c.Start(agenttest.Context(t), s); err != nil {
		return err
	}
	exit, err := c.Wait(agenttest.Context(t))
	if err != nil || exit.WaitStatus != 0 || exit.Activation != s.Activation {
		t.Errorf("%+v, %v", exit, err)
	}
	if _, err := os.Stat(filepath.Join(s.Dir, "mark")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the program was executed: %v", err)
	}
	return nil
}

// TestRehearsal opens output as the start does, executes nothing, and leaves the place to
// the start.
func TestRehearsal(t *testing.T) {
	for name, tt := range map[string]struct {
		before      string
		append      bool
		first, then string // what is in the output after the rehearsal, and after the start
	}{
		"new":       {"", false, "", "hello\n"},
		"truncated": {"old\n", false, "", "hello\n"},
		"appended":  {"old\n", true, "old\n", "old\nhello\n"},
	} {
		t.Run(name, func(t *testing.T) {
			c := agenttest.StartWrapper(t, nil).Dial(t)
			s := agenttest.Spec(t)
			s.Path, s.Args, s.Append, s.Umask = "/bin/sh", []string{"sh", "-c", "echo hello"}, tt.append, 0o027
			out := filepath.Join(s.Dir, "out")
			if tt.before != "" {
				if err := errors.Join(os.WriteFile(out, []byte(tt.before), 0o640), os.Chown(out, s.UID, s.GID)); err != nil {
					t.Fatal(err)
				}
			}
			if err := rehearse(t, c, s); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(out)
			if err != nil || info.Mode() != 0o640 || int(info.Sys().(*syscall.Stat_t).Uid) != s.UID || agenttest.Output(t, s) != tt.first {
				t.Errorf("after the rehearsal: %+v, %v, %q", info, err, agenttest.Output(t, s))
			}
			start(t, c, s)
			exit, err := c.Wait(agenttest.Context(t))
			if err != nil || exit.WaitStatus != 0 || exit.Activation != s.Activation || agenttest.Output(t, s) != tt.then {
				t.Errorf("after the start: %+v, %v, %q", exit, err, agenttest.Output(t, s))
			}
		})
	}
}

// TestRehearsalFails as the start would.
func TestRehearsalFails(t *testing.T) {
	c := agenttest.StartWrapper(t, nil).Dial(t)
	for name, tt := range map[string]struct {
		change func(*payload.Spec)
		want   payload.StartError
	}{
		"input":     {func(s *payload.Spec) { s.Stdin = "/no/such/input" }, payload.StartError{Stage: payload.StageStdin, Path: "/no/such/input", Errno: syscall.ENOENT}},
		"output":    {func(s *payload.Spec) { s.Stdout = "/proc/version" }, payload.StartError{Stage: payload.StageStdout, Path: "/proc/version", Errno: syscall.EACCES}},
		"error":     {func(s *payload.Spec) { s.Stderr = "/" }, payload.StartError{Stage: payload.StageStderr, Path: "/", Errno: syscall.EISDIR}},
		"directory": {func(s *payload.Spec) { s.Dir = "/no/such" }, payload.StartError{Stage: payload.StageChdir, Path: "/no/such", Errno: syscall.ENOENT}},
	} {
		t.Run(name, func(t *testing.T) {
			s := agenttest.Spec(t)
			tt.change(&s)
			var failed *payload.StartError
			if err := rehearse(t, c, s); !errors.As(err, &failed) {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, *failed); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if err := rehearse(t, c, agenttest.Spec(t)); err != nil {
		t.Errorf("after rehearsals that failed: %v", err)
	}
}

// TestRehearsalLeavesFIFOs alone: one without a peer is no error yet, and a reader must not
// see the end of a writer that came only to look.
func TestRehearsalLeavesFIFOs(t *testing.T) {
	c := agenttest.StartWrapper(t, nil).Dial(t)
	s := agenttest.Spec(t)
	for _, name := range []string{"in", "out"} {
		path := filepath.Join(s.Dir, name)
		if err := errors.Join(syscall.Mkfifo(path, 0o600), os.Chown(path, s.UID, s.GID)); err != nil {
			t.Fatal(err)
		}
	}
	s.Stdin = "in"
	if err := os.Symlink("out", filepath.Join(s.Dir, "link")); err != nil {
		t.Fatal(err)
	}
	s.Stderr = "link"
	if err := rehearse(t, c, s); err != nil {
		t.Errorf("without peers: %v", err)
	}
	reader, err := unix.Open(filepath.Join(s.Dir, "out"), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(reader) }()
	if err := rehearse(t, c, s); err != nil {
		t.Errorf("with a reader: %v", err)
	}
	look := []unix.PollFd{{Fd: int32(reader), Events: unix.POLLIN}}
	if n, err := unix.Poll(look, 0); n != 0 || err != nil {
		t.Errorf("a writer has come and gone: %#x, %v", look[0].Revents, err)
	}
}
