package channel

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// started runs a shell script whose first line of output says its processes' numbers; it returns them as pidfds. The
// result of Run comes later.
func started(t *testing.T, ctx context.Context, run func(context.Context, Command) (int, error), cmd Command) (pids []int, result <-chan string) {
	t.Helper()
	reader, writer := io.Pipe()
	cmd.Stdout = writer
	done := make(chan string, 1)
	go func() {
		code, err := run(ctx, cmd)
		writer.Close()
		done <- fmt.Sprint(code, " ", err)
	}()
	lines := bufio.NewReader(reader)
	first, err := lines.ReadString('\n')
	if err != nil {
		t.Fatalf("the script says %q and ends: %s", first, <-done)
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	for _, f := range strings.Fields(first) {
		pid, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pidfd(t, pid))
	}
	return pids, done
}

// pidfd is a descriptor for a process that runs, so that its number cannot become another's.
func pidfd(t *testing.T, pid int) int {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		unix.Close(fd)
	})
	return fd
}

// ended waits for the end of a process; the test hangs, and its stacks are shown, if it does not come.
func ended(t *testing.T, fd int) {
	t.Helper()
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
		if n == 1 {
			return
		}
		if !errors.Is(err, unix.EINTR) {
			t.Fatal(err)
		}
	}
}

func runs(t *testing.T, fd int) bool {
	t.Helper()
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return n == 0
}

// twoProcesses is a shell with a child, which both ignore polite signals.
const twoProcesses = `trap '' TERM INT HUP; sleep 1000 & echo $$ $!; wait`

func TestEndOfTheClientKills(t *testing.T) {
	dial, _ := server(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	pids, result := started(t, ctx, func(ctx context.Context, cmd Command) (int, error) { return Run(ctx, dial(), cmd) },
		Command{Args: []string{"sh", "-c", twoProcesses}})
	cancel()
	for _, pid := range pids {
		ended(t, pid)
	}
	if got, want := <-result, "-1 running sh in the guest: context canceled"; got != want {
		t.Errorf("Run says %q, want %q", got, want)
	}
}

func TestEndOfTheServerKills(t *testing.T) {
	dial, stop := server(t)
	pids, result := started(t, t.Context(), func(ctx context.Context, cmd Command) (int, error) { return Run(ctx, dial(), cmd) },
		Command{Args: []string{"sh", "-c", twoProcesses}})
	stop()
	if runs(t, pids[0]) {
		t.Error("the server ends before the command")
	}
	for _, pid := range pids {
		ended(t, pid)
	}
	if got, want := <-result, "-1 running sh in the guest: "+errServerEnds.Error(); got != want {
		t.Errorf("Run says %q, want %q", got, want)
	}
}

// A process in the background that kept the command's output neither delays its end nor survives it, unless it made a
// session of its own.
func TestWhatTheCommandLeaves(t *testing.T) {
	dial, _ := server(t)
	for _, tc := range []struct {
		name, script string
		survives     bool
	}{
		{name: "a child", script: `sleep 1000 & echo $!; read line; echo last`},
		{name: "a daemon", script: `setsid sleep 1000 & echo $!; read line; echo last`, survives: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			stdin, release := io.Pipe()
			var out bytes.Buffer
			pids, result := started(t, t.Context(), func(ctx context.Context, cmd Command) (int, error) {
				cmd.Stdout = io.MultiWriter(cmd.Stdout, &out)
				return Run(ctx, dial(), cmd)
			}, Command{Args: []string{"sh", "-c", tc.script}, Stdin: stdin})
			if tc.survives {
				waitSession(t, pids[0])
			}
			if _, err := io.WriteString(release, "go on\n"); err != nil {
				t.Fatal(err)
			}
			if got := <-result; got != "0 <nil>" {
				t.Errorf("Run says %q", got)
			}
			if !strings.HasSuffix(out.String(), "\nlast\n") {
				t.Errorf("the output is %q", out.String())
			}
			if !tc.survives {
				ended(t, pids[0])
			} else if !runs(t, pids[0]) {
				t.Error("the daemon was killed")
			}
		})
	}
}

// waitSession waits until the process has a session of its own.
func waitSession(t *testing.T, fd int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", fd))
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, "Pid:"); ok {
			if pid, err = strconv.Atoi(strings.TrimSpace(v)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for {
		sid, err := unix.Getsid(pid)
		if err != nil {
			t.Fatal(err)
		}
		if sid == pid {
			return
		}
	}
}

func TestSignals(t *testing.T) {
	dial, _ := server(t)
	for _, tc := range []struct {
		name, script string
		signal       syscall.Signal
		want         string
	}{
		{name: "SIGTERM reaches the command", signal: syscall.SIGTERM, want: "143 <nil>",
			script: `echo $$; exec sleep 1000`},
		{name: "SIGTERM does not reach its child", signal: syscall.SIGTERM, want: "137 <nil>",
			script: `sleep 1000 & child=$!; trap 'kill -KILL $child; wait $child; exit $?' TERM; echo $$; wait`},
		{name: "SIGINT reaches its child", signal: syscall.SIGINT, want: "6 <nil>",
			script: `trap : INT; sh -c 'trap "exit 6" INT; echo $$; while :; do sleep 0.01; done'`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			signals := make(chan os.Signal, 1)
			_, result := started(t, t.Context(), func(ctx context.Context, cmd Command) (int, error) { return Run(ctx, dial(), cmd) },
				Command{Args: []string{"sh", "-c", tc.script}, Signals: signals, Stdin: endless{}})
			signals <- tc.signal
			if got := <-result; got != tc.want {
				t.Errorf("Run says %q, want %q", got, tc.want)
			}
		})
	}
}

func TestManyAtOnce(t *testing.T) {
	dial, _ := server(t)
	const commands = 30
	var inputs [commands]*io.PipeWriter
	var results [commands]<-chan string
	for i := range commands {
		stdin, release := io.Pipe()
		inputs[i] = release
		_, results[i] = started(t, t.Context(), func(ctx context.Context, cmd Command) (int, error) { return Run(ctx, dial(), cmd) },
			Command{Args: []string{"sh", "-c", "echo $$; read code; exit $code"}, Stdin: stdin})
	}
	for i, in := range inputs {
		fmt.Fprintln(in, i)
	}
	for i, result := range results {
		if got, want := <-result, fmt.Sprintf("%d <nil>", i); got != want {
			t.Errorf("command %d: Run says %q", i, got)
		}
	}
}

// A connection whose closing is seen.
type watched struct {
	net.Conn
	ended  atomic.Bool
	closed func(ended bool)
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if errors.Is(err, io.EOF) {
		w.ended.Store(true)
	}
	return n, err
}

func (w *watched) Close() error {
	w.closed(w.ended.Load())
	return w.Conn.Close()
}

// The server closes last: what the client has not yet received would be lost if it sent something to a closed connection.
func TestClientClosesFirst(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for _, args := range [][]string{{"true"}, {"/no/such"}} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			conn, err := listener.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			serveConn(t.Context(), &watched{Conn: conn, closed: func(ended bool) {
				if !ended {
					t.Errorf("%q: the server closes first", args)
				}
			}})
		}()
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = Run(t.Context(), conn, Command{Args: args})
		<-done
	}
}
