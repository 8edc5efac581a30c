package agent_test

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/payload"
	"podstarter/wrapper/agent/agenttest"
)

func pipe(t *testing.T, output bool, s payload.Spec) (keep, give *os.File) {
	t.Helper()
	keep, give, err := payload.Pipe(output, s.UID, s.GID)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { keep.Close(); give.Close() })
	return keep, give
}

// TestPassedFiles runs a payload between two pipes of the starter.
func TestPassedFiles(t *testing.T) {
	c := agenttest.StartWrapper(t, nil).Dial(t)
	for _, s := range []payload.Spec{agenttest.Spec(t, "cat"), agenttest.Spec(t, "cat")} {
		s.Stdout, s.Stderr, s.Passed = "", "err", []string{payload.Stdout, payload.Stdin}
		read, out := pipe(t, true, s)
		write, in := pipe(t, false, s)
		if _, err := c.Start(agenttest.Context(t), s, out, in); err != nil {
			t.Fatal(err)
		}
		out.Close()
		in.Close()
		const said = "through two pipes\n"
		if _, err := io.WriteString(write, said); err != nil {
			t.Fatal(err)
		}
		write.Close()
		// End of file comes only if neither wrapper nor launcher has kept an end.
		if got, err := io.ReadAll(read); err != nil || string(got) != said {
			t.Errorf("%q, %v", got, err)
		}
		if exit, err := c.Wait(agenttest.Context(t)); err != nil || exit.WaitStatus != 0 {
			t.Errorf("%+v, %v", exit, err)
		}
	}
}

// TestPassedFilesAreAllThatIsPassed checks that the payload has no other files open.
func TestPassedFilesAreAllThatIsPassed(t *testing.T) {
	c := agenttest.StartWrapper(t, nil).Dial(t)
	s := agenttest.Spec(t, "facts")
	s.Stdout, s.Stderr, s.Passed = "", "", []string{payload.Stdout, payload.Stderr}
	read, out := pipe(t, true, s)
	if _, err := c.Start(agenttest.Context(t), s, out, out); err != nil {
		t.Fatal(err)
	}
	out.Close()
	got, err := io.ReadAll(read)
	if err != nil || !strings.Contains(string(got), `"Files":["0","1","2"]`) {
		t.Errorf("%s, %v", got, err)
	}
}

// TestPipeBelongsToThePayload: the payload can open its own standard output again.
func TestPipeBelongsToThePayload(t *testing.T) {
	if !agenttest.Root() {
		t.Skip("this user's pipes are its own")
	}
	s := agenttest.Spec(t)
	read, _ := pipe(t, true, s)
	var st unix.Stat_t
	if err := unix.Fstat(int(read.Fd()), &st); err != nil || int(st.Uid) != s.UID {
		t.Errorf("user %d, %v", st.Uid, err)
	}
}

// TestPassedFilesAndNamesDiffer: with too few or too many files no payload starts, and the
// files are not used for the next request.
func TestPassedFilesAndNamesDiffer(t *testing.T) {
	c := agenttest.StartWrapper(t, nil).Dial(t)
	s := agenttest.Spec(t, "exit", "0")
	_, out := pipe(t, true, s)
	var failure *payload.StartError
	if _, err := c.Start(agenttest.Context(t), s, out); !errors.As(err, &failure) || failure.Stage != payload.StageSpec {
		t.Errorf("a file that nothing names: %v", err)
	}

	conn, lines := dialRaw(t, agenttest.StartWrapper(t, nil))
	line, err := payload.EncodeLine(payload.Request{ID: 1, Op: payload.OpStart, Spec: &s, Files: 5})
	if err != nil {
		t.Fatal(err)
	}
	if err := payload.SendFiles(conn, line, []*os.File{out, out, out, out, out}); err != nil {
		t.Fatal(err)
	}
	next := func() payload.Message {
		t.Helper()
		line, err := lines.Next()
		if err != nil {
			t.Fatal(err)
		}
		m, err := payload.DecodeMessage(line)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	if m := next(); m.Error == nil || m.Error.Code != payload.CodeBadRequest {
		t.Errorf("%+v", m)
	}
	s.Passed, s.Stdout, s.Stderr = []string{payload.Stdout}, "", ""
	line, err = payload.EncodeLine(payload.Request{ID: 2, Op: payload.OpStart, Spec: &s})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(line); err != nil {
		t.Fatal(err)
	}
	if m := next(); m.Error == nil || m.Error.Code != payload.CodeBadRequest {
		t.Errorf("a name without a file: %+v", m)
	}
}

// TestPipeDoesNotBlockTheStarter: a payload that never reads leaves the starter
// free to give up.
func TestPipeDoesNotBlockTheStarter(t *testing.T) {
	write, _ := pipe(t, false, payload.Spec{UID: os.Getuid(), GID: os.Getgid()})
	if err := write.SetWriteDeadline(time.Now().Add(time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := write.Write(make([]byte, 1<<21)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

// dialRaw connects to a wrapper when it is free, and reads its Hello.
func dialRaw(t *testing.T, w *agenttest.Wrapper) (*net.UnixConn, answers) {
	t.Helper()
	_ = w.Dial(t).Close() // the wrapper is up, but busy for a moment more
	for ctx := agenttest.Context(t); ; {
		sock, err := net.Dial("unix", filepath.Join(w.Dir, payload.SocketName))
		if err != nil {
			t.Fatal(err)
		}
		lines := payload.NewLineReader(sock, payload.MaxLine)
		line, err := lines.Next()
		if err != nil {
			t.Fatal(err)
		}
		if m, err := payload.DecodeMessage(line); err == nil && m.Hello != nil && !m.Hello.Busy {
			t.Cleanup(func() { sock.Close() })
			return sock.(*net.UnixConn), answers{lines}
		}
		sock.Close()
		if ctx.Err() != nil {
			t.Fatal("the wrapper stays busy")
		}
	}
}
