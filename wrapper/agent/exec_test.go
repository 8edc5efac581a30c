package agent_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"podstarter/payload"
	"podstarter/wrapper/agent/agenttest"
)

// beside makes an exec of a shell command, with the payload's identity.
func beside(s payload.Spec, command string) payload.Exec {
	s.Path, s.Args = "/bin/sh", []string{"sh", "-c", command}
	s.Stdin, s.Stdout, s.Stderr, s.Append = "", "", "", false
	return payload.Exec{Spec: s}
}

// pipes are the standard files of a process, and the test's ends of them.
type pipes struct {
	payload.ExecFiles
	in       *os.File
	out, err *os.File
}

func newPipes(t *testing.T) *pipes {
	t.Helper()
	p := new(pipes)
	make := func() (r, w *os.File) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close(); w.Close() })
		return r, w
	}
	p.Stdio[0], p.in = make()
	p.out, p.Stdio[1] = make()
	p.err, p.Stdio[2] = make()
	return p
}

// passed closes what belongs to the process.
func (p *pipes) passed() {
	for _, f := range p.Stdio {
		f.Close()
	}
}

func execute(t *testing.T, c *payload.Client, e payload.Exec, files payload.ExecFiles) payload.Execution {
	t.Helper()
	x, err := c.Exec(agenttest.Context(t), e, files)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func execEnded(t *testing.T, x payload.Execution) syscall.WaitStatus {
	t.Helper()
	status, err := x.Wait(agenttest.Context(t))
	if err != nil {
		t.Fatal(err)
	}
	return status
}

func sleeping(t *testing.T) (*agenttest.Wrapper, *payload.Client, payload.Spec) {
	t.Helper()
	w := agenttest.StartWrapper(t, nil)
	c := w.Dial(t)
	s := agenttest.Spec(t, "sleep")
	start(t, c, s)
	return w, c, s
}

// TestExec: a process beside the payload has the payload's identity and directory, but its
// own files and exit.
func TestExec(t *testing.T) {
	_, c, s := sleeping(t)
	p := newPipes(t)
	e := beside(s, `read line; echo "$line $VAR"; id -u; pwd; echo odd >&2; exit 7`)
	e.Spec.Env = append(e.Spec.Env, "VAR=value", "PATH=/usr/bin:/bin")
	x := execute(t, c, e, p.ExecFiles)
	p.passed()
	if _, err := p.in.WriteString("hello\n"); err != nil {
		t.Fatal(err)
	}
	out, _ := io.ReadAll(p.out)
	errs, _ := io.ReadAll(p.err)
	id := make([]byte, 0)
	id = appendInt(id, s.UID)
	if want := "hello value\n" + string(id) + "\n" + s.Dir + "\n"; string(out) != want || string(errs) != "odd\n" {
		t.Errorf("%q and %q, not %q", out, errs, want)
	}
	if status := execEnded(t, x); status.ExitStatus() != 7 {
		t.Errorf("wait status %#x", status)
	}
	if err := c.Signal(agenttest.Context(t), syscall.SIGKILL, false); err != nil {
		t.Error("the payload is gone:", err)
	}
}

func appendInt(b []byte, n int) []byte {
	if n >= 10 {
		b = appendInt(b, n/10)
	}
	return append(b, byte('0'+n%10))
}

// TestExecMany: several at once, each with its own files and exit.
func TestExecMany(t *testing.T) {
	_, c, s := sleeping(t)
	const many = 8
	type one struct {
		x payload.Execution
		p *pipes
	}
	var all []one
	for i := range many {
		p := newPipes(t)
		e := beside(s, "read line; exit $line")
		e.Spec.Umask = i
		all = append(all, one{execute(t, c, e, p.ExecFiles), p})
		p.passed()
	}
	for i, o := range all {
		_, _ = o.p.in.Write(append(appendInt(nil, i), '\n'))
	}
	for i, o := range all {
		if status := execEnded(t, o.x); status.ExitStatus() != i {
			t.Errorf("number %d: wait status %#x", i, status)
		}
	}
}

// TestExecTerminal: the terminal is in the container, belongs to the payload, controls the
// session and has the requested size.
func TestExecTerminal(t *testing.T) {
	_, c, s := sleeping(t)
	master, x := onTerminal(t, c, beside(s, `tty; stat -c %u $(tty); stty size < /dev/tty; read line; kill -INT $$`))
	out := readUntil(t, master, "24 100")
	lines := strings.Fields(out)
	if len(lines) != 4 || !strings.HasPrefix(lines[0], "/dev/pts/") || lines[1] != string(appendInt(nil, s.UID)) {
		t.Errorf("tty(1) calls the terminal %q", out)
	}
	if _, err := master.WriteString("go\n"); err != nil {
		t.Fatal(err)
	}
	if status := execEnded(t, x); !status.Signaled() || status.Signal() != syscall.SIGINT {
		t.Errorf("wait status %#x", status)
	}
}

// TestExecHangup: a process on a terminal gets SIGHUP when the terminal closes.
func TestExecHangup(t *testing.T) {
	_, c, s := sleeping(t)
	master, x := onTerminal(t, c, beside(s, `echo ready; exec sleep 1000`))
	readUntil(t, master, "ready")
	master.Close()
	if status := execEnded(t, x); !status.Signaled() || status.Signal() != syscall.SIGHUP {
		t.Errorf("wait status %#x", status)
	}
}

func onTerminal(t *testing.T, c *payload.Client, e payload.Exec) (*os.File, payload.Execution) {
	t.Helper()
	e.Terminal = &payload.Terminal{Rows: 24, Columns: 100}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	near, far := os.NewFile(uintptr(pair[0]), "near"), os.NewFile(uintptr(pair[1]), "far")
	defer near.Close()
	x := execute(t, c, e, payload.ExecFiles{Channel: far})
	far.Close()
	conn, err := net.FileConn(near)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r := payload.NewFileReader(conn.(*net.UnixConn), 1)
	if _, err := r.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	files := r.Take(1)
	if len(files) != 1 {
		t.Fatal("no terminal came")
	}
	t.Cleanup(func() { files[0].Close() })
	return files[0], x
}

func readUntil(t *testing.T, f *os.File, text string) string {
	t.Helper()
	var all bytes.Buffer
	buf := make([]byte, 1000)
	for !strings.Contains(all.String(), text) {
		n, err := f.Read(buf)
		if err != nil {
			t.Fatalf("%v after %q", err, all.String())
		}
		all.Write(buf[:n])
	}
	return all.String()
}

// TestExecAttempts: the first program that exists is executed, or at last the one that came
// with the request and is not in the container.
func TestExecAttempts(t *testing.T) {
	_, c, s := sleeping(t)
	for _, test := range []struct {
		name   string
		path   string
		others []payload.Attempt
		want   string
	}{
		{"first", "/bin/sh", []payload.Attempt{{Path: "/bin/false"}}, "first"},
		{"second", "/no/such/shell", []payload.Attempt{{Path: "/bin/sh", Args: []string{"sh", "-c", "echo second"}}, {Path: "/bin/false"}}, "second"},
		{"search", "no-such-shell", []payload.Attempt{{Path: "/etc/passwd"}, {Path: "sh", Args: []string{"sh", "-c", "echo search"}}}, "search"},
		{"passed", "/no/such/shell", []payload.Attempt{{Args: []string{"busy", "-c", "echo passed $0"}}}, "passed busy"},
	} {
		t.Run(test.name, func(t *testing.T) {
			shell, err := os.Open("/bin/sh")
			if err != nil {
				t.Fatal(err)
			}
			defer shell.Close()
			p := newPipes(t)
			p.Program = shell
			e := beside(s, "echo first")
			e.Spec.Path, e.Spec.SearchPath, e.Others = test.path, true, test.others
			e.Spec.Env = []string{"PATH=/usr/bin:/bin"}
			x := execute(t, c, e, p.ExecFiles)
			p.passed()
			if out, _ := io.ReadAll(p.out); strings.TrimSpace(string(out)) != test.want {
				t.Errorf("%q", out)
			}
			if status := execEnded(t, x); status.ExitStatus() != 0 {
				t.Errorf("wait status %#x", status)
			}
		})
	}
}

// TestExecRefused: a process that cannot be started gives an error and leaves nothing
// behind.
func TestExecRefused(t *testing.T) {
	w := agenttest.StartWrapper(t, nil)
	c := w.Dial(t)
	s := agenttest.Spec(t, "sleep")
	try := func(e payload.Exec) error {
		p := newPipes(t)
		defer p.passed()
		_, err := c.Exec(agenttest.Context(t), e, p.ExecFiles)
		return err
	}
	var refusal *payload.RequestError
	if err := try(beside(s, "true")); !errors.As(err, &refusal) || refusal.Code != payload.CodeNoPayload {
		t.Errorf("before the payload starts: %v", err)
	}
	start(t, c, s)
	var failure *payload.StartError
	other := beside(s, "true")
	other.Spec.UID++
	if err := try(other); !errors.As(err, &failure) || failure.Stage != payload.StageIdentity {
		t.Errorf("as another user: %v", err)
	}
	missing := beside(s, "true")
	missing.Spec.Path = "/no/such/program"
	if err := try(missing); !errors.As(err, &failure) || failure.Stage != payload.StageExec || failure.Errno != syscall.ENOENT {
		t.Errorf("a missing program: %v", err)
	}
	dir := beside(s, "true")
	dir.Spec.Dir = filepath.Join(s.Dir, "no-such-directory")
	if err := try(dir); !errors.As(err, &failure) || failure.Stage != payload.StageChdir {
		t.Errorf("a missing directory: %v", err)
	}
	rehearsal := beside(s, "true")
	rehearsal.Spec.Rehearse = true
	if err := try(rehearsal); !errors.As(err, &failure) || failure.Stage != payload.StageSpec {
		t.Errorf("a rehearsal: %v", err)
	}
	program := beside(s, "true")
	program.Others = []payload.Attempt{{Args: []string{"x"}}}
	if err := try(program); !errors.As(err, &failure) || failure.Stage != payload.StageSpec {
		t.Errorf("a program that did not come with the request: %v", err)
	}
	if err := c.Sweep(agenttest.Context(t)); err != nil {
		t.Fatal(err)
	}
	if err := try(beside(s, "true")); !errors.As(err, &refusal) || refusal.Code != payload.CodeNoPayload {
		t.Errorf("after the sweep: %v", err)
	}
}

// TestExecSignal: a signal reaches only that process.
func TestExecSignal(t *testing.T) {
	_, c, s := sleeping(t)
	p := newPipes(t)
	x := execute(t, c, beside(s, "echo ready; exec sleep 1000"), p.ExecFiles)
	p.passed()
	readUntil(t, p.out, "ready")
	if err := x.Signal(agenttest.Context(t), syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	if status := execEnded(t, x); status.Signal() != syscall.SIGUSR1 {
		t.Errorf("wait status %#x", status)
	}
	var refusal *payload.RequestError
	if err := x.Signal(agenttest.Context(t), syscall.SIGUSR1); !errors.As(err, &refusal) || refusal.Code != payload.CodeNoPayload {
		t.Errorf("a signal to a process that has ended: %v", err)
	}
}

// TestExecSwept: processes beside the payload outlive its main process, but not a sweep or
// the loss of the starter.
func TestExecSwept(t *testing.T) {
	for _, how := range []string{"sweep", "lost"} {
		t.Run(how, func(t *testing.T) {
			_, c, s := sleeping(t)
			p := newPipes(t)
			x := execute(t, c, beside(s, "setsid sleep 1000 & trap '' HUP TERM; echo ready; while :; do sleep 1000; done"), p.ExecFiles)
			p.passed()
			readUntil(t, p.out, "ready")
			if err := c.Signal(agenttest.Context(t), syscall.SIGKILL, false); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Wait(agenttest.Context(t)); err != nil {
				t.Fatal(err)
			}
			if how == "lost" {
				c.Close()
				if _, err := x.Wait(agenttest.Context(t)); !errors.Is(err, payload.ErrLost) {
					t.Error(err)
				}
			} else {
				if err := c.Sweep(agenttest.Context(t)); err != nil {
					t.Fatal(err)
				}
				if status := execEnded(t, x); status.Signal() != syscall.SIGKILL {
					t.Errorf("wait status %#x", status)
				}
			}
			// The last writer of the pipe is gone.
			if _, err := io.ReadAll(p.out); err != nil {
				t.Error(err)
			}
		})
	}
}
