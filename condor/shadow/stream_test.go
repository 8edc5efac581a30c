package shadow

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"

	"podstarter/internal/cedar"
)

// disk is the submit side of streams: one file, and a number for each opening.
type disk struct {
	mu     sync.Mutex
	data   []byte
	offset int64
	fd     int64
	opened []int64       // flags
	breaks int           // calls until the connection breaks; never when negative
	refuse syscall.Errno // of writes
	short  bool          // writes take half
	synced int
	end    func()
}

// serve answers calls on one connection until it ends.
func (d *disk) serve(s *cedar.Stream) {
	for {
		number, err := s.GetInt()
		if err != nil {
			return
		}
		var a [3]int64
		var body []byte
		take := func(n int) {
			for i := range n {
				a[i], _ = s.GetInt()
			}
		}
		switch number {
		case numOpen:
			take(2)
			_, _ = s.GetString()
		case numLseek:
			take(3)
		case numRead, numWrite:
			take(2)
			if number == numWrite {
				body, _ = s.GetBytes(int(a[1]))
			}
		default:
			take(1)
		}
		if s.EndOfMessage() != nil {
			return
		}
		d.mu.Lock()
		result, bytes, errno := d.act(number, a, body)
		broken := d.breaks == 0
		d.breaks--
		d.mu.Unlock()
		if broken {
			s.Close() // the call was carried out, but the caller does not know
			return
		}
		s.PutInt(result)
		if result < 0 {
			s.PutInt(int64(errno))
		}
		s.PutBytes(bytes)
		if s.EndMessage() != nil {
			return
		}
	}
}

func (d *disk) act(number int64, a [3]int64, body []byte) (result int64, answer []byte, errno syscall.Errno) {
	if number != numOpen && a[0] != d.fd {
		return -1, nil, syscall.EBADF
	}
	switch number {
	case numOpen:
		d.fd++
		d.opened = append(d.opened, a[0])
		if a[0]&0x200 != 0 {
			d.data = nil
		}
		return d.fd, nil, 0
	case numLseek:
		d.offset = a[1]
		if a[2] == io.SeekEnd {
			d.offset += int64(len(d.data))
		}
		return d.offset, nil, 0
	case numWrite:
		if d.refuse != 0 {
			return -1, nil, d.refuse
		}
		if d.short {
			body = body[:len(body)/2]
		}
		if grow := int(d.offset) + len(body) - len(d.data); grow > 0 {
			d.data = append(d.data, make([]byte, grow)...)
		}
		copy(d.data[d.offset:], body)
		return int64(len(body)), nil, 0
	case numRead:
		answer = d.data[min(int(d.offset), len(d.data)):]
		answer = answer[:min(len(answer), int(a[1]))]
		return int64(len(answer)), answer, 0
	case numFsync:
		d.synced++
	}
	return 0, nil, 0
}

// attach makes a client of a disk. Whenever the connection breaks, it calls change
// and a shadow comes back. Call end before the test ends, which closes
// connections.
func (d *disk) attach(t *testing.T, change func(*disk)) *Client {
	t.Helper()
	c, conn := connect(t)
	go d.serve(cedar.NewStream(conn))
	stop, done := make(chan struct{}), make(chan struct{})
	d.end = func() {
		if err := c.Await(context.Background()); err != nil {
			t.Error(err)
		}
		close(stop)
		<-done
	}
	go func() {
		defer close(done)
		for {
			select {
			case <-c.Lost():
			case <-stop:
				return
			}
			d.mu.Lock()
			d.breaks = -1
			if change != nil {
				change(d)
			}
			d.mu.Unlock()
			mine, end := comeBack(t)
			if err := c.Resume(context.Background(), mine, unsettled); err != nil {
				return
			}
			go d.serve(end())
		}
	}()
	return c
}

const portableOutput, portableTruncate = 0x101, 0x200

// TestStreamOutput breaks the connection at each call in turn; no data is lost or
// written twice.
func TestStreamOutput(t *testing.T) {
	ctx := context.Background()
	said := strings.Repeat("a line of output\n", 10)
	for breaks := range 14 {
		t.Run(strconv.Itoa(breaks), func(t *testing.T) { streamOutput(t, ctx, said, breaks-1) })
	}
}

func streamOutput(t *testing.T, ctx context.Context, said string, breaks int) {
	d := &disk{data: []byte("what was there before"), breaks: breaks}
	c := d.attach(t, nil)
	s, err := c.OpenOutput(ctx, "out", false)
	if err == nil {
		err = s.CopyOutput(ctx, iotest.OneByteReader(strings.NewReader(said[:1])))
	}
	if err != nil {
		t.Fatalf("break at %d: %v", breaks, err)
	}
	s, err = c.OpenOutput(ctx, "out", true)
	if err == nil {
		err = s.CopyOutput(ctx, strings.NewReader(said[1:]))
	}
	if err != nil || string(d.data) != said || d.synced < 2 {
		t.Errorf("break at %d: %v, synced %d, %q", breaks, err, d.synced, d.data)
	}
	if d.opened[0] != portableOutput|portableTruncate || d.opened[len(d.opened)-1] != portableOutput {
		t.Errorf("break at %d: opened with %#x", breaks, d.opened)
	}
	d.end()
}

// TestStreamLostOutput: if the submit side has lost data, writing to it fails.
func TestStreamLostOutput(t *testing.T) {
	ctx := context.Background()
	d := &disk{breaks: 5}
	c := d.attach(t, func(d *disk) { d.data = d.data[:2] })
	s, err := c.OpenOutput(ctx, "out", false)
	if err != nil {
		t.Fatal(err)
	}
	err = s.Write(ctx, []byte("12345"))
	for err == nil {
		err = s.Write(ctx, []byte("6"))
	}
	if errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "bytes on the submit side") {
		t.Error(err)
	}
	d.end()
}

func TestStreamOutputFails(t *testing.T) {
	ctx := context.Background()
	for name, tt := range map[string]struct {
		d     *disk
		errno syscall.Errno
	}{
		"refused": {&disk{breaks: -1, refuse: syscall.ENOSPC}, syscall.ENOSPC},
		"short":   {&disk{breaks: -1, short: true}, syscall.EIO},
	} {
		s, err := tt.d.attach(t, nil).OpenOutput(ctx, "out", false)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.CopyOutput(ctx, strings.NewReader("12345")); err == nil || errors.Is(err, ErrLost) || Errno(err) != tt.errno {
			t.Errorf("%s: %v", name, err)
		}
		tt.d.end()
	}
}

func TestStreamInput(t *testing.T) {
	ctx := context.Background()
	want := strings.Repeat("0123456789", 20_000)
	for breaks := range 14 {
		t.Run(strconv.Itoa(breaks), func(t *testing.T) {
			d := &disk{data: []byte(want), breaks: breaks - 1}
			c := d.attach(t, nil)
			s, err := c.OpenInput(ctx, "in")
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			if err := s.CopyInput(ctx, &got); err != nil || got.String() != want {
				t.Errorf("%v, %d bytes", err, got.Len())
			}
			d.end()
		})
	}
	// A job that has closed its input is not a failure.
	d := &disk{data: []byte(want), breaks: -1}
	s, err := d.attach(t, nil).OpenInput(ctx, "in")
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r.Close()
	if err := s.CopyInput(ctx, w); err != nil {
		t.Error(err)
	}
	d.end()
}

// TestStreamGivesUp: if no shadow will come, waiting for one ends.
func TestStreamGivesUp(t *testing.T) {
	c, conn := connect(t)
	d := &disk{breaks: -1}
	go d.serve(cedar.NewStream(conn))
	s, err := c.OpenOutput(context.Background(), "out", false)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	soon(t, "Lost", c.Lost())
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Write(ctx, []byte("x")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	c.Abandon(errors.New("the lease is over"))
	if err := s.Write(context.Background(), []byte("x")); !errors.Is(err, ErrLost) {
		t.Error(err)
	}
}
