package chirp

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"podstarter/condor/condortest"
	"podstarter/condor/shadow"
	"podstarter/condor/version"
	"podstarter/internal/cedar"
)

const stat = "1 2 3 4 5 6 7 8 9 10 11 12 13\n"

// fakeShadow is the submit side and the client connected to it. It answers from a
// table and records what it was asked.
type fakeShadow struct {
	*shadow.Client
	double *condortest.Shadow
	seen   int // of the recorded calls
}

// canned are the answers that are not 0, for a submit side without real files.
var canned = map[string]condortest.Action{
	"get_file_info_new": texts(0, "/submit/file"), "open": texts(7),
	"fstat": padded(stat), "stat": padded(stat), "lstat": padded(stat),
	"statfs": padded("1 2 3 4 5 6 7\n"), "fstatfs": padded("1 2 3 4 5 6 7\n"),
	"write": texts(5), "pwrite": texts(5), "swrite": texts(5),
	"getdir": texts(5, "a\nb\n\n"), "getlongdir": texts(3, "a\n\n"), "lseek": texts(1 << 33),
	"read": octets("hello"), "pread": octets("hello"), "sread": octets("hello"), "getfile": octets("hello"),
	"whoami": octets("CONDOR"), "whoareyou": octets("UNKNOWN"), "readlink": octets("to"),
	"rmdir": condortest.Refuse(syscall.ENOTEMPTY), "mkdir": condortest.Refuse(syscall.EEXIST),
	"get_job_attr": texts(0, `"the value"`),
}

// plain are the calls that succeed without further output.
var plain = []string{"access", "chmod", "chown", "close", "fchmod", "fchown", "fsync", "ftruncate", "lchown", "link", "rename", "rmall", "symlink", "truncate", "unlink", "utime"}

// texts is an answer with a result and strings.
func texts(result int64, texts ...string) condortest.Action {
	return condortest.Say(func(s *cedar.Stream) {
		s.PutInt(result)
		for _, text := range texts {
			s.PutString(text)
		}
	})
}

// padded is the answer of the stat calls, of fixed length.
func padded(text string) condortest.Action {
	return condortest.Say(func(s *cedar.Stream) {
		s.PutInt(0)
		room := make([]byte, 1024)
		copy(room, text)
		s.PutBytes(room)
	})
}

// octets is an answer with as many bytes as the result says.
func octets(data string) condortest.Action {
	return condortest.Say(func(s *cedar.Stream) {
		s.PutInt(int64(len(data)))
		s.PutBytes([]byte(data))
	})
}

func newShadow(t testing.TB) *fakeShadow {
	t.Helper()
	f := &fakeShadow{double: condortest.NewShadow(t, condortest.ShadowOptions{})}
	for _, call := range plain {
		f.double.On(call, 0, texts(0))
	}
	for call, answer := range canned {
		f.double.On(call, 0, answer)
	}
	f.Client = shadow.New(f.double.Connect(t), slog.New(slog.DiscardHandler))
	f.SetVersion(version.Of("25.14.1"))
	t.Cleanup(func() { f.Close() })
	return f
}

// lose breaks the connection to the shadow.
func (f *fakeShadow) lose() {
	lost := f.Lost()
	f.double.Disconnect()
	<-lost
}

// comeBack connects another one.
func (f *fakeShadow) comeBack(t testing.TB) {
	t.Helper()
	if err := f.Resume(t.Context(), f.double.Connect(t), func(shadow.SecSessionInfo) error { return nil }); err != nil {
		t.Fatal(err)
	}
}

// said returns what the shadow was asked since the last call.
func (f *fakeShadow) said() (lines []string) {
	// Not every call is answered: when a later one is recorded, the others are.
	const last = "dprintf_stats"
	_ = f.DprintfStats(context.Background(), "the last one")
	heard := f.double.Heard()
	for _, h := range heard[f.seen:] {
		if h.Call != last && h.Call != condortest.Closed {
			lines = append(lines, line(h))
		}
	}
	f.seen = len(heard)
	return lines
}

// line shows a call with its fields in the order in which they are sent.
func line(h condortest.Heard) string {
	switch h.Call {
	case "ulog":
		return "ulog " + h.Ad.Text("Info")
	case "set_job_attr": // the value comes first
		return fmt.Sprintf("set_job_attr %s = %s", h.Texts[1], h.Texts[0])
	}
	words := append([]string{h.Call}, h.Texts...)
	for _, n := range h.Ints {
		words = append(words, fmt.Sprint(n))
	}
	if h.Call == "open" { // flags, mode and path
		words = append(words[:1], words[2], words[3], words[1])
	}
	switch {
	case len(h.Body) > 40:
		words = append(words, fmt.Sprintf("(%d bytes)", len(h.Body)))
	case h.Body != "":
		words = append(words, fmt.Sprintf("%q", h.Body))
	}
	return strings.Join(words, " ")
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

// client speaks the protocol directly.
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
