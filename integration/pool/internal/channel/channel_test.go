package channel

import (
	"bytes"
	"context"
	"net"
	"strings"
	"testing"
)

// server runs Serve on loopback for the test and returns a function that connects to it.
func server(t *testing.T) (dial func() net.Conn, stop func()) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, listener) }()
	stopped := false
	stop = func() {
		cancel()
		if stopped {
			return
		}
		stopped = true
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	}
	t.Cleanup(stop)
	return func() net.Conn {
		t.Helper()
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}, stop
}

func TestRun(t *testing.T) {
	dial, _ := server(t)
	for _, tc := range []struct {
		name           string
		cmd            Command
		stdin          string
		code           int
		stdout, stderr string
		err            string
	}{
		{name: "streams and code", cmd: Command{Args: []string{"sh", "-c", "cat; echo err >&2; exit 7"}}, stdin: "in", code: 7, stdout: "in", stderr: "err\n"},
		{name: "signal", cmd: Command{Args: []string{"sh", "-c", "kill -TERM $$"}}, code: 128 + 15},
		{name: "directory", cmd: Command{Args: []string{"pwd"}, Dir: "/usr"}, stdout: "/usr\n"},
		{name: "environment", cmd: Command{Args: []string{"/usr/bin/env"}, Env: []string{"A=\xff b", "B="}}, stdout: "A=\xff b\nB=\n"},
		{name: "no environment", cmd: Command{Args: []string{"/usr/bin/env"}, Env: []string{}}},
		{name: "path of the environment", cmd: Command{Args: []string{"sh", "-c", "exit 3"}, Env: []string{"PATH=/nowhere:/bin"}}, code: 3},
		{name: "not in the path", cmd: Command{Args: []string{"sh"}, Env: []string{"PATH=/nowhere"}}, code: -1, err: `running sh in the guest: exec: "sh": file does not exist in the PATH "/nowhere"`},
		{name: "no program", cmd: Command{Args: []string{"/no/such"}}, code: -1, err: "running /no/such in the guest: fork/exec /no/such: no such file or directory"},
		{name: "no directory", cmd: Command{Args: []string{"sh"}, Dir: "/no/such"}, code: -1, err: "running sh in the guest: changing the directory: stat /no/such: no such file or directory"},
		{name: "no arguments", code: -1, err: "running a command in the guest: it has no program"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			tc.cmd.Stdin, tc.cmd.Stdout, tc.cmd.Stderr = strings.NewReader(tc.stdin), &stdout, &stderr
			code, err := Run(t.Context(), dial(), tc.cmd)
			var text string
			if err != nil {
				text = err.Error()
			}
			if code != tc.code || text != tc.err || stdout.String() != tc.stdout || stderr.String() != tc.stderr {
				t.Errorf("Run = %d, %q, output %q, errors %q; want %d, %q, %q, %q", code, text, stdout.String(), stderr.String(), tc.code, tc.err, tc.stdout, tc.stderr)
			}
		})
	}
}
