package agent

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/payload"
	"podstarter/payload/procfamily"
)

// slowPayload is an agent in its loop; the test decides how long a look at its payload
// takes: there is one process, whose files in /proc are pipes.
type slowPayload struct {
	a    *agent
	proc string
	conn net.Conn // the starter's end
	said *bufio.Reader
}

func newSlowPayload(t *testing.T) *slowPayload {
	t.Helper()
	p := &slowPayload{proc: t.TempDir()}
	//nolint:forbidigo // only this test is here
	if err := os.Mkdir(filepath.Join(p.proc, "100"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"status", "stat"} {
		if err := unix.Mkfifo(filepath.Join(p.proc, "100", name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	control, err := openControl(filepath.Join(t.TempDir(), "payload"), "boot", nil)
	if err != nil {
		t.Fatal(err)
	}
	p.a = &agent{log: logger{os.Stderr}, uid: os.Geteuid(), control: control, station: station{companion: true}, events: make(chan event), executions: make(map[int64]*execution)}
	of := procfamily.OfDescendants(p.proc, 1)
	if p.a.uid == 0 {
		of = procfamily.OfUser(p.proc, 1_990_000_000+os.Getpid()) // nobody's
		if p.a.killer, err = procfamily.NewKiller(); err != nil {
			t.Fatal(err)
		}
	}
	p.a.run = &run{spec: payload.Spec{Activation: "test", UID: of.UID, GID: of.UID}, settled: true}
	p.a.target.Store(&of)
	sock, conn := socketPair(t)
	p.conn, p.said = conn, bufio.NewReader(conn)
	p.a.conn = newConnection(sock)
	go p.a.conn.read(p.a.events, p.a.strike)
	go p.a.loop()
	return p
}

func patience(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func socketPair(t *testing.T) (*net.UnixConn, net.Conn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]net.Conn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socketpair")
		if ends[i], err = net.FileConn(f); err != nil {
			t.Fatal(err)
		}
		f.Close()
		t.Cleanup(func() { ends[i].Close() })
	}
	return ends[0].(*net.UnixConn), ends[1]
}

func (p *slowPayload) say(t *testing.T, lines string) {
	t.Helper()
	if _, err := p.conn.Write([]byte(lines)); err != nil {
		t.Fatal(err)
	}
}

func (p *slowPayload) hear(t *testing.T) payload.Message {
	t.Helper()
	if err := p.conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	line, err := p.said.ReadBytes('\n')
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	m, err := payload.DecodeMessage(line)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// holdLook waits for a look and gives the end of its pipe; closing it lets the look go on.
func (p *slowPayload) holdLook(t *testing.T) *os.File {
	t.Helper()
	name := "stat"
	if p.a.uid == 0 {
		name = "status"
	}
	ctx := patience(t)
	for ctx.Err() == nil {
		fd, err := unix.Open(filepath.Join(p.proc, "100", name), unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err == nil {
			f := os.NewFile(uintptr(fd), name)
			t.Cleanup(func() { f.Close() })
			return f
		}
		if !errors.Is(err, unix.ENXIO) {
			t.Fatal(err)
		}
	}
	t.Fatal("nobody looks at the payload")
	return nil
}

// vanish makes the payload gone for every look that starts from now on.
func (p *slowPayload) vanish(t *testing.T) {
	t.Helper()
	if err := os.Rename(filepath.Join(p.proc, "100"), filepath.Join(p.proc, "gone")); err != nil {
		t.Fatal(err)
	}
}

// waitFree waits until the wrapper serves the next starter.
func (p *slowPayload) waitFree(ctx context.Context, t *testing.T) {
	t.Helper()
	for ctx.Err() == nil {
		sock, conn := socketPair(t)
		select {
		case p.a.events <- event{accepted: newConnection(sock)}:
		case <-ctx.Done():
			continue
		}
		line, err := bufio.NewReader(conn).ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		m, err := payload.DecodeMessage(line)
		if err != nil || m.Hello == nil {
			t.Fatalf("%s, %v", line, err)
		}
		if !m.Hello.Busy {
			return
		}
	}
	t.Fatal("the wrapper is busy with a starter that is gone")
}

// TestEndOfConnectionBeforeLooks: the payload of a starter that is gone is killed at once,
// however long a look takes and however many usage requests came.
func TestEndOfConnectionBeforeLooks(t *testing.T) {
	p := newSlowPayload(t)
	p.say(t, questions(1, 60))
	p.holdLook(t)
	p.vanish(t)
	if err := p.conn.Close(); err != nil {
		t.Fatal(err)
	}
	p.waitFree(patience(t), t)
}

// TestSweepBeforeLooks is the same for a sweep. Every request gets an answer.
func TestSweepBeforeLooks(t *testing.T) {
	p := newSlowPayload(t)
	const asked = 60
	p.say(t, questions(1, asked))
	p.holdLook(t)
	p.vanish(t)
	p.say(t, `{"id":100,"op":"sweep"}`+"\n")
	answered := make(map[int64]bool)
	for len(answered) < asked+1 {
		m := p.hear(t)
		if answered[m.ID] {
			t.Errorf("two answers to request %d", m.ID)
		}
		answered[m.ID] = true
		if m.ID == 100 && !m.Done || m.ID != 100 && (m.Error == nil || m.Error.Code != payload.CodeFailed) {
			t.Errorf("%+v", m)
		}
	}
}

// TestOneLookAtATime: a look answers all requests that come during it.
func TestOneLookAtATime(t *testing.T) {
	p := newSlowPayload(t)
	p.say(t, questions(1, 1))
	look := p.holdLook(t)
	p.say(t, questions(2, 3)+`{"id":9,"op":"nonsense"}`+"\n")
	if m := p.hear(t); m.ID != 9 { // by now the wrapper has read all requests
		t.Fatalf("%+v", m)
	}
	p.vanish(t)
	look.Close()
	var first time.Time
	for id := range 3 {
		m := p.hear(t)
		if m.ID != int64(id+1) || m.Usage == nil {
			t.Fatalf("%+v", m)
		}
		if first.IsZero() {
			first = m.Usage.Time
		}
		if !m.Usage.Time.Equal(first) {
			t.Errorf("the answer to %d is of another look", m.ID)
		}
	}
}

func questions(from, to int) string {
	var lines strings.Builder
	for id := from; id <= to; id++ {
		fmt.Fprintf(&lines, `{"id":%d,"op":"usage"}`+"\n", id)
	}
	return lines.String()
}
