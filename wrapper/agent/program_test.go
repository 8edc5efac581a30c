package agent_test

import (
	"archive/tar"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"podstarter/payload"
	"podstarter/payload/devices"
	"podstarter/payload/imagetree"
	"podstarter/wrapper/agent"
	"podstarter/wrapper/agent/agenttest"
)

// script is a spec of a script that comes with the request.
func script(t *testing.T, text string) payload.Spec {
	s := agenttest.Spec(t)
	s.Path, s.Args, s.Stdout, s.Stderr = "/no/such/file", []string{"site-script", "setup"}, "", ""
	s.Program, s.Capture = []byte("#!/bin/sh\n"+text), 1<<10
	return s
}

// ended runs a spec on a connection and requires that it succeeds.
func ended(t *testing.T, c *payload.Client, s payload.Spec) payload.Exit {
	t.Helper()
	start(t, c, s)
	exit, err := c.Wait(agenttest.Context(t))
	if err != nil {
		t.Fatal(err)
	}
	if exit.WaitStatus != 0 {
		t.Fatalf("wait status %#x: %s", exit.WaitStatus, exit.Output)
	}
	return exit
}

// TestProgram: a program that comes with the request runs as the payload's user and gets
// its arguments; its output comes back.
func TestProgram(t *testing.T) {
	s := script(t, `echo "$1 $(id -u):$(id -g) $(pwd)"; echo trouble >&2`)
	exit := run(t, s)
	want := fmt.Sprintf("setup %d:%d %s\ntrouble\n", s.UID, s.GID, s.Dir)
	if string(exit.Output) != want || exit.WaitStatus != 0 {
		t.Errorf("status %#x, output %q, want %q", exit.WaitStatus, exit.Output, want)
	}
}

// TestProgramLeavesNoFile: the program's file disappears with it; only a script's
// interpreter has it open.
func TestProgramLeavesNoFile(t *testing.T) {
	c := agenttest.StartWrapper(t, nil).Dial(t)
	ended(t, c, script(t, "true"))
	s := agenttest.Spec(t, "facts")
	if got := facts(t, c, s); len(got.Files) != 3 {
		t.Errorf("the next run has the files %v", got.Files)
	}
}

// TestProgramELF: a binary program needs no interpreter.
func TestProgramELF(t *testing.T) {
	path, err := exec.LookPath("true")
	if err != nil {
		t.Fatal(err)
	}
	s := script(t, "")
	if s.Program, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	if exit := run(t, s); exit.WaitStatus != 0 {
		t.Errorf("%+v", exit)
	}
}

// TestProgramThatCannotRun: the error says what is wrong, as it does for files.
func TestProgramThatCannotRun(t *testing.T) {
	for name, tt := range map[string]struct{ text, words string }{
		"no interpreter": {"#!/no/such/shell\n", "/no/such/shell"},
		"no program":     {"hello", "without a first line"},
	} {
		t.Run(name, func(t *testing.T) {
			s := script(t, "")
			s.Program = []byte(tt.text)
			_, err := agenttest.StartWrapper(t, nil).Dial(t).Start(agenttest.Context(t), s)
			failure := (*payload.StartError)(nil)
			if !errors.As(err, &failure) || failure.Stage != payload.StageExec || !strings.Contains(failure.Detail, tt.words) {
				t.Errorf("%v, want stage %s and the words %q", err, payload.StageExec, tt.words)
			}
		})
	}
}

// TestCaptureIsBounded: a program that writes much is not blocked, only the first bytes are
// kept, and processes that it left do not delay its end.
func TestCaptureIsBounded(t *testing.T) {
	s := script(t, `head -c 300000 /dev/zero | tr '\0' x; sleep 1000 & exit 0`)
	exit := run(t, s)
	if len(exit.Output) != s.Capture || strings.Trim(string(exit.Output), "x") != "" {
		t.Errorf("%d bytes of output, want %d: %.40q", len(exit.Output), s.Capture, exit.Output)
	}
}

// TestAsRoot: such a program is root, without capabilities or a way to gain any.
func TestAsRoot(t *testing.T) {
	needRoot(t)
	c := agenttest.StartWrapper(t, nil).Dial(t)
	exit := ended(t, c, rootScript(t, `id -u; id -g; id -G; grep -E '^(Cap(Inh|Prm|Eff|Amb)|NoNewPrivs):' /proc/self/status; env | sort`))
	lines := strings.Split(strings.TrimSpace(string(exit.Output)), "\n")
	want := []string{"0", "0", "0",
		"CapInh:\t0000000000000000", "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000", "CapAmb:\t0000000000000000", "NoNewPrivs:\t1"}
	for i, line := range want {
		if i >= len(lines) || lines[i] != line {
			t.Fatalf("got %q, want to begin with %q", lines, want)
		}
	}
	if strings.Contains(string(exit.Output), "IMAGE_SAYS") {
		t.Errorf("it has the image's environment: %q", lines)
	}
	// The payload starts after root's processes are gone.
	if err := c.Sweep(agenttest.Context(t)); err != nil {
		t.Fatal(err)
	}
	if got := facts(t, c, agenttest.Spec(t, "facts")); got.UIDs[0] == 0 {
		t.Errorf("the payload is %+v", got)
	}
}

// TestRootIsNeverBesideThePayload: neither starts before a sweep has removed the other.
func TestRootIsNeverBesideThePayload(t *testing.T) {
	needRoot(t)
	c := agenttest.StartWrapper(t, nil).Dial(t)
	refused := func(s payload.Spec) {
		t.Helper()
		_, err := c.Start(agenttest.Context(t), s)
		failure := (*payload.StartError)(nil)
		if !errors.As(err, &failure) || failure.Stage != payload.StageIdentity {
			t.Fatalf("%v, want it refused", err)
		}
	}
	sweep := func() {
		t.Helper()
		if err := c.Sweep(agenttest.Context(t)); err != nil {
			t.Fatal(err)
		}
	}
	ended(t, c, rootScript(t, "true"))
	refused(agenttest.Spec(t, "exit", "0"))
	refused(rootScript(t, "true"))
	sweep()
	s := agenttest.Spec(t, "exit", "0")
	ended(t, c, s)
	refused(rootScript(t, "true"))
	sweep()
	ended(t, c, rootScript(t, "true"))
}

// TestSweepOfRoot: a sweep kills what root's program started, even if it tries to escape.
func TestSweepOfRoot(t *testing.T) {
	needRoot(t)
	c := agenttest.StartWrapper(t, nil).Dial(t)
	exit := ended(t, c, rootScript(t, `setsid sh -c 'setsid sleep 1000 & echo $!'; sleep 1000 & echo $!`))
	pids := strings.Fields(string(exit.Output))
	if len(pids) != 2 {
		t.Fatalf("%q", exit.Output)
	}
	if err := c.Sweep(agenttest.Context(t)); err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		if _, err := os.Stat("/proc/" + pid); err == nil {
			t.Errorf("process %s is alive", pid)
		}
	}
}

// TestSignalToRoot: root's program can be signalled while it runs.
func TestSignalToRoot(t *testing.T) {
	needRoot(t)
	c := agenttest.StartWrapper(t, nil).Dial(t)
	start(t, c, rootScript(t, "exec sleep 1000"))
	if err := c.Signal(agenttest.Context(t), unix.SIGTERM, false); err != nil {
		t.Fatal(err)
	}
	exit, err := c.Wait(agenttest.Context(t))
	if status := syscall.WaitStatus(exit.WaitStatus); err != nil || !status.Signaled() || status.Signal() != unix.SIGTERM {
		t.Errorf("%+v, %v", exit, err)
	}
}

// TestAsRootRefused: a companion refuses to run a program as root, and so does a wrapper
// whose pilot is not root.
func TestAsRootRefused(t *testing.T) {
	for name, option := range map[string][]string{"companion": {"-companion"}, "pilot": {"-pilot", "1000:10000"}} {
		t.Run(name, func(t *testing.T) {
			needRoot(t)
			w := agenttest.StartWrapper(t, func(cmd *exec.Cmd) { cmd.Args = append(cmd.Args, option...) })
			_, err := w.Dial(t).Start(agenttest.Context(t), rootScript(t, "true"))
			failure := (*payload.StartError)(nil)
			if !errors.As(err, &failure) || failure.Stage != payload.StageIdentity {
				t.Errorf("%v, want it refused", err)
			}
		})
	}
}

func rootScript(t *testing.T, text string) payload.Spec {
	s := script(t, text)
	s.AsRoot, s.Dir, s.Env = true, "/", []string{"PATH=/usr/bin:/bin"}
	return s
}

func needRoot(t *testing.T) {
	t.Helper()
	if !agenttest.Root() {
		t.Skip("needs root")
	}
}

// TestImageTree: the wrapper's own program runs as container-root on a stream that was passed to it. The
// limits let it write nothing, since its root is this machine's.
func TestImageTree(t *testing.T) {
	needRoot(t)
	s := rootScript(t, "")
	s.Program, s.Itself = nil, true
	s.Args, s.Passed = imagetree.Order{}.Args(), []string{payload.Stdin}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stream := tar.NewWriter(write)
	go func() {
		_ = stream.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "podstarter-test", Mode: 0o755})
		_ = stream.Close()
		write.Close()
	}()
	c := agenttest.StartWrapper(t, nil).Dial(t)
	_, err = c.Start(agenttest.Context(t), s, read)
	read.Close()
	if err != nil {
		t.Fatal(err)
	}
	exit, err := c.Wait(agenttest.Context(t))
	if err != nil || exit.WaitStatus != 0 {
		t.Fatalf("%+v, %v: %s", exit, err, exit.Output)
	}
	report, err := imagetree.Decode(exit.Output)
	want := imagetree.Report{Reason: imagetree.TooLarge, Path: "podstarter-test", Message: "the image has more than 0 files"}
	if diff := cmp.Diff(want, report); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := os.Lstat("/podstarter-test"); err == nil {
		t.Error("it wrote to the root of this machine")
	}
}

// TestItself: the wrapper's own program runs in the container, also as the payload's user, under the
// names that are meant for that and under no other.
func TestItself(t *testing.T) {
	spec := func(args ...string) payload.Spec {
		s := agenttest.Spec(t)
		return payload.Spec{Activation: s.Activation, UID: s.UID, GID: s.GID, Path: args[0], Args: args, Itself: true, Dir: "/", Capture: payload.MaxCapture}
	}
	t.Run("as the payload's user", func(t *testing.T) {
		exit := ended(t, agenttest.StartWrapper(t, nil).Dial(t), spec(devices.Program))
		if _, err := devices.Decode(exit.Output); err != nil {
			t.Errorf("%v: %q", err, exit.Output)
		}
	})
	for _, name := range []string{agent.WrapperName, "condor_pod_launcher", "sh", "/bin/" + devices.Program, ""} {
		t.Run("as "+name, func(t *testing.T) {
			s := spec(devices.Program)
			s.Args[0] = name
			_, err := agenttest.StartWrapper(t, nil).Dial(t).Start(agenttest.Context(t), s)
			failure := (*payload.StartError)(nil)
			if !errors.As(err, &failure) || failure.Stage != payload.StageIdentity {
				t.Errorf("%v, want it refused", err)
			}
		})
	}
}
