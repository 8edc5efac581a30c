package payload

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// fakeWrapper serves a control directory with a function for each connection.
func fakeWrapper(t *testing.T, dir string, serve func(net.Conn)) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	temporary := filepath.Join(dir, "temporary")
	l, err := net.Listen("unix", temporary)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				serve(conn)
			}()
		}
	}()
	if err := os.Rename(temporary, filepath.Join(dir, SocketName)); err != nil {
		t.Fatal(err)
	}
}

// say writes text and waits for the other side to hang up.
func say(text string) func(net.Conn) {
	return func(c net.Conn) {
		if _, err := c.Write([]byte(text)); err != nil {
			return
		}
		_, _ = c.Read(make([]byte, 1))
	}
}

func soon(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

const (
	patience = 20 * time.Second
	moment   = 50 * time.Millisecond
)

func TestConnectRefuses(t *testing.T) {
	tests := map[string]struct{ hello, want string }{
		"other nonce":    {`{"hello":{"protocol":2,"nonce":"old","boot":"b"}}` + "\n", "created before the binding"},
		"busy":           {`{"hello":{"protocol":2,"nonce":"new","busy":true}}` + "\n", ErrBusy.Error()},
		"other protocol": {`{"hello":{"protocol":1,"nonce":"new"}}` + "\n", "another version"},
		"no hello":       {`{"id":1,"done":true}` + "\n", "instead of a hello"},
		"rubbish":        {"rubbish\n", "instead of a hello"},
		"endless":        {strings.Repeat("x", MaxLine+1<<16), "line too long"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			fakeWrapper(t, dir, say(test.hello))
			_, err := connect(soon(t, patience), Options{Dir: dir, Nonce: "new"})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Error(err)
			}
		})
	}
}

// TestDialEndures: Dial waits for a wrapper that refuses, and its error says what was wrong
// in the last attempt.
func TestDialEndures(t *testing.T) {
	dir := t.TempDir()
	fakeWrapper(t, dir, say(`{"hello":{"protocol":2,"nonce":"old"}}`+"\n"))
	_, err := Dial(soon(t, 3*moment), Options{Dir: dir, Nonce: "new"})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "created before the binding") {
		t.Error(err)
	}
}

// TestDialLeavesOthersAlone: a wrapper that has another nonce is asked once, whatever happens to its socket.
func TestDialLeavesOthersAlone(t *testing.T) {
	dir := t.TempDir()
	var asked atomic.Int32
	fakeWrapper(t, dir, func(c net.Conn) {
		asked.Add(1)
		say(`{"hello":{"protocol":2,"nonce":"old"}}` + "\n")(c)
		now := time.Now()
		_ = os.Chtimes(filepath.Join(dir, SocketName), now, now)
	})
	if _, err := Dial(soon(t, 3*moment), Options{Dir: dir, Nonce: "new", poll: time.Hour}); err == nil {
		t.Error("connected to a wrapper with another nonce")
	}
	if n := asked.Load(); n > 2 { // the first call may have come before the watch was narrowed
		t.Errorf("asked %d times", n)
	}
}

// TestDialHearsTheRightOne: the next wrapper may be busy with somebody else at first. Its call is heard, although
// those of the one before it were not.
func TestDialHearsTheRightOne(t *testing.T) {
	dir := t.TempDir()
	told := make(chan struct{})
	var once sync.Once
	fakeWrapper(t, dir, func(c net.Conn) {
		say(`{"hello":{"protocol":2,"nonce":"old"}}` + "\n")(c)
		now := time.Now()
		_ = os.Chtimes(filepath.Join(dir, SocketName), now, now) // so that the watch is narrowed
		once.Do(func() { close(told) })
	})
	done := make(chan error, 1)
	go func() {
		c, err := Dial(soon(t, patience), Options{Dir: dir, Nonce: "new", poll: time.Hour})
		if err == nil {
			err = c.Close()
		}
		done <- err
	}()
	<-told
	<-time.After(moment)
	next := t.TempDir()
	var free atomic.Bool
	fakeWrapper(t, next, func(c net.Conn) {
		if free.Load() {
			say(`{"hello":{"protocol":2,"nonce":"new"}}` + "\n")(c)
			return
		}
		say(`{"hello":{"protocol":2,"nonce":"new","busy":true}}` + "\n")(c)
		time.AfterFunc(moment, func() {
			free.Store(true)
			now := time.Now()
			_ = os.Chtimes(filepath.Join(dir, SocketName), now, now)
		})
	})
	if err := os.Rename(filepath.Join(next, SocketName), filepath.Join(dir, SocketName)); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience / 4):
		t.Error("the wrapper's call was not heard")
	}
}

// TestDialWaits starts to dial when nothing exists, then creates the directory, a dead
// socket, a wrapper of an earlier binding and finally the right one. Dial must notice each
// without polling.
func TestDialWaits(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "yet", strings.Repeat("long", 30))
	type result struct {
		client *Client
		err    error
	}
	done := make(chan result, 1)
	go func() {
		c, err := Dial(soon(t, patience), Options{Dir: dir, Nonce: "new", poll: time.Hour})
		done <- result{c, err}
	}()
	short := t.TempDir() // short enough for a socket address
	fakeWrapper(t, short, say(`{"hello":{"protocol":2,"nonce":"old"}}`+"\n"))
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(short, dir); err != nil {
		t.Fatal(err)
	}
	select {
	case r := <-done:
		t.Fatalf("Dial accepted the old wrapper: %v", r.err)
	case <-time.After(moment):
	}
	next := t.TempDir()
	fakeWrapper(t, next, say(`{"hello":{"protocol":2,"nonce":"new","boot":"2"}}`+"\n"))
	if err := os.Rename(filepath.Join(next, SocketName), filepath.Join(dir, SocketName)); err != nil {
		t.Fatal(err)
	}
	r := <-done
	if r.err != nil || r.client.Hello().Boot != "2" {
		t.Fatalf("%+v", r)
	}
	if err := r.client.Close(); err != nil {
		t.Error(err)
	}
	if err := r.client.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
}

func TestDialHopeless(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may enter every directory")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := Dial(soon(t, patience), Options{Dir: filepath.Join(dir, "x")}); !errors.Is(err, fs.ErrPermission) {
		t.Error(err)
	}
}

func dialFake(t *testing.T, serve func(net.Conn)) *Client {
	t.Helper()
	dir := t.TempDir()
	fakeWrapper(t, dir, func(c net.Conn) {
		if _, err := c.Write([]byte(`{"hello":{"protocol":2}}` + "\n")); err == nil {
			serve(c)
		}
	})
	c, err := Dial(soon(t, patience), Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestCallsOnALostConnection(t *testing.T) {
	c := dialFake(t, func(c net.Conn) { _, _ = c.Read(make([]byte, 1)) })
	_, err := c.Usage(soon(t, patience))
	if !errors.Is(err, ErrLost) {
		t.Error(err)
	}
	<-c.Lost()
	if err := c.Sweep(soon(t, patience)); !errors.Is(err, ErrLost) {
		t.Error(err)
	}
	if _, err := c.Wait(soon(t, patience)); err == nil || errors.Is(err, ErrLost) {
		t.Errorf("wait without a start: %v", err)
	}
}

func TestSilentWrapper(t *testing.T) {
	c := dialFake(t, func(c net.Conn) {
		for {
			if _, err := c.Read(make([]byte, 4096)); err != nil {
				return
			}
		}
	})
	if _, err := c.Usage(soon(t, moment)); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrLost) {
		t.Error(err)
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	if err := c.Signal(cancelled, syscall.SIGTERM, false); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	select {
	case <-c.Lost():
		t.Error("the end of a call's context has ended the connection")
	default:
	}
}

func TestRubbishFromTheWrapper(t *testing.T) {
	for _, answer := range []string{"rubbish\n", `{"id":1,"done":true}` + "\n", `{"id":1,"usage":null}` + "\n", `{"id":1,"unknown":1}` + "\n"} {
		c := dialFake(t, func(c net.Conn) {
			if _, err := c.Read(make([]byte, 4096)); err == nil {
				say(answer)(c)
			}
		})
		if _, err := c.Usage(soon(t, patience)); !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "broke the protocol") {
			t.Errorf("%s: %v", answer, err)
		}
	}
}

func TestExitRightAfterStart(t *testing.T) {
	c := dialFake(t, func(c net.Conn) {
		lines := NewLineReader(c, MaxLine)
		for {
			line, err := lines.Next()
			if err != nil {
				return
			}
			r, err := DecodeRequest(line)
			if err != nil {
				return
			}
			answer, _ := EncodeLine(Message{ID: r.ID, Started: &Started{Activation: r.Spec.Activation}})
			exit, _ := EncodeLine(Message{Exit: &Exit{Activation: r.Spec.Activation, WaitStatus: 256 * int(r.ID)}})
			if _, err := c.Write(append(answer, exit...)); err != nil {
				return
			}
		}
	})
	for i := 1; i <= 3; i++ {
		if _, err := c.Start(soon(t, patience), fullSpec); err != nil {
			t.Fatal(err)
		}
		if exit, err := c.Wait(soon(t, patience)); err != nil || exit.WaitStatus != 256*i {
			t.Errorf("%d: %+v, %v", i, exit, err)
		}
	}
	bad := fullSpec
	bad.Dir = ""
	var failed *StartError
	if _, err := c.Start(soon(t, patience), bad); !errors.As(err, &failed) || failed.Stage != StageSpec {
		t.Error(err)
	}
}

func TestReadExit(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, ExitRecordName(name)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("good", `{"activation":"good","wait_status":1,"started":"2026-01-02T03:04:05Z","ended":"2026-01-02T03:04:06Z","user_cpu_ns":0,"system_cpu_ns":0,"max_rss_bytes":0,"oom_kills":0}`+"\n")
	write("wrong", `{"activation":"good"}`)
	write("empty", "")
	write("large", strings.Repeat(" ", maxRecord+1))
	// A valid record, except that it is elsewhere.
	elsewhere := filepath.Join(dir, "elsewhere")
	if err := os.WriteFile(elsewhere, []byte(`{"activation":"link","wait_status":1,"started":"2026-01-02T03:04:05Z","ended":"2026-01-02T03:04:06Z","user_cpu_ns":0,"system_cpu_ns":0,"max_rss_bytes":0,"oom_kills":0}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, filepath.Join(dir, ExitRecordName("link"))); err != nil {
		t.Fatal(err)
	}
	if e, err := ReadExit(dir, "good"); err != nil || e.WaitStatus != 1 {
		t.Errorf("%+v, %v", e, err)
	}
	for _, name := range []string{"wrong", "empty", "large", "link", "../exit.good"} {
		if e, err := ReadExit(dir, name); err == nil || errors.Is(err, ErrNoRecord) {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
	for range 2 {
		if err := RemoveExit(dir, "good"); err != nil {
			t.Error(err)
		}
	}
	if _, err := ReadExit(dir, "good"); !errors.Is(err, ErrNoRecord) {
		t.Error(err)
	}
	if err := RemoveExit(dir, "../x"); err == nil {
		t.Error("a path was accepted as an activation")
	}
}

// TestOneQuestionAtATime: a request stays pending after its caller gives up, and later
// callers wait for its answer.
func TestOneQuestionAtATime(t *testing.T) {
	asked, answer := make(chan int64, 100), make(chan struct{})
	var open atomic.Int32
	c := dialFake(t, func(c net.Conn) {
		lines := NewLineReader(c, MaxLine)
		for {
			line, err := lines.Next()
			if err != nil {
				return
			}
			r, err := DecodeRequest(line)
			if err != nil {
				return
			}
			if n := open.Add(1); n > 1 {
				t.Errorf("question %d is asked before the previous was answered", r.ID)
			}
			asked <- r.ID
			go func() {
				<-answer
				open.Add(-1)
				text, _ := EncodeLine(Message{ID: r.ID, Usage: &ContainerUsage{}})
				_, _ = c.Write(text)
			}()
		}
	})
	ctx, giveUp := context.WithCancel(soon(t, patience))
	first := make(chan error, 1)
	go func() {
		_, err := c.Usage(ctx)
		first <- err
	}()
	<-asked
	giveUp()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	var more sync.WaitGroup
	for range 3 {
		more.Go(func() {
			if _, err := c.Usage(soon(t, patience)); err != nil {
				t.Error(err)
			}
		})
	}
	select {
	case id := <-asked:
		t.Errorf("question %d was asked", id)
	case <-time.After(moment):
	}
	close(answer)
	more.Wait()
}
