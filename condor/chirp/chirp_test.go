package chirp

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
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

func TestRequests(t *testing.T) {
	sh := newShadow()
	o := all(sh)
	o.JobAttribute = func(name string) (*classads.Expr, bool) { return classads.IntExpr(3), name == "Known" }
	s := serve(t, o)
	c := known(t, s)
	if got := c.ask("open a\\ file wct 420\n"); got != "7" || c.next()+"\n" != stat {
		t.Fatalf("open: %q", got)
	}
	if diff := cmp.Diff([]string{"get_file_info_new a file", "open 769 420 /submit/file", "fstat 7"}, sh.said()); diff != "" {
		t.Fatal(diff)
	}
	for _, tt := range []struct{ request, want, more, asked string }{
		{"lseek 7 -5 2\n", "8589934592", "", "lseek 7 -5 2"},
		{"lseek 7 0 3\n", "-8", "", ""},
		{"lseek 7\n", "-8", "", ""},
		{"lseek 9 0 0\n", "-12", "", ""},
		{"unlink one\n", "0", "", "unlink one"},
		{"unlink\n", "-8", "", ""},
		{"rename one two\\\\three\n", "0", "", `rename one two\three`},
		{"mkdir d 448\n", "-4", "", "mkdir d 448"},
		{"rmdir d\n", "-15", "", "rmdir d"},
		{"rmall d\n", "0", "", "rmall d"},
		{"fsync 7\n", "0", "", "fsync 7"},
		{"fsync 8\n", "-12", "", ""},
		{"lookup f\n", "12", "/submit/file", "get_file_info_new f"},
		{"read 7 100\n", "5", "hello", "read 7 100"},
		{"read 7 -1\n", "-8", "", ""},
		{"read 7 99999999999\n", "-8", "", ""},
		{"read 8 10\n", "-12", "", ""},
		{"pread 7 100 4294967296\n", "5", "hello", "pread 7 100 4294967296"},
		{"write 7 5\nhello", "5", "", `write 7 5 "hello"`},
		{"write 8 5\nhello", "-12", "", ""},
		{"write 7 -5\n", "-8", "", ""},
		{"pwrite 7 5 10\nhello", "5", "", `pwrite 7 5 10 "hello"`},
		{"swrite 7 5 0 1 2\nhello", "5", "", `swrite 7 5 0 1 2 "hello"`},
		{"swrite 7 5 0 0 2\nhello", "-8", "", ""},
		{"fstat 7\n", "0", stat, "fstat 7"},
		{"fstatfs 7\n", "0", "1 2 3 4 5 6 7\n", "fstatfs 7"},
		{"fchown 7 1 -1\n", "0", "", "fchown 7 1 -1"},
		{"fchmod 7 292\n", "0", "", "fchmod 7 292"},
		{"ftruncate 7 9\n", "0", "", "ftruncate 7 9"},
		{"getfile f\n", "5", "hello", "getfile f"},
		{"getdir .\n", "5", "a\nb\n\n", "getdir ."},
		{"getlongdir .\n", "3", "a\n\n", "getlongdir ."},
		{"whoami 100\n", "6", "CONDOR", "whoami 100"},
		{"whoareyou host 100\n", "7", "UNKNOWN", "whoareyou host 100"},
		{"link a b\n", "0", "", "link a b"},
		{"symlink a b\n", "0", "", "symlink a b"},
		{"readlink a 10\n", "2", "to", "readlink a 10"},
		{"statfs a\n", "0", "1 2 3 4 5 6 7\n", "statfs a"},
		{"stat a\n", "0", stat, "stat a"},
		{"lstat a\n", "0", stat, "lstat a"},
		{"access a 4\n", "0", "", "access a 4"},
		{"chmod a 292\n", "0", "", "chmod a 292"},
		{"chown a 1 2\n", "0", "", "chown a 1 2"},
		{"lchown a 1 2\n", "0", "", "lchown a 1 2"},
		{"truncate a 10 more words\n", "0", "", "truncate a 10"},
		{"truncate a 4294967306\n", "0", "", "truncate a 10"}, // 32 bits, as stock has it
		{"utime a 1 2\n", "0", "", "utime a 1 2"},
		{"set_job_attr A 1\\ +\\ 1\n", "0", "", "set_job_attr A = 1 + 1"},
		{"set_job_attr Owner \"x\"\n", "-2", "", `set_job_attr Owner = "x"`},
		{"get_job_attr A\n", "11", `"the value"`, "get_job_attr A"},
		{"constrain true\n", "0", "", "constrain true"},
		{"ulog a\\ line\n", "0", "", "ulog a line"},
		{"version\n", "2", "", ""},
		{"get_job_attr_delayed Known\n", "1", "3", ""},
		{"get_job_attr_delayed Unknown\n", "-3", "", ""},
		{"set_job_attr_delayed ChirpA 1\\ +\\ 1\n", "0", "", ""},
		{"get_job_attr_delayed chirpa\n", "5", "1 + 1", ""},
		{"set_job_attr_delayed ChirpB (\n", "0", "", ""},
		{"get_job_attr_delayed ChirpB\n", "-3", "", ""},
		{"set_job_attr_delayed Other 1\n", "1", "", ""},
		{"set_job_attr_delayed Chirp\\ A 1\n", "1", "", ""},
		{"set_job_attr_delayed ChirpC " + strings.Repeat("1", 994) + "\n", "-127", "", ""},
		{"nonsense\n", "-8", "", ""},
		{" \n", "-8", "", ""},
		{"stat a\x00b\n", "0", stat, "stat a"},
	} {
		got := c.ask(tt.request)
		more := c.bytes(len(tt.more))
		if asked := strings.Join(sh.said(), "; "); got != tt.want || more != tt.more || !strings.HasSuffix(asked, tt.asked) || (tt.asked == "") != (asked == "") {
			t.Errorf("%q: %s %q, want %s %q; asked %q, want %q", tt.request, got, more, tt.want, tt.more, asked, tt.asked)
		}
	}
	if got := c.ask("close 7\n") + c.ask("close 7\n"); got != "0-12" {
		t.Errorf("close: %q", got)
	}
}

func TestStrideReadEndsWithTheFile(t *testing.T) {
	for _, tt := range []struct{ size, offset, stride, skip, most, want int64 }{
		{100, 0, 10, 20, 1000, 50}, {100, 0, 10, 20, 25, 25}, {95, 0, 10, 30, 1000, 35}, {100, 100, 1, 1, 10, 0},
		{100, 0, 1, 0, 10, 10}, {100, 99, 10, 1, 1000, 1}, {0, 0, 1, 1, 10, 0}, {100, 0, 10, 1 << 62, 1000, 10},
	} {
		if got := strided(tt.size, tt.offset, tt.stride, tt.skip, tt.most); got != tt.want {
			t.Errorf("%+v: %d", tt, got)
		}
	}
	sh := newShadow()
	c := known(t, serve(t, all(sh)))
	c.ask("open f r 0\n")
	c.next()
	sh.said()
	if got := c.ask("sread 7 1000 0 3 4\n"); got != "5" || c.bytes(5) != "hello" {
		t.Error(got)
	}
	// The file has eight bytes: 0 to 2 and 4 to 6.
	if diff := cmp.Diff([]string{"fstat 7", "sread 7 6 0 3 4"}, sh.said()); diff != "" {
		t.Error(diff)
	}
	if got := c.ask("sread 7 1000 8 3 4\n") + c.ask("sread 7 10 0 0 4\n"); got != "0-8" {
		t.Error(got)
	}
}

func TestPutFile(t *testing.T) {
	sh := newShadow()
	c := known(t, serve(t, all(sh)))
	if got := c.ask("putfile f 420 5\n"); got != "7" {
		t.Fatal(got)
	}
	if got := c.ask("hello"); got != "5" {
		t.Error(got)
	}
	if got := c.ask("putfile empty 420 0\n"); got != "7" {
		t.Error(got)
	}
	want := []string{"open 769 420 f", `write 7 5 "hello"`, "close 7", "open 769 420 empty", "close 7"}
	if diff := cmp.Diff(want, sh.said()); diff != "" {
		t.Error(diff)
	}
	if got := c.ask(fmt.Sprintf("putfile f 420 %d\n", shadow.MaxFileBytes+1)); got != "-5" {
		t.Error(got)
	}
	sh.fail[shadow.FileOpen] = refusal(syscall.EISDIR)
	if got := c.ask("putfile f 420 5\n"); got != "-13" {
		t.Error(got)
	}
}

// TestPutThenAnotherClient: condor_chirp does not wait until its file has been
// written; who comes after it must find it nevertheless.
func TestPutThenAnotherClient(t *testing.T) {
	sh := newShadow()
	s := serve(t, all(sh))
	first, second := known(t, s), known(t, s)
	if got := first.ask("putfile f 420 5\n"); got != "7" {
		t.Fatal(got)
	}
	if _, err := io.WriteString(second.conn, "getfile f\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(first.conn, "hello"); err != nil {
		t.Fatal(err)
	}
	first.conn.Close()
	second.next()
	if diff := cmp.Diff([]string{"open 769 420 f", `write 7 5 "hello"`, "close 7", "getfile f"}, sh.said()); diff != "" {
		t.Error(diff)
	}
}

// TestLarge moves more than is kept in memory, both ways.
func TestLarge(t *testing.T) {
	sh := newShadow()
	large := strings.Repeat("0123456789abcdef", 1<<16)
	sh.bytes[shadow.FileGetfile] = large
	sh.answer[shadow.FileWrite] = shadow.FileAnswer{Result: int64(len(large))}
	c := known(t, serve(t, all(sh)))
	if got := c.ask("getfile f\n"); got != "1048576" || c.bytes(len(large)) != large {
		t.Error(got)
	}
	c.ask("open f w 0\n")
	c.next()
	sh.said()
	if got := c.ask("write 7 1048576\n" + large); got != "1048576" {
		t.Error(got)
	}
	if diff := cmp.Diff([]string{"write 7 1048576 (1048576 bytes)"}, sh.said()); diff != "" {
		t.Error(diff)
	}
	if got := c.ask("version\n"); got != "2" {
		t.Errorf("the connection is out of step: %q", got)
	}
}

func TestNoRoomForLarge(t *testing.T) {
	sh := newShadow()
	s := serve(t, all(sh))
	s.o.Spool = func() (*os.File, error) { return nil, syscall.ENOSPC }
	c := known(t, s)
	c.ask("open f w 0\n")
	c.next()
	if got := c.ask("write 7 1048576\n" + strings.Repeat("x", 1<<20)); got != "-6" {
		t.Error(got)
	}
	if got := c.ask("version\n"); got != "2" {
		t.Errorf("the connection is out of step: %q", got)
	}
}

func TestPermissions(t *testing.T) {
	for name, tt := range map[string]struct {
		o    Options
		want string
	}{
		"nothing": {Options{}, "-8 -8 -8 -8"},
		"files":   {Options{Files: true}, "0 -8 -8 -8"},
		"updates": {Options{Updates: true}, "-8 0 -8 -8"},
		"delayed": {Options{Delayed: true}, "-8 -8 0 -3"},
	} {
		tt.o.Shadow = newShadow()
		c := known(t, serve(t, tt.o))
		got := c.ask("unlink a\n") + " " + c.ask("set_job_attr a 1\n") + " " + c.ask("set_job_attr_delayed ChirpA 1\n") + " " + c.ask("get_job_attr_delayed b\n")
		if got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

func TestShadowLost(t *testing.T) {
	sh := newShadow()
	c := known(t, serve(t, all(sh)))
	c.ask("open f w 0\n")
	c.next()
	sh.lost = fmt.Errorf("shadow call: %w", shadow.ErrLost)
	for _, request := range []string{"fstat 7\n", "stat a\n", "get_job_attr a\n", "set_job_attr a 1\n", "ulog x\n", "open f r 0\n"} {
		if got := c.ask(request); got != "-17" {
			t.Errorf("%q: %s", request, got)
		}
	}
	sh.lost = nil
	// The next shadow has not opened anything.
	if got := c.ask("read 7 5\n"); got != "-12" {
		t.Error(got)
	}
}

func TestStrangers(t *testing.T) {
	sh := newShadow()
	o := all(sh)
	s := serve(t, o)
	c := dial(t, s)
	if got := c.ask("stat /etc/passwd\n"); got != "-1" {
		t.Error(got)
	}
	if got := c.ask("cookie wrong\n"); got != "-1" {
		t.Error(got)
	}
	if got := c.ask("cookie\n"); got != "-1" || !c.closed() {
		t.Error(got)
	}
	if asked := sh.said(); len(asked) > 0 {
		t.Errorf("a stranger was served: %q", asked)
	}
	silent := Options{patience: time.Millisecond, Shadow: sh, Files: true}
	if c := dial(t, serve(t, silent)); !c.closed() {
		t.Error("a stranger may be silent for ever")
	}
}

func TestLines(t *testing.T) {
	s := serve(t, all(newShadow()))
	c := known(t, s)
	longest := "unlink " + strings.Repeat("a", maxLine-len("unlink "))
	if got := c.ask(longest + "\n"); got != "0" {
		t.Errorf("the longest line: %s", got)
	}
	if got := c.ask(longest + "a"); got != "-5" || !c.closed() {
		t.Errorf("a line that is too long: %s", got)
	}
	c = known(t, s)
	if _, err := io.WriteString(c.conn, "\n"); err != nil || !c.closed() {
		t.Error("an empty line does not end the connection")
	}
	c = known(t, s)
	if _, err := io.WriteString(c.conn, "version"); err != nil {
		t.Fatal(err)
	}
	if err := c.conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got := c.next(); got != "2" {
		t.Errorf("a request that the end of the connection ends: %s", got)
	}
}

// TestFinish does what was asked for by clients that are gone.
func TestFinish(t *testing.T) {
	sh := newShadow()
	sh.hold = make(chan struct{})
	s := serve(t, all(sh))
	stranger := dial(t, s)
	c := known(t, s)
	if _, err := io.WriteString(c.conn, "unlink a\nunlink b\n"); err != nil {
		t.Fatal(err)
	}
	if err := c.conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	finished := make(chan struct{})
	go func() {
		s.Finish(context.Background())
		close(finished)
	}()
	if !stranger.closed() {
		t.Error("a stranger is still there")
	}
	close(sh.hold)
	<-finished
	if diff := cmp.Diff([]string{"unlink a", "unlink b"}, sh.said()); diff != "" {
		t.Error(diff)
	}
	if conn, err := net.Dial("tcp", s.listener.Addr().String()); err == nil {
		conn.Close()
		t.Error("connections are still taken")
	}
}

// TestFinishGivesUp: a client that stays is not waited for longer than ctx.
func TestFinishGivesUp(t *testing.T) {
	s := serve(t, all(newShadow()))
	c := known(t, s)
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	s.Finish(ctx)
	if !c.closed() {
		t.Error("the client is still there")
	}
}

func TestDelayed(t *testing.T) {
	d := NewDelayed("Chirp*, *Suffix exact", 3)
	put := func(name, value string) error {
		e, err := classads.ParseExpr(value)
		if err != nil {
			t.Fatal(err)
		}
		return d.put(name, e)
	}
	for _, name := range []string{"chirpA", "mysuffix", "EXACT", "ChirpA"} {
		if err := put(name, "1"); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"ChirpD", "", "Chirp\n", "Exactly", "Chirp=", "Chirp" + strings.Repeat("a", maxName)} {
		if err := put(name, "1"); err == nil {
			t.Errorf("%q was set", name)
		}
	}
	first := d.Take()
	if got := first.Len(); got != 3 {
		t.Errorf("%d attributes", got)
	}
	if err := put("ChirpA", "2"); err != nil {
		t.Error(err)
	}
	d.Restore(first)
	again := d.Take()
	if got := again.IntOr("ChirpA", 0); again.Len() != 3 || got != 2 {
		t.Errorf("%d attributes, %d", again.Len(), got)
	}
	if d.Take().Len() != 0 {
		t.Error("told twice")
	}
	if e, ok := d.get("exact"); !ok || e.String() != "1" {
		t.Error("forgotten after it was told")
	}
}

func TestNewCookie(t *testing.T) {
	a, b := NewCookie(), NewCookie()
	if a == b || len(a) != 31 || strings.Trim(a, "abcdefghijklmnopqrstuvwxyz") != "" {
		t.Errorf("%q, %q", a, b)
	}
}

func TestWords(t *testing.T) {
	for line, want := range map[string][]string{
		"":                      nil,
		" \t\r":                 nil,
		`a b\ c \\ d\`:          {"a", "b c", `\`, "d"},
		"  set  x\t1 \r":        {"set", "x", "1"},
		`ulog two\` + "\tkinds": {"ulog", "two\tkinds"},
	} {
		if diff := cmp.Diff(want, parse(line)); diff != "" {
			t.Errorf("%q: %s", line, diff)
		}
	}
	for word, want := range map[string]int64{"0": 0, "-12x": -12, "+7": 7, "99999999999999999999": 1<<63 - 1} {
		if n, ok := number(word); !ok || n != want {
			t.Errorf("%q: %d, %v", word, n, ok)
		}
	}
	for _, word := range []string{"", "x", "-", "--1", "+-1"} {
		if n, ok := number(word); ok {
			t.Errorf("%q: %d", word, n)
		}
	}
}

// FuzzClient says anything after the cookie. Every line is answered, or the
// connection ends.
func FuzzClient(f *testing.F) {
	for _, seed := range []string{"open a r 0\nread 7 5\nclose 7\n", "putfile f 420 5\nhellogetfile f\n", "write 7 99999999\n", "set_job_attr_delayed ChirpA 1\n\x00\n",
		"sread 7 1000 0 3 4\n", "lseek 7 -1 2\nstat a\\", "readlink a 4096\nulog \\"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, said []byte) {
		here, there := net.Pipe()
		s := &Server{o: all(newShadow()), log: slog.New(slog.DiscardHandler), turn: make(chan struct{}, 1), stranger: make(chan struct{}, 1), clients: make(chan struct{}, 1),
			conns: map[net.Conn]bool{}, opened: map[int64]shadow.Origin{7: {}}}
		s.o.Cookie, s.o.patience, s.o.Attributes = cookie, time.Minute, NewDelayed("Chirp*", 2)
		s.o.JobAttribute = func(string) (*classads.Expr, bool) { return nil, false }
		s.o.Spool = func() (*os.File, error) { return os.CreateTemp(t.TempDir(), "spool") }
		s.ctx, s.cancel = context.WithCancel(context.Background())
		defer s.cancel()
		s.stranger <- struct{}{}
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.serve(there)
		}()
		go func() { _, _ = io.Copy(io.Discard, here) }()
		_, _ = here.Write(append([]byte("cookie "+cookie+"\n"), said...))
		here.Close()
		<-done
	})
}

// TestSpoolKeepsOrder reads what is partly in memory, and more than once.
func TestSpoolKeepsOrder(t *testing.T) {
	s := &spool{file: func() (*os.File, error) { return os.Create(filepath.Join(t.TempDir(), "f")) }}
	defer s.close()
	var want strings.Builder
	for i := range 5 {
		piece := strings.Repeat(string(rune('a'+i)), 100<<10)
		want.WriteString(piece)
		if _, err := io.WriteString(s, piece); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		got, err := io.ReadAll(s.reader())
		if err != nil || string(got) != want.String() || !s.large() {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	}
}
