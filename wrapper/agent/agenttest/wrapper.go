//nolint:forbidigo,errcheck // test programs, in temporary directories, with output to be read
package agenttest

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"podstarter/payload"
	"podstarter/payload/procfamily"
	"podstarter/wrapper/agent"
)

// patience bounds everything a test waits for.
const patience = 20 * time.Second

// Wrapper is a running wrapper.
type Wrapper struct {
	Dir   string // control directory
	Nonce string
	Cmd   *exec.Cmd
	Log   *Buffer
	done  chan struct{}
}

// Buffer is a log that can be read while it is written.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// String gives what was written.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Context ends with the test's patience.
func Context(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// StartWrapper starts a wrapper with a control directory of its own. change may
// be nil, or change the command.
func StartWrapper(t testing.TB, change func(*exec.Cmd)) *Wrapper {
	t.Helper()
	return StartWrapperIn(t, filepath.Join(PublicDir(t), "control", "payload"), change)
}

// StartWrapperIn starts a wrapper in a given control directory.
func StartWrapperIn(t testing.TB, dir string, change func(*exec.Cmd)) *Wrapper {
	t.Helper()
	w := &Wrapper{Dir: dir, Nonce: "nonce of " + t.Name(), Log: new(Buffer), done: make(chan struct{})}
	w.Cmd = exec.Command(Program(), "-control", w.Dir)
	w.Cmd.Args[0] = agent.WrapperName
	w.Cmd.Stderr = w.Log
	w.Cmd.Dir = "/"
	w.Cmd.Env = []string{payload.NonceEnv + "=" + w.Nonce, "PATH=/usr/bin:/bin", "IMAGE_SAYS=hello"}
	w.Cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if change != nil {
		change(w.Cmd)
	}
	if err := w.Cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = w.Cmd.Wait()
		close(w.done)
	}()
	t.Cleanup(func() {
		w.End(t)
		if strings.Contains(w.Log.String(), "DATA RACE") {
			t.Error("the race detector has found something in the wrapper")
		}
		if t.Failed() && w.Log.String() != "" {
			t.Logf("the wrapper's log:\n%s", w.Log)
		}
	})
	return w
}

// End makes the wrapper leave.
func (w *Wrapper) End(t testing.TB) {
	_ = w.Cmd.Process.Signal(syscall.SIGTERM)
	w.WaitEnd(t)
}

// SignalUntilEnd sends a signal, more than once if need be, until the wrapper has
// ended.
func (w *Wrapper) SignalUntilEnd(t testing.TB, sig syscall.Signal) {
	t.Helper()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	ctx := Context(t)
	for {
		_ = w.Cmd.Process.Signal(sig)
		select {
		case <-w.done:
			return
		case <-ctx.Done():
			t.Fatalf("signal %d does not end the wrapper", int(sig))
		case <-again.C:
		}
	}
}

// WaitEnd waits until the wrapper has ended.
func (w *Wrapper) WaitEnd(t testing.TB) {
	t.Helper()
	select {
	case <-w.done:
	case <-time.After(patience):
		t.Errorf("the wrapper does not end; log:\n%s", w.Log)
		_ = w.Cmd.Process.Kill()
	}
}

// Dial connects to the wrapper.
func (w *Wrapper) Dial(t testing.TB) *payload.Client {
	t.Helper()
	c, err := payload.Dial(Context(t), payload.Options{Dir: w.Dir, Nonce: w.Nonce})
	if err != nil {
		t.Fatalf("%v; the wrapper's log:\n%s", err, w.Log)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Family is the payload of the wrapper, seen from outside the wrapper.
func (w *Wrapper) Family() procfamily.Family {
	if Root() {
		return procfamily.OfUser("/proc", payloadUID())
	}
	return procfamily.OfDescendants("/proc", w.Cmd.Process.Pid)
}

// PublicDir is a temporary directory that other users may enter.
func PublicDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "agenttest")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Sandbox is a directory of the payload's user.
func Sandbox(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(PublicDir(t), "sandbox")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	uid, gid := Payload()
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Spec runs the test payload in a fresh sandbox, with its output in "out" there.
func Spec(t testing.TB, args ...string) payload.Spec {
	t.Helper()
	uid, gid := Payload()
	return payload.Spec{
		Activation: "test", UID: uid, GID: gid, Path: Program(),
		Args: append([]string{jobName}, args...), Dir: Sandbox(t),
		Umask: 0o022, Stdout: "out", Stderr: "out",
	}
}

// Bomb is a payload that forks for ever, and has most processes or a few more in the end.
func Bomb(t testing.TB, most uint64) payload.Spec {
	t.Helper()
	s := Spec(t, "bomb")
	if !Root() {
		most += 3000 // the kernel counts what other tests of this user have, too
	}
	s.Limits = []payload.Limit{{Resource: "nproc", Soft: most, Hard: most}}
	return s
}

// Output is what a payload has written.
func Output(t testing.TB, s payload.Spec) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(s.Dir, s.Stdout))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// WaitOutput waits until the payload's output satisfies a condition.
func WaitOutput(t testing.TB, s payload.Spec, enough func(string) bool) {
	t.Helper()
	ctx := Context(t)
	ticker := time.NewTicker(2 * time.Millisecond) // files do not announce changes
	defer ticker.Stop()
	for !enough(Output(t, s)) {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("the payload wrote only:\n%s", Output(t, s))
		}
	}
}

// WaitTree waits until a "tree" has all its leaves and starts no more.
func WaitTree(t testing.TB, s payload.Spec) {
	t.Helper()
	WaitOutput(t, s, func(out string) bool {
		return strings.Count(out, "leaf ") == Leaves && strings.Contains(out, "ready\n")
	})
}
