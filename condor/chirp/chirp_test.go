package chirp

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/condor/condortest"
	"podstarter/condor/shadow"
)

func TestRequests(t *testing.T) {
	sh := newShadow(t)
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
		tt.o.Shadow = newShadow(t)
		c := known(t, serve(t, tt.o))
		got := c.ask("unlink a\n") + " " + c.ask("set_job_attr a 1\n") + " " + c.ask("set_job_attr_delayed ChirpA 1\n") + " " + c.ask("get_job_attr_delayed b\n")
		if got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

// TestOpenFlags: the letters of a request as open(2) has them on the wire, each of them
// and together.
func TestOpenFlags(t *testing.T) {
	for letters, want := range map[string]int64{
		"": 0, "r": 0, "w": 1, "rw": 2, "wr": 2,
		"wc": 0x101, "wt": 0x201, "wx": 0x401, "wa": 0x1001, "rwctxa": 0x1702, "z": 0,
	} {
		if got := openFlags(letters); got != want {
			t.Errorf("%q: %#x, want %#x", letters, got, want)
		}
	}
}

// TestClosedFile: the job can use neither a closed file nor one that the shadow
// has open for itself.
func TestClosedFile(t *testing.T) {
	sh := newShadow(t)
	c := known(t, serve(t, all(sh)))
	try := func(when, want string) {
		t.Helper()
		for _, request := range []string{"read 7 5", "pread 7 5 0", "sread 7 5 0 1 1", "lseek 7 0 0", "fstat 7", "fsync 7", "ftruncate 7 0", "fchmod 7 0", "close 7", "write 7 1", "pwrite 7 1 0"} {
			if strings.Contains(request, "write") {
				request += "\nx" // the byte to write, without a line feed
			} else {
				request += "\n"
			}
			if got := c.ask(request); got != want {
				t.Errorf("%s: %q gives %s", when, request, got)
			}
		}
	}
	try("before it was opened", "-12")
	if asked := sh.said(); len(asked) > 0 {
		t.Errorf("the shadow was asked: %q", asked)
	}
	c.ask("open f rw 0\n")
	c.next()
	if got := c.ask("close 7\n"); got != "0" {
		t.Fatal(got)
	}
	sh.said()
	try("after it was closed", "-12")
	if asked := sh.said(); len(asked) > 0 {
		t.Errorf("the shadow was asked: %q", asked)
	}
}

// TestLargestRequest: the largest request is served, one byte more is not.
func TestLargestRequest(t *testing.T) {
	sh := newShadow(t)
	c := known(t, serve(t, all(sh)))
	c.ask("open f r 0\n")
	c.next()
	for _, verb := range []string{"read 7 %d", "pread 7 %d 0"} {
		if got := c.ask(fmt.Sprintf(verb+"\n", shadow.MaxFileBytes)); got != "5" || c.bytes(5) != "hello" {
			t.Errorf("%s: %s", verb, got)
		}
		if got := c.ask(fmt.Sprintf(verb+"\n", shadow.MaxFileBytes+1)); got != "-8" {
			t.Errorf("%s, one byte more: %s", verb, got)
		}
	}
}

// TestCookieIsAskedForInFull: a part of the cookie, or more, is as wrong as any other.
func TestCookieIsAskedForInFull(t *testing.T) {
	s := serve(t, all(newShadow(t)))
	clients := map[string]*client{}
	for _, wrong := range []string{cookie[:1], cookie[:len(cookie)-1], cookie + "x"} {
		clients[wrong] = dial(t, s)
		if _, err := io.WriteString(clients[wrong].conn, "cookie "+wrong+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	for wrong, c := range clients { // each is answered late
		if got := c.next(); got != "-1" {
			t.Errorf("%q: %s", wrong, got)
		}
	}
}

// TestLateClient: a connection that sends its cookie after the server has
// finished is not a client, and Finish need not wait for it.
func TestLateClient(t *testing.T) {
	s := serve(t, all(newShadow(t)))
	conn, other := net.Pipe()
	defer conn.Close()
	defer other.Close()
	if !s.trust(conn) {
		t.Error("a client is not admitted")
	}
	s.drop(conn)
	s.Finish(t.Context())
	if s.trust(conn) {
		t.Error("a client is admitted after the end")
	}
	if s.admit(conn) != nil {
		t.Error("a connection is admitted after the end")
	}
}

func TestShadowLost(t *testing.T) {
	sh := newShadow(t)
	c := known(t, serve(t, all(sh)))
	c.ask("open f w 0\n")
	c.next()
	sh.lose()
	for _, request := range []string{"fstat 7\n", "stat a\n", "get_job_attr a\n", "set_job_attr a 1\n", "ulog x\n", "open f r 0\n"} {
		if got := c.ask(request); got != "-17" {
			t.Errorf("%q: %s", request, got)
		}
	}
	sh.comeBack(t)
	// The next shadow has not opened anything.
	if got := c.ask("read 7 5\n"); got != "-12" {
		t.Error(got)
	}
}

func TestStrangers(t *testing.T) {
	sh := newShadow(t)
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
		t.Error("a stranger may stay silent for ever")
	}
}

func TestLines(t *testing.T) {
	s := serve(t, all(newShadow(t)))
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
		t.Errorf("a request without a line feed at the end of the connection: %s", got)
	}
}

// TestFinish: Finish carries out the requests of clients that have left.
func TestFinish(t *testing.T) {
	sh := newShadow(t)
	hold := make(chan struct{})
	sh.double.On("unlink", 1, condortest.Stall(hold))
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
	close(hold)
	<-finished
	if diff := cmp.Diff([]string{"unlink a", "unlink b"}, sh.said()); diff != "" {
		t.Error(diff)
	}
	if conn, err := net.Dial("tcp", s.listener.Addr().String()); err == nil {
		conn.Close()
		t.Error("connections are still taken")
	}
}

// TestFinishGivesUp: Finish waits for a client that stays no longer than ctx.
func TestFinishGivesUp(t *testing.T) {
	s := serve(t, all(newShadow(t)))
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
		t.Error("sent twice")
	}
	if e, ok := d.get("exact"); !ok || e.String() != "1" {
		t.Error("forgotten after it was sent")
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

// FuzzClient sends anything after the cookie. Every line is answered, or the
// connection ends.
func FuzzClient(f *testing.F) {
	for _, seed := range []string{"open a r 0\nread 7 5\nclose 7\n", "putfile f 420 5\nhellogetfile f\n", "write 7 99999999\n", "set_job_attr_delayed ChirpA 1\n\x00\n",
		"sread 7 1000 0 3 4\n", "lseek 7 -1 2\nstat a\\", "readlink a 4096\nulog \\"} {
		f.Add([]byte(seed))
	}
	sh := newShadow(f)
	f.Fuzz(func(t *testing.T, said []byte) {
		sh.double.Forget()
		here, there := net.Pipe()
		s := &Server{o: all(sh), log: slog.New(slog.DiscardHandler), turn: make(chan struct{}, 1), complain: complaints{log: slog.New(slog.DiscardHandler)}, clients: make(chan struct{}, 1),
			conns: map[net.Conn]bool{}, opened: map[int64]shadow.Origin{7: {}}}
		s.o.Cookie, s.o.patience, s.o.Attributes = cookie, time.Minute, NewDelayed("Chirp*", 2)
		s.o.JobAttribute = func(string) (*classads.Expr, bool) { return nil, false }
		s.o.Spool = func() (*os.File, error) { return os.CreateTemp(t.TempDir(), "spool") }
		s.ctx, s.cancel = context.WithCancel(context.Background())
		defer s.cancel()
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.serve(there, &stranger{conn: there})
		}()
		go func() { _, _ = io.Copy(io.Discard, here) }()
		_, _ = here.Write(append([]byte("cookie "+cookie+"\n"), said...))
		here.Close()
		<-done
	})
}
