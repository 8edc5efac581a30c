package chirp

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"podstarter/condor/shadow"
)

const stat = "1 2 3 4 5 6 7 8 9 10 11 12 13\n"

// fakeShadow answers from a table and remembers what it was asked.
type fakeShadow struct {
	mu     sync.Mutex
	asked  []string
	answer map[shadow.FileCall]shadow.FileAnswer
	bytes  map[shadow.FileCall]string
	fail   map[shadow.FileCall]error
	hold   chan struct{} // when set, calls wait for it
	lost   error
}

func (f *fakeShadow) note(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, fmt.Sprintf(format, args...))
}

func (f *fakeShadow) said() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	said := f.asked
	f.asked = nil
	return said
}

func (f *fakeShadow) File(_ context.Context, r shadow.FileRequest) (shadow.FileAnswer, error) {
	if f.hold != nil {
		<-f.hold
	}
	text := r.Call.String()
	for _, field := range r.Fields {
		text += fmt.Sprintf(" %v", field)
	}
	if r.Body != nil {
		body, err := io.ReadAll(io.LimitReader(r.Body, r.Size))
		if err != nil {
			return shadow.FileAnswer{}, err
		}
		if len(body) > 40 {
			text += fmt.Sprintf(" (%d bytes)", len(body))
		} else {
			text += fmt.Sprintf(" %q", body)
		}
	}
	f.note("%s", text)
	if f.lost != nil {
		return shadow.FileAnswer{}, f.lost
	}
	if err := f.fail[r.Call]; err != nil {
		return shadow.FileAnswer{}, err
	}
	if b, ok := f.bytes[r.Call]; ok && r.Into != nil {
		_, err := io.WriteString(r.Into, b)
		return shadow.FileAnswer{Result: int64(len(b))}, err
	}
	return f.answer[r.Call], nil
}

func (f *fakeShadow) GetJobAttr(_ context.Context, attr string) (string, error) {
	f.note("get_job_attr %s", attr)
	return `"the value"`, f.lost
}

func (f *fakeShadow) SetJobAttr(_ context.Context, attr, expr string) error {
	f.note("set_job_attr %s = %s", attr, expr)
	if attr == "Owner" {
		return &shadow.CallError{Call: "set_job_attr", Result: -1, Errno: syscall.EACCES}
	}
	return f.lost
}

func (f *fakeShadow) LogGeneric(_ context.Context, text string) error {
	f.note("ulog %s", text)
	return f.lost
}

func refusal(errno syscall.Errno) error {
	return &shadow.CallError{Call: "x", Result: -1, Errno: errno}
}

func newShadow() *fakeShadow {
	text := func(s string) shadow.FileAnswer { return shadow.FileAnswer{Text: s} }
	return &fakeShadow{
		answer: map[shadow.FileCall]shadow.FileAnswer{
			shadow.FileLookup: text("/submit/file"), shadow.FileOpen: {Result: 7},
			shadow.FileFstat: text(stat), shadow.FileStat: text(stat), shadow.FileLstat: text(stat),
			shadow.FileStatfs: text("1 2 3 4 5 6 7\n"), shadow.FileFstatfs: text("1 2 3 4 5 6 7\n"),
			shadow.FileWrite: {Result: 5}, shadow.FilePwrite: {Result: 5}, shadow.FileSwrite: {Result: 5},
			shadow.FileGetdir: {Result: 5, Text: "a\nb\n\n"}, shadow.FileGetlongdir: {Result: 3, Text: "a\n\n"},
			shadow.FileLseek: {Result: 1 << 33},
		},
		bytes: map[shadow.FileCall]string{
			shadow.FileRead: "hello", shadow.FilePread: "hello", shadow.FileSread: "hello", shadow.FileGetfile: "hello",
			shadow.FileWhoami: "CONDOR", shadow.FileWhoareyou: "UNKNOWN", shadow.FileReadlink: "to",
		},
		fail: map[shadow.FileCall]error{
			shadow.FileRmdir: refusal(syscall.ENOTEMPTY), shadow.FileMkdir: refusal(syscall.EEXIST),
		},
	}
}

const cookie = "secret"

func serve(t testing.TB, o Options) *Server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o.Cookie = cookie
	if o.Attributes == nil {
		o.Attributes = NewDelayed("Chirp*", 3)
	}
	dir := t.TempDir()
	o.Spool = func() (*os.File, error) { return os.CreateTemp(dir, "spool") }
	s := Serve(l, o)
	t.Cleanup(s.Close)
	return s
}

// all turns every kind of request on.
func all(sh Shadow) Options { return Options{Shadow: sh, Files: true, Updates: true, Delayed: true} }

// client speaks the protocol by hand.
type client struct {
	t    testing.TB
	conn net.Conn
	in   *bufio.Reader
}

func dial(t testing.TB, s *Server) *client {
	t.Helper()
	fields := strings.Fields(s.Config())
	if len(fields) != 3 || fields[2] != cookie {
		t.Fatalf("config %q", s.Config())
	}
	conn, err := net.Dial("tcp", net.JoinHostPort(fields[0], fields[1]))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return &client{t, conn, bufio.NewReader(conn)}
}

func known(t testing.TB, s *Server) *client {
	t.Helper()
	c := dial(t, s)
	if got := c.ask("cookie " + cookie + "\n"); got != "0" {
		t.Fatalf("the cookie: %q", got)
	}
	return c
}

func (c *client) ask(request string) string {
	c.t.Helper()
	if _, err := io.WriteString(c.conn, request); err != nil {
		c.t.Fatal(err)
	}
	return c.next()
}

func (c *client) next() string {
	c.t.Helper()
	line, err := c.in.ReadString('\n')
	if err != nil {
		c.t.Fatalf("%q, %v", line, err)
	}
	return strings.TrimSuffix(line, "\n")
}

func (c *client) bytes(n int) string {
	c.t.Helper()
	b := make([]byte, n)
	if _, err := io.ReadFull(c.in, b); err != nil {
		c.t.Fatal(err)
	}
	return string(b)
}

func (c *client) closed() bool {
	_, err := c.in.ReadByte()
	return err != nil
}
