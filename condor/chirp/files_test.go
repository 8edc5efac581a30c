package chirp

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/condor/condortest"
	"podstarter/condor/shadow"
)

func TestStrideReadEndsWithTheFile(t *testing.T) {
	for _, tt := range []struct{ size, offset, stride, skip, most, want int64 }{
		{100, 0, 10, 20, 1000, 50}, {100, 0, 10, 20, 25, 25}, {95, 0, 10, 30, 1000, 35}, {100, 100, 1, 1, 10, 0},
		{100, 0, 1, 0, 10, 10}, {100, 99, 10, 1, 1000, 1}, {0, 0, 1, 1, 10, 0}, {100, 0, 10, 1 << 62, 1000, 10},
	} {
		if got := strided(tt.size, tt.offset, tt.stride, tt.skip, tt.most); got != tt.want {
			t.Errorf("%+v: %d", tt, got)
		}
	}
	sh := newShadow(t)
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
	sh := newShadow(t)
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
	sh.double.On("open", 0, condortest.Refuse(syscall.EISDIR))
	if got := c.ask("putfile f 420 5\n"); got != "-13" {
		t.Error(got)
	}
}

// TestPutThenAnotherClient: condor_chirp does not wait until its file has been
// written; the next client must find it nevertheless.
func TestPutThenAnotherClient(t *testing.T) {
	sh := newShadow(t)
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

// TestLarge moves more than is kept in memory, in both directions.
func TestLarge(t *testing.T) {
	sh := newShadow(t)
	large := strings.Repeat("0123456789abcdef", 1<<16)
	sh.double.On("getfile", 0, octets(large))
	sh.double.On("write", 0, texts(int64(len(large))))
	s := serve(t, all(sh))
	spools := watchSpools(s, s.o.Spool)
	c := known(t, s)
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
	spools.areClosed(t, 2)
}

// spools are the files that a server has made for large requests and answers.
type spools struct {
	mu    sync.Mutex
	files []*os.File
}

// watchSpools has a server make them like this. It has no client yet.
func watchSpools(s *Server, spool func() (*os.File, error)) *spools {
	all := &spools{}
	s.o.Spool = func() (*os.File, error) {
		f, err := spool()
		all.mu.Lock()
		defer all.mu.Unlock()
		all.files = append(all.files, f)
		return f, err
	}
	return all
}

// areClosed: there were so many, and no request is under way.
func (all *spools) areClosed(t *testing.T, n int) {
	t.Helper()
	all.mu.Lock()
	defer all.mu.Unlock()
	if len(all.files) != n {
		t.Errorf("%d files were made, want %d", len(all.files), n)
	}
	for _, f := range all.files {
		if _, err := f.Stat(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s is open, %v", f.Name(), err)
		}
	}
}

// TestFullDisk: the file for a large request or answer cannot be written.
func TestFullDisk(t *testing.T) {
	sh := newShadow(t)
	large := strings.Repeat("x", 1<<20)
	sh.double.On("getfile", 0, octets(large))
	s := serve(t, all(sh))
	spools := watchSpools(s, func() (*os.File, error) { return os.OpenFile("/dev/full", os.O_RDWR, 0) })
	c := known(t, s)
	if got := c.ask("getfile f\n"); got != "-6" {
		t.Error(got)
	}
	c.ask("open f w 0\n")
	c.next()
	if got := c.ask("write 7 1048576\n" + large); got != "-6" {
		t.Error(got)
	}
	if got := c.ask("version\n"); got != "2" {
		t.Errorf("the connection is out of step: %q", got)
	}
	spools.areClosed(t, 2)
}

func TestNoRoomForLarge(t *testing.T) {
	sh := newShadow(t)
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

// TestSpoolKeepsOrder reads data that is partly in memory, more than once.
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
