package sshtojob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"podstarter/payload"
)

func TestMain(m *testing.M) {
	Dispatch()
	os.Exit(m.Run())
}

// patience limits each wait of a test.
const patience = time.Minute

// local runs the sessions' processes beside the test.
type local struct{ *exec.Cmd }

func (l local) Wait(context.Context) (syscall.WaitStatus, error) {
	_ = l.Cmd.Wait()
	return l.ProcessState.Sys().(syscall.WaitStatus), nil
}

func (l local) Signal(_ context.Context, sig syscall.Signal) error { return l.Process.Signal(sig) }

// runLocal does the work of a wrapper.
func runLocal(dir string) func(context.Context, Request, payload.ExecFiles) (Process, string, error) {
	return func(_ context.Context, r Request, files payload.ExecFiles) (Process, string, error) {
		c := exec.Command("/bin/sh")
		welcome := ""
		switch r.Kind {
		case KindSFTP:
			c = &exec.Cmd{Path: "/proc/self/exe", Args: []string{SFTPName}}
		case KindCommand:
			c = exec.Command("/bin/sh", "-c", string(r.Command))
		default:
			welcome = "Welcome!\n"
		}
		c.Dir, c.Env = dir, []string{"PATH=/usr/bin:/bin", "TERM=" + r.Term}
		for _, v := range r.Env {
			c.Env = append(c.Env, string(v))
		}
		if r.Terminal == nil {
			c.Stdin, c.Stdout, c.Stderr = files.Stdio[0], files.Stdio[1], files.Stdio[2]
			return local{c}, welcome, c.Start()
		}
		master, slave, err := openPair(r.Terminal)
		if err != nil {
			return nil, "", err
		}
		defer master.Close()
		defer slave.Close()
		if err := unix.Sendmsg(int(files.Channel.Fd()), []byte{0}, unix.UnixRights(int(master.Fd())), nil, 0); err != nil {
			return nil, "", err
		}
		c.Stdin, c.Stdout, c.Stderr = slave, slave, slave
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		return local{c}, welcome, c.Start()
	}
}

func openPair(size *payload.Terminal) (master, slave *os.File, err error) {
	m, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	if err := unix.IoctlSetPointerInt(m, unix.TIOCSPTLCK, 0); err != nil {
		return nil, nil, err
	}
	s, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(m), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		return nil, nil, errno
	}
	err = unix.IoctlSetWinsize(m, unix.TIOCSWINSZ, &unix.Winsize{Row: size.Rows, Col: size.Columns})
	return os.NewFile(uintptr(m), "master"), os.NewFile(s, "slave"), err
}

// enter begins a visit and returns the visit and a client that is logged in.
func enter(t *testing.T, dir string, run func(context.Context, Request, payload.ExecFiles) (Process, string, error)) (*ssh.Client, *Visit) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	near, far := connected(t)
	if run == nil {
		run = runLocal(dir)
	}
	v, err := Begin(ctx, Options{Conn: far, Keys: defaultKeys, Run: run})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	far.Close()
	if err := v.Open(); err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.ParsePrivateKey(v.Keys().Client)
	if err != nil {
		t.Fatal(err)
	}
	host, _, _, _, err := ssh.ParseAuthorizedKey(v.Keys().Host)
	if err != nil {
		t.Fatal(err)
	}
	conn, channels, requests, err := ssh.NewClientConn(near, "job", &ssh.ClientConfig{
		User: "anybody", Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: ssh.FixedHostKey(host),
	})
	if err != nil {
		t.Fatal(err)
	}
	client := ssh.NewClient(conn, channels, requests)
	t.Cleanup(func() { client.Close() })
	return client, v
}

func connected(t *testing.T) (near, far net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if near, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if far, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close() })
	return near, far
}

func newSession(t *testing.T, c *ssh.Client) *ssh.Session {
	t.Helper()
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func exitStatus(t *testing.T, err error) int {
	t.Helper()
	status := (*ssh.ExitError)(nil)
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		return status.ExitStatus()
	}
	t.Fatal(err)
	return -1
}

func TestCommands(t *testing.T) {
	dir := t.TempDir()
	client, _ := enter(t, dir, nil)
	tests := []struct {
		command, in, out, err string
		code                  int
	}{
		{"pwd", "", dir + "\n", "", 0},
		{"cat; echo odd >&2; exit 7", "through\n", "through\n", "odd\n", 7},
		{"kill -9 $$", "", "", "", 137},
		{"echo $LC_TEST", "", "client's\n", "", 0},
		{"head -c 1000000 /dev/zero | tr '\\0' x", "", strings.Repeat("x", 1000000), "", 0},
	}
	for _, test := range tests {
		t.Run(test.command, func(t *testing.T) {
			t.Parallel() // several sessions at once on one connection
			s := newSession(t, client)
			if err := s.Setenv("LC_TEST", "client's"); err != nil {
				t.Error(err)
			}
			var out, errs bytes.Buffer
			s.Stdin, s.Stdout, s.Stderr = strings.NewReader(test.in), &out, &errs
			if code := exitStatus(t, s.Run(test.command)); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if out.String() != test.out || errs.String() != test.err {
				t.Errorf("%.100q and %.100q, want %.100q and %.100q", out.String(), errs.String(), test.out, test.err)
			}
		})
	}
}

func TestTerminal(t *testing.T) {
	client, _ := enter(t, t.TempDir(), nil)
	s := newSession(t, client)
	if err := s.RequestPty("vt52", 24, 100, ssh.TerminalModes{ssh.ECHO: 0}); err != nil {
		t.Fatal(err)
	}
	in, err := s.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	s.Stdout = &out
	if err := s.Shell(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(in, "PS1=; stty size; echo $TERM; tty >/dev/null && exit 5\n")
	if code := exitStatus(t, s.Wait()); code != 5 {
		t.Errorf("exit code %d", code)
	}
	text := out.String()
	if !strings.HasPrefix(text, "Welcome!\r\n") || !strings.Contains(text, "24 100\r\n") || !strings.Contains(text, "vt52\r\n") {
		t.Errorf("%q", text)
	}
	if strings.Contains(text, "stty size") {
		t.Errorf("the terminal echoes, although the client turned that off: %q", text)
	}
}

// TestTerminalResized: the process gets the new size.
func TestTerminalResized(t *testing.T) {
	client, _ := enter(t, t.TempDir(), nil)
	s := newSession(t, client)
	if err := s.RequestPty("vt52", 24, 100, nil); err != nil {
		t.Fatal(err)
	}
	out, err := s.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start("trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.1; done"); err != nil {
		t.Fatal(err)
	}
	readTo(t, out, "ready")
	if err := s.WindowChange(50, 132); err != nil {
		t.Fatal(err)
	}
	readTo(t, out, "50 132")
}

func readTo(t *testing.T, r io.Reader, text string) {
	t.Helper()
	var all []byte
	buf := make([]byte, 1000)
	for !bytes.Contains(all, []byte(text)) {
		n, err := r.Read(buf)
		all = append(all, buf[:n]...)
		if err != nil {
			t.Fatalf("%v after %q", err, all)
		}
	}
}

// TestSignal: a signal from the client reaches the process.
func TestSignal(t *testing.T) {
	client, _ := enter(t, t.TempDir(), nil)
	s := newSession(t, client)
	out, err := s.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start("trap 'exit 9' USR1; echo ready; while :; do sleep 0.1; done"); err != nil {
		t.Fatal(err)
	}
	readTo(t, out, "ready")
	if err := s.Signal(ssh.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	if code := exitStatus(t, s.Wait()); code != 9 {
		t.Errorf("exit code %d", code)
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	client, _ := enter(t, dir, nil)
	files, err := sftp.NewClient(client)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	f, err := files.Create("given")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("content")); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "given")); err != nil || string(got) != "content" {
		t.Errorf("%q, %v", got, err)
	}
	if wd, err := files.Getwd(); err != nil || wd != dir {
		t.Errorf("in %q, %v", wd, err)
	}
}

// TestForward: a listener beside the job can be reached through the connection.
func TestForward(t *testing.T) {
	client, _ := enter(t, t.TempDir(), nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			_, _ = io.Copy(c, c)
			c.Close()
		}
	}()
	c, err := client.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "there and back")
	readTo(t, c, "there and back")
	if _, err := client.Dial("unix", "/run/secret"); err == nil {
		t.Error("a socket with a path was reached")
	}
}
