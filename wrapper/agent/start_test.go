package agent_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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

// facts runs a payload that reports about itself.
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
	// The wrapper itself starts in an odd state that the payload must not inherit: an
	// ignored signal, a low limit of open files, files left open.
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

// TestIgnoredSignals: a payload does not inherit signals that its wrapper was started to
// ignore. A companion catches few signals; the payload would inherit the disposition of the
// others.
func TestIgnoredSignals(t *testing.T) {
	w := agenttest.StartWrapper(t, func(cmd *exec.Cmd) {
		cmd.Args = append([]string{"sh", "-c", `trap "" TSTP TTIN TTOU; exec -a "$0" "$@"`, cmd.Args[0], cmd.Path}, append(cmd.Args[1:], "-companion")...)
		cmd.Path = "/bin/bash"
	})
	got := facts(t, w.Dial(t), agenttest.Spec(t, "facts"))
	if got.Ignored != "0000000000000000" || got.Blocked != "0000000000000000" {
		t.Errorf("the payload ignores %s and blocks %s", got.Ignored, got.Blocked)
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
	s.Stderr = "" // for the dynamic loader's error message
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
		t.Errorf("the image's GODEBUG affects the wrapper:\n%s", w.Log)
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
	// CPU time of two ended children that their parent did not wait for. The kernel counts
	// in ticks of 10 ms.
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

// TestUsageOfTheKilled: what killed processes have used is not lost, however soon
// somebody asks after the sweep.
func TestUsageOfTheKilled(t *testing.T) {
	c := agenttest.StartWrapper(t, nil).Dial(t)
	ctx := agenttest.Context(t)
	for range 10 {
		start(t, c, agenttest.Spec(t, "burnchild", "60000"))
		var before time.Duration
		for before < 100*time.Millisecond {
			u, err := c.Usage(ctx)
			if err != nil {
				t.Fatal(err)
			}
			before = u.UserCPU + u.SystemCPU
		}
		if err := c.Sweep(ctx); err != nil {
			t.Fatal(err)
		}
		if u, err := c.Usage(ctx); err != nil || u.UserCPU+u.SystemCPU < before {
			t.Errorf("%v before the sweep, after it %+v, %v", before, u, err)
		}
	}
}

// niceness gives this process's nice value.
func niceness(t *testing.T) int {
	t.Helper()
	value, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		t.Fatal(err)
	}
	return 20 - value
}

// lastCPU gives the last CPU that this process may run on.
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

// TestCPUsThatAreNotThere: a job starts even if the container does not have the CPU that it
// asks for.
func TestCPUsThatAreNotThere(t *testing.T) {
	s := agenttest.Spec(t, "facts")
	s.CPUs = []int{1023}
	if got := facts(t, agenttest.StartWrapper(t, nil).Dial(t), s); len(got.CPUs) == 0 || got.CPUs[0] == 1023 {
		t.Errorf("it runs on %v", got.CPUs)
	}
}
