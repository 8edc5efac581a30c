package agent_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/payload"
	"podstarter/wrapper/agent/agenttest"
)

func TestStartErrors(t *testing.T) {
	c := agenttest.StartWrapper(t, nil).Dial(t)
	otherMachine := make([]byte, 64)
	copy(otherMachine, "\x7fELF\x02\x01\x01")
	otherMachine[16], otherMachine[18] = 2, 50 // Itanium, which QEMU does not emulate
	tests := map[string]struct {
		file   string // content of "program" in the sandbox
		mode   os.FileMode
		change func(*payload.Spec)
		stage  string
		errno  syscall.Errno
		path   string // default: that of the spec
		detail string
		// interpreter that does not exist
		interpreter string
	}{
		"no such program":    {change: func(s *payload.Spec) { s.Path = "/nonexistent" }, stage: "exec", errno: syscall.ENOENT, detail: "no such file"},
		"not executable":     {file: "#!/bin/sh\n", mode: 0o644, stage: "exec", errno: syscall.EACCES, detail: "not executable by user"},
		"directory":          {change: func(s *payload.Spec) { s.Path = "/tmp" }, stage: "exec", errno: syscall.EACCES, detail: "directory"},
		"no interpreter":     {file: "#!/nonexistent -x\n", mode: 0o755, stage: "exec", errno: syscall.ENOENT, interpreter: "/nonexistent", detail: "not in the container"},
		"DOS line ends":      {file: "#!/bin/sh\r\n", mode: 0o755, stage: "exec", errno: syscall.ENOENT, interpreter: "/bin/sh", detail: "DOS line ends"},
		"script without #!":  {file: "echo hello\n", mode: 0o755, stage: "exec", errno: syscall.ENOEXEC, detail: "#!/bin/sh"},
		"empty file":         {file: "\n", mode: 0o755, stage: "exec", errno: syscall.ENOEXEC, detail: "#!/bin/sh"},
		"binary rubbish":     {file: "\x00\x01\x02", mode: 0o755, stage: "exec", errno: syscall.ENOEXEC, detail: "neither a program nor a script"},
		"other architecture": {file: string(otherMachine), mode: 0o755, stage: "exec", errno: syscall.ENOEXEC, detail: "this machine is " + runtime.GOARCH},
		"not found in PATH":  {change: func(s *payload.Spec) { s.Path, s.SearchPath = "nonexistent-program", true }, stage: "exec", errno: syscall.ENOENT},
		"PATH, no permission": {file: "#!/bin/sh\n", mode: 0o644, change: func(s *payload.Spec) {
			s.Path, s.SearchPath, s.Env = "program", true, []string{"PATH=/nonexistent::/usr"}
		}, stage: "exec", errno: syscall.EACCES, path: "program"},
		"no working directory": {change: func(s *payload.Spec) { s.Dir = "/nonexistent" }, stage: "chdir", errno: syscall.ENOENT, path: "/nonexistent"},
		"no stdin":             {change: func(s *payload.Spec) { s.Stdin = "missing" }, stage: "stdin", errno: syscall.ENOENT, path: "missing"},
		"stdin is a directory": {change: func(s *payload.Spec) { s.Stdin = "/" }, stage: "stdin", errno: syscall.EISDIR, path: "/"},
		"stdout not writable":  {change: func(s *payload.Spec) { s.Stdout = "/proc/version" }, stage: "stdout", errno: syscall.EACCES, path: "/proc/version"},
		"stderr nowhere":       {change: func(s *payload.Spec) { s.Stderr = "no/where" }, stage: "stderr", errno: syscall.ENOENT, path: "no/where"},
		"too long":             {change: func(s *payload.Spec) { s.Args = append(s.Args, strings.Repeat("x", 200_000)) }, stage: "exec", errno: syscall.E2BIG, detail: "too long"},
		"user root":            {change: func(s *payload.Spec) { s.UID = 0 }, stage: "identity", errno: syscall.EPERM, path: "-"},
		"relative directory":   {change: func(s *payload.Spec) { s.Dir = "tmp" }, stage: "spec", path: "-"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := agenttest.Spec(t, "exit", "0")
			if test.file != "" {
				s.Path = filepath.Join(s.Dir, "program")
				err := errors.Join(os.WriteFile(s.Path, []byte(test.file), 0o600), os.Chmod(s.Path, test.mode), os.Chown(s.Path, s.UID, s.GID))
				if err != nil {
					t.Fatal(err)
				}
			}
			if test.change != nil {
				test.change(&s)
			}
			_, err := c.Start(agenttest.Context(t), s)
			var failed *payload.StartError
			if !errors.As(err, &failed) {
				t.Fatal(err)
			}
			want := payload.StartError{Stage: test.stage, Errno: test.errno, Path: test.path, Interpreter: test.interpreter, Detail: failed.Detail}
			switch test.path {
			case "":
				want.Path = s.Path
			case "-":
				want.Path = ""
			}
			if diff := cmp.Diff(want, *failed); diff != "" || !strings.Contains(failed.Detail, test.detail) {
				t.Errorf("%v\n%s", failed, diff)
			}
		})
	}
	start(t, c, agenttest.Spec(t, "exit", "0")) // the wrapper still works
}

func TestSearchPath(t *testing.T) {
	c := agenttest.StartWrapper(t, nil).Dial(t)
	s := agenttest.Spec(t)
	s.Path, s.Args, s.SearchPath = "sh", []string{"called otherwise", "-c", "echo $0"}, true
	s.Env = []string{"PATH=/nonexistent:/bin"}
	for range 2 { // the second time by the default PATH
		start(t, c, s)
		if _, err := c.Wait(agenttest.Context(t)); err != nil {
			t.Fatal(err)
		}
		if out := agenttest.Output(t, s); out != "called otherwise\n" {
			t.Errorf("%q", out)
		}
		s.Env = nil
	}
}

// TestSearchGoesOn: a file without execute permission does not end the search; the error
// names it if nothing else is found (execvp(3)).
func TestSearchGoesOn(t *testing.T) {
	c := agenttest.StartWrapper(t, nil).Dial(t)
	s := agenttest.Spec(t)
	for dir, mode := range map[string]os.FileMode{"first": 0o644, "second": 0o755, "third": 0o644} {
		dir = filepath.Join(s.Dir, dir)
		program := filepath.Join(dir, "program")
		if err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(program, []byte("#!/bin/sh\necho second\n"), mode), os.Chmod(program, mode)); err != nil {
			t.Fatal(err)
		}
	}
	s.Path, s.SearchPath = "program", true
	s.Env = []string{"PATH=" + s.Dir + "/none:" + s.Dir + "/first:" + s.Dir + "/second"}
	start(t, c, s)
	if exit, err := c.Wait(agenttest.Context(t)); err != nil || exit.WaitStatus != 0 || agenttest.Output(t, s) != "second\n" {
		t.Errorf("%+v, %v: %q", exit, err, agenttest.Output(t, s))
	}
	s.Env = []string{"PATH=" + s.Dir + "/none:" + s.Dir + "/third:" + s.Dir + "/first:" + s.Dir + "/none"}
	_, err := c.Start(agenttest.Context(t), s)
	var failed *payload.StartError
	if !errors.As(err, &failed) || failed.Stage != payload.StageExec || failed.Errno != syscall.EACCES || failed.Path != s.Dir+"/third/program" {
		t.Errorf("%+v", err)
	}
}

// TestBusyProgram starts a program that is still open for writing for a moment: this
// happens when the starter forks while it writes the executable.
func TestBusyProgram(t *testing.T) {
	c := agenttest.StartWrapper(t, nil).Dial(t)
	s := agenttest.Spec(t, "exit", "0")
	s.Path = filepath.Join(s.Dir, "copy")
	data, err := os.ReadFile(agenttest.Program())
	if err == nil {
		err = errors.Join(os.WriteFile(s.Path, data, 0o755), os.Chown(s.Path, s.UID, s.GID))
	}
	if err != nil {
		t.Fatal(err)
	}
	writer, err := os.OpenFile(s.Path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, func() { writer.Close() })
	start(t, c, s)
}

func TestTightLimits(t *testing.T) {
	c := agenttest.StartWrapper(t, nil).Dial(t)
	s := agenttest.Spec(t)
	s.Path, s.Args = "/bin/true", nil
	// Less address space than the launcher itself has.
	s.Limits = []payload.Limit{{Resource: "as", Soft: 64 << 20, Hard: 64 << 20}, {Resource: "nproc", Soft: 1, Hard: 1}, {Resource: "nofile", Soft: 8, Hard: 8}}
	start(t, c, s)
	if exit, err := c.Wait(agenttest.Context(t)); err != nil || exit.WaitStatus != 0 {
		t.Errorf("%+v, %v", exit, err)
	}
	s.Path = "/nonexistent"
	_, err := c.Start(agenttest.Context(t), s)
	var failed *payload.StartError
	if !errors.As(err, &failed) || failed.Stage != payload.StageExec || failed.Errno != syscall.ENOENT {
		t.Errorf("exec error under tight limits: %v", err)
	}
}

func TestSetuidProgram(t *testing.T) {
	if !agenttest.Root() {
		t.Skip("needs root")
	}
	c := agenttest.StartWrapper(t, nil).Dial(t)
	s := agenttest.Spec(t, "setuid", filepath.Join(agenttest.PublicDir(t), "setuid"))
	data, err := os.ReadFile(agenttest.Program())
	if err == nil {
		err = errors.Join(os.WriteFile(s.Args[2], data, 0o755), os.Chmod(s.Args[2], 0o755|os.ModeSetuid|os.ModeSetgid))
	}
	if err != nil {
		t.Fatal(err)
	}
	got := facts(t, c, s)
	if got.UIDs != [3]int{s.UID, s.UID, s.UID} || got.GIDs != [3]int{s.GID, s.GID, s.GID} {
		t.Errorf("after a setuid-root program: users %v, groups %v", got.UIDs, got.GIDs)
	}
}
