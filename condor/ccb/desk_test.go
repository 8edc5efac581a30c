package ccb

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"podstarter/classads"
	"podstarter/internal/cedar"
)

// serve lets a desk serve a connection. It gives the other end, and what Serve returns.
func serve(t *testing.T, d *Desk) (theirs net.Conn, served <-chan error) {
	theirs, ours := net.Pipe()
	end := make(chan error, 1)
	go func() {
		s := cedar.NewStream(ours)
		if _, err := s.GetInt32(); err != nil {
			end <- err
			return
		}
		end <- d.Serve(t.Context(), &cedar.Call{Stream: s})
	}()
	return theirs, end
}

// TestArrivesTooLate: a connection that arrives when nobody waits for it any more is closed, at whatever moment that is.
func TestArrivesTooLate(t *testing.T) {
	var d Desk
	for range 2000 {
		id, _, done, err := d.expect()
		if err != nil {
			t.Fatal(err)
		}
		theirs, served := serve(t, &d)
		s := cedar.NewStream(theirs)
		s.PutInt(cedar.CCBReverseConnect)
		hello := classads.NewAd()
		hello.SetString("ClaimId", id)
		if err := send(s, hello); err != nil {
			t.Fatal(err)
		}
		for waits := true; waits; {
			d.mu.Lock()
			_, waits = d.expected[id]
			d.mu.Unlock()
		}
		done()
		if err := <-served; err != nil {
			t.Fatal(err)
		}
		err = theirs.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		if err == nil {
			_, err = theirs.Read(make([]byte, 1))
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("the connection is open")
		}
	}
}

// TestSpeaksFirst: a connection on which something was said before this process has asked is no daemon's.
func TestSpeaksFirst(t *testing.T) {
	var d Desk
	id, arrives, done, err := d.expect()
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	from, to := net.Pipe()
	said := make(chan []byte, 1)
	go func() {
		all, _ := io.ReadAll(to)
		said <- all
	}()
	s := cedar.NewStream(from)
	s.PutInt(cedar.CCBReverseConnect)
	hello := classads.NewAd()
	hello.SetString("ClaimId", id)
	if err := errors.Join(send(s, hello), s.Close()); err != nil {
		t.Fatal(err)
	}
	theirs, served := serve(t, &d)
	if _, err := theirs.Write(append(<-said, "more"...)); err != nil {
		t.Fatal(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	select {
	case <-arrives:
		t.Error("it is taken for the daemon's")
	default:
		if n, err := theirs.Read(make([]byte, 1)); err == nil {
			t.Errorf("it is kept: %d bytes", n)
		}
	}
}
