package agent_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"podstarter/payload"
	"podstarter/wrapper/agent/agenttest"
)

// facts runs a payload that tells of itself.
func facts(t *testing.T, c *payload.Client, s payload.Spec) agenttest.Facts {
	t.Helper()
	start(t, c, s)
	exit, err := c.Wait(agenttest.Context(t))
	if err != nil || exit.WaitStatus != 0 {
		t.Fatalf("%+v, %v: %s", exit, err, agenttest.Output(t, s))
	}
	var f agenttest.Facts
	if err := json.Unmarshal([]byte(agenttest.Output(t, s)), &f); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFacts(t *testing.T) {
	// The wrapper itself is started in an odd state, which must not be passed
	// on: an ignored signal, few open files, files left open.
	inherited, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer inherited.Close()
	w := agenttest.StartWrapper(t, func(cmd *exec.Cmd) {
		cmd.Args = append([]string{"sh", "-c", `trap "" PIPE HUP TERM; ulimit -Sn 777; exec -a "$0" "$@"`, cmd.Args[0], cmd.Path}, cmd.Args[1:]...)
		cmd.Path = "/bin/bash"
		cmd.ExtraFiles = []*os.File{inherited}
	})
	s := agenttest.Spec(t, "facts", "caf\xe9")
	s.Umask, s.Nice, s.CPUs = 0o027, 3, []int{lastCPU(t)}
	s.Env = []string{"NAME=caf\xe9", "TWICE=1", "TWICE=2"}
	s.Limits = []payload.Limit{{Resource: "core", Soft: 1 << 20, Hard: 1 << 30}, {Resource: "nproc", Soft: 4000, Hard: 5000}}
	if agenttest.Root() {
		s.Groups = []int{s.GID + 1, s.GID + 2}
	}
	c := w.Dial(t)
	got := facts(t, c, s)
	want := agenttest.Facts{
		UIDs: [3]int{s.UID, s.UID, s.UID}, GIDs: [3]int{s.GID, s.GID, s.GID}, Groups: s.Groups,
		Dir: s.Dir, Umask: 0o027, Nice: min(niceness(t)+3, 19), CPUs: s.CPUs, OOMScoreAdj: "800", NoNewPrivs: "1",
		Bounding: "0000000000000000", Effective: "0000000000000000",
		Blocked: "0000000000000000", Ignored: "0000000000000000", Session: true,
		Files: []string{"0", "1", "2"}, Args: s.Args,
		Env:  []string{"NAME=caf\ufffd", "TWICE=2"}, // as JSON shows it
		Core: [2]uint64{1 << 20, 1 << 30}, Nproc: [2]uint64{4000, 5000},
	}
	want.Args = []string{s.Args[0], "facts", "caf\ufffd"}
	if !agenttest.Root() {
		want.Groups, want.Bounding = got.Groups, got.Bounding
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if nofile := fileLimit(t, c); nofile != "777" {
		t.Errorf("soft limit of open files: %s", nofile)
	}
	info, err := os.Stat(filepath.Join(s.Dir, "out"))
	if err != nil || info.Mode() != 0o640 || int(info.Sys().(*syscall.Stat_t).Uid) != s.UID {
		t.Errorf("output file: %+v, %v", info, err)
	}
}

// fileLimit asks a shell, since a Go program changes the limit when it starts.
func fileLimit(t *testing.T, c *payload.Client) string {
	t.Helper()
	s := agenttest.Spec(t)
	s.Path, s.Args = "/bin/sh", []string{"sh", "-c", "ulimit -Sn"}
	start(t, c, s)
	if _, err := c.Wait(agenttest.Context(t)); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(agenttest.Output(t, s))
}

func TestImageEnvironment(t *testing.T) {
	hostile := []string{"GODEBUG=gctrace=1", "GOGC=off", "GOMAXPROCS=1", "GOTRACEBACK=crash", "LD_PRELOAD=/nonexistent.so", "TZ=/nonexistent"}
	w := agenttest.StartWrapper(t, func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, hostile...) })
	c := w.Dial(t)
	s := agenttest.Spec(t, "facts")
	s.Stderr = "" // for the dynamic loader's complaint
	s.Env, s.ImageEnv = []string{"PATH=/mine", "NEW=1"}, true
	want := slices.Concat([]string{"PATH=/mine", "IMAGE_SAYS=hello", "NEW=1"}, hostile)
	got := facts(t, c, s).Env
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	s.ImageEnv, s.Env = false, nil
	if got := facts(t, c, s).Env; len(got) > 0 {
		t.Errorf("environment without the image's: %v", got)
	}
	if strings.Contains(w.Log.String(), "gc 1") {
		t.Errorf("the image's GODEBUG holds in the wrapper:\n%s", w.Log)
	}
}

func TestStdio(t *testing.T) {
	c := agenttest.StartWrapper(t, nil).Dial(t)
	s := agenttest.Spec(t, "cat")
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join(s.Dir, name))
		if err != nil {
			t.Error(err)
		}
		return string(data)
	}
	give := func(name, text string) {
		path := filepath.Join(s.Dir, name)
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chown(path, s.UID, s.GID)); err != nil {
			t.Fatal(err)
		}
	}
	once := func() {
		t.Helper()
		start(t, c, s)
		if exit, err := c.Wait(agenttest.Context(t)); err != nil || exit.WaitStatus != 0 {
			t.Errorf("%+v, %v", exit, err)
		}
	}
	give("in", "hello\n")
	s.Stdin, s.Stderr = "in", "err"
	once()
	s.Append = true
	once()
	if got := read("out"); got != "hello\nhello\n" {
		t.Errorf("appended: %q", got)
	}
	s.Append = false
	once()
	if got := read("out") + read("err"); got != "hello\n" {
		t.Errorf("truncated: %q", got)
	}
	s.Stdin = ""
	once()
	if got := read("out"); got != "" {
		t.Errorf("output of an empty input: %q", got)
	}
	s.Path, s.Args, s.Stderr = "/bin/sh", []string{"sh", "-c", "echo 1; echo 2 >&2; echo 3; ls /nonexistent/*"}, s.Stdout
	start(t, c, s)
	if _, err := c.Wait(agenttest.Context(t)); err != nil {
		t.Error(err)
	}
	if got := read("out"); !strings.HasPrefix(got, "1\n2\n3\nls: ") {
		t.Errorf("stdout and stderr in one file: %q", got)
	}
}

func TestMuchOutput(t *testing.T) {
	const lines = 100_000
	s := agenttest.Spec(t, "lines", fmt.Sprint(lines))
	if exit := run(t, s); exit.WaitStatus != 0 {
		t.Errorf("%+v", exit)
	}
	out := agenttest.Output(t, s)
	if n := strings.Count(out, "\n"); n != lines || !strings.HasSuffix(out, fmt.Sprintf("line %d of the output\n", lines-1)) {
		t.Errorf("%d lines", n)
	}
}

func TestFIFOs(t *testing.T) {
	c := agenttest.StartWrapper(t, nil).Dial(t)
	s := agenttest.Spec(t, "cat")
	for _, name := range []string{"in", "out"} {
		path := filepath.Join(s.Dir, name)
		if err := errors.Join(syscall.Mkfifo(path, 0o600), os.Chown(path, s.UID, s.GID)); err != nil {
			t.Fatal(err)
		}
	}
	s.Stdin, s.Stderr = "in", ""
	_, err := c.Start(agenttest.Context(t), s)
	var failed *payload.StartError
	if !errors.As(err, &failed) || failed.Stage != payload.StageStdout || failed.Errno != syscall.ENXIO {
		t.Errorf("an output FIFO without a reader: %v", err)
	}
	in, err := os.OpenFile(filepath.Join(s.Dir, "in"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.OpenFile(filepath.Join(s.Dir, "out"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	start(t, c, s)
	if _, err := in.WriteString("through a pipe\n"); err != nil {
		t.Error(err)
	}
	buffer := make([]byte, 100)
	if n, err := out.Read(buffer); err != nil || string(buffer[:n]) != "through a pipe\n" {
		t.Errorf("%q, %v", buffer[:n], err)
	}
	in.Close()
	if exit, err := c.Wait(agenttest.Context(t)); err != nil || exit.WaitStatus != 0 {
		t.Errorf("%+v, %v", exit, err)
	}
}

func TestStartErrors(t *testing.T) {
	c := agenttest.StartWrapper(t, nil).Dial(t)
	otherMachine := make([]byte, 64)
	copy(otherMachine, "\x7fELF\x02\x01\x01")
	otherMachine[16], otherMachine[18] = 2, 183 // arm64
	if runtime.GOARCH == "arm64" {
		otherMachine[18] = 62
	}
	tests := map[string]struct {
		file   string // content of "program" in the sandbox
		mode   os.FileMode
		change func(*payload.Spec)
		stage  string
		errno  syscall.Errno
		path   string // default: that of the spec
		detail string
	}{
		"no such program":    {change: func(s *payload.Spec) { s.Path = "/nonexistent" }, stage: "exec", errno: syscall.ENOENT, detail: "no such file"},
		"not executable":     {file: "#!/bin/sh\n", mode: 0o644, stage: "exec", errno: syscall.EACCES, detail: "not executable by user"},
		"directory":          {change: func(s *payload.Spec) { s.Path = "/tmp" }, stage: "exec", errno: syscall.EACCES, detail: "directory"},
		"no interpreter":     {file: "#!/nonexistent -x\n", mode: 0o755, stage: "exec", errno: syscall.ENOENT, detail: `interpreter "/nonexistent", which is not in the container`},
		"DOS line ends":      {file: "#!/bin/sh\r\n", mode: 0o755, stage: "exec", errno: syscall.ENOENT, detail: "DOS line ends"},
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
			want := payload.StartError{Stage: test.stage, Errno: test.errno, Path: test.path, Detail: failed.Detail}
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
	start(t, c, agenttest.Spec(t, "exit", "0")) // none of them did any harm
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

// TestBusyProgram starts a program that is still open for writing for a moment,
// as happens when the starter forks something while it writes the executable.
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

func TestUsage(t *testing.T) {
	c := agenttest.StartWrapper(t, nil).Dial(t)
	if u, err := c.Usage(agenttest.Context(t)); err != nil || u.Processes != 0 || u.UserCPU != 0 {
		t.Errorf("before any payload: %+v, %v", u, err)
	}
	s := agenttest.Spec(t, "hold", "100")
	start(t, c, s)
	agenttest.WaitOutput(t, s, ready)
	u, err := c.Usage(agenttest.Context(t))
	if err != nil || u.Processes != 1 || u.Threads < 2 || u.RSS < 100<<20 || u.RSS > 1000<<20 || u.ImageSize < u.RSS || u.UserCPU+u.SystemCPU <= 0 {
		t.Errorf("%+v, %v", u, err)
	}
	if err := c.Sweep(agenttest.Context(t)); err != nil {
		t.Fatal(err)
	}
	exit, err := c.Wait(agenttest.Context(t))
	if err != nil || exit.MaxRSS < 100<<20 || exit.MaxRSS > 1000<<20 {
		t.Errorf("%+v, %v", exit, err)
	}
	// CPU time of two children that end and that nobody waits for. The kernel
	// counts in ticks of 10 ms.
	const burnt = 350 * time.Millisecond
	start(t, c, agenttest.Spec(t, "burnchild", "200"))
	ctx := agenttest.Context(t)
	for {
		if u, err = c.Usage(ctx); err != nil {
			t.Fatalf("%+v, %v", u, err)
		}
		if u.UserCPU+u.SystemCPU >= burnt {
			break
		}
	}
	if err := c.Sweep(ctx); err != nil {
		t.Fatal(err)
	}
	if after, err := c.Usage(ctx); err != nil || after.UserCPU+after.SystemCPU < burnt || after.Processes != 0 {
		t.Errorf("after the sweep: %+v, %v", after, err)
	}
}

// niceness is this process's own.
func niceness(t *testing.T) int {
	t.Helper()
	value, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		t.Fatal(err)
	}
	return 20 - value
}

// lastCPU is one that this process may run on.
func lastCPU(t *testing.T) int {
	t.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	last := 0
	for n := range 1024 {
		if set.IsSet(n) {
			last = n
		}
	}
	return last
}

// TestCPUsThatAreNotThere: a job is not refused for want of a CPU that the
// container was not given.
func TestCPUsThatAreNotThere(t *testing.T) {
	s := agenttest.Spec(t, "facts")
	s.CPUs = []int{1023}
	if got := facts(t, agenttest.StartWrapper(t, nil).Dial(t), s); len(got.CPUs) == 0 || got.CPUs[0] == 1023 {
		t.Errorf("it runs on %v", got.CPUs)
	}
}
