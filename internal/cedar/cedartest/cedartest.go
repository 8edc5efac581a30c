// Package cedartest makes streams for the tests of what speaks CEDAR.
package cedartest

import (
	"io"
	"net"
	"testing"

	"podstarter/internal/cedar"
)

// Said is a stream whose peer has said raw and hung up. What is said to the peer
// is lost.
func Said(t testing.TB, raw []byte) *cedar.Stream {
	t.Helper()
	mine, theirs := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		go func() { _, _ = io.Copy(io.Discard, theirs) }()
		_, _ = theirs.Write(raw)
		_ = theirs.Close()
	}()
	t.Cleanup(func() {
		_ = mine.Close()
		<-done
	})
	return cedar.NewStream(mine)
}

// Written is what put puts on the wire as one message.
func Written(t testing.TB, put func(*cedar.Stream)) []byte {
	t.Helper()
	mine, theirs := net.Pipe()
	s := cedar.NewStream(mine)
	all := make(chan []byte, 1)
	go func() {
		raw, _ := io.ReadAll(theirs)
		all <- raw
	}()
	put(s)
	if err := s.EndMessage(); err != nil {
		t.Fatal(err)
	}
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	return <-all
}

// Adopted is the stream of an inherited socket's description, closed when the test
// ends.
func Adopted(t testing.TB, description string) *cedar.Stream {
	t.Helper()
	s, err := cedar.Adopt(description)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}
