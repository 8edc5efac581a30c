package chirp

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestStrangersGiveWay: any number of connections without the cookie does not
// keep out a client that sends it.
func TestStrangersGiveWay(t *testing.T) {
	s := serve(t, all(newShadow(t)))
	silent := make([]*client, 3*maxStrangers)
	for i := range silent {
		silent[i] = dial(t, s)
	}
	c := known(t, s)
	if got := c.ask("version\n"); got != "2" {
		t.Errorf("got %s", got)
	}
	if !silent[0].closed() {
		t.Error("the oldest stranger is still there")
	}
}

// TestWhoGivesWay: the job's own connections are closed last.
func TestWhoGivesWay(t *testing.T) {
	s := &Server{}
	var gone []string
	names := map[*stranger]string{}
	for i, own := range []bool{true, false, true, false} {
		conn, _ := net.Pipe()
		one := &stranger{conn: conn, own: own, gone: make(chan struct{})}
		names[one] = fmt.Sprint(i)
		s.strange = append(s.strange, one)
	}
	for len(s.strange) > 0 {
		s.evict()
		for one, name := range names {
			select {
			case <-one.gone:
				gone = append(gone, name)
				delete(names, one)
			default:
			}
		}
	}
	if d := cmp.Diff([]string{"1", "3", "0", "2"}, gone); d != "" {
		t.Error(d)
	}
}

// TestUserOf: the kernel reports who made a connection, over both protocols.
func TestUserOf(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", address)
		if err != nil && strings.HasPrefix(address, "[") {
			t.Logf("no IPv6 here: %v", err)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		far, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		near, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		uid, err := userOf(near)
		if err != nil || int(uid) != os.Getuid() {
			t.Errorf("%s: user %d, %v", address, uid, err)
		}
		for _, own := range []int{os.Getuid(), 54321} {
			s := &Server{o: Options{UID: own}}
			if got := s.isOwn(near); got != (own != 0 && own == os.Getuid()) {
				t.Errorf("%s: of user %d: %v", address, own, got)
			}
		}
		far.Close()
		near.Close()
		l.Close()
	}
}

// TestComplaints: repeated mistakes of a job or a stranger do not fill the log.
func TestComplaints(t *testing.T) {
	var log bytes.Buffer
	o := all(newShadow(t))
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	s := serve(t, o)
	c := known(t, s)
	for i := range 10 * maxComplaints {
		if got := c.ask(fmt.Sprintf("set_job_attr_delayed Other%d 1\n", i)); got != "1" {
			t.Fatalf("it is not refused: %s", got)
		}
		if got := c.ask("set_job_attr_delayed ChirpA (\n"); got != "0" {
			t.Fatalf("got %s", got)
		}
	}
	for range 2 * maxComplaints {
		dial(t, s).ask("stat a\n")
	}
	s.Close()
	s.sessions.Wait()
	if n := strings.Count(log.String(), "\n"); n == 0 || n > 2*maxComplaints {
		t.Errorf("%d lines were logged:\n%s", n, log.String())
	}
	if !strings.Contains(log.String(), "no more lines") {
		t.Error("the log does not say that lines are left out")
	}
}

// TestClientsComeAndGo: the limit is one of clients at a time.
func TestClientsComeAndGo(t *testing.T) {
	s := serve(t, all(nil))
	for range maxClients + 1 { // one after the other
		c := known(t, s)
		if _, err := io.WriteString(c.conn, "\n"); err != nil || !c.closed() {
			t.Fatalf("a client that has ended is still served, %v", err)
		}
		c.conn.Close()
	}
}

func FuzzDiagUser(f *testing.F) {
	f.Add(bytes.Repeat([]byte{20}, 128))
	f.Add([]byte{})
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = diagUser(b) })
}
