package cedar

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// pattern returns n bytes that are the same nowhere near.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i ^ i>>8*7 ^ i>>16*13)
	}
	return b
}

func TestFiles(t *testing.T) {
	modes(t, func(t *testing.T, a, b *Stream) {
		for _, size := range []int{0, 1, 6, fileChunk - 1, fileChunk, fileChunk + 1, 700000, 3*fileChunk + 5} {
			data := pattern(size)
			done := make(chan error, 1)
			go func() {
				// The head of the file joins the message of its name.
				a.PutString("name")
				err := a.PutFile(bytes.NewReader(data), int64(size))
				if err == nil {
					err = a.EndMessage()
				}
				a.PutInt(77)
				done <- errors.Join(err, a.EndMessage())
			}()
			wantString(t, b, "name")
			var got bytes.Buffer
			n, err := b.GetFile(&got, int64(size))
			must(t, err)
			if n != int64(size) || !bytes.Equal(data, got.Bytes()) {
				t.Fatalf("%d bytes arrived of %d, or others", n, size)
			}
			must(t, b.EndOfMessage())
			wantInt(t, b, 77)
			must(t, b.EndOfMessage())
			must(t, <-done)
			if b.recv.wake.size != 0 {
				t.Errorf("after %d bytes the kernel still gathers %d", size, b.recv.wake.size)
			}
		}
	})
}

// TestFileLayout holds the messages against those observed between HTCondor's
// own daemons.
func TestFileLayout(t *testing.T) {
	a, b := pair(t)
	encrypt(t, a, b)
	go func() {
		a.PutString("in.txt")
		_ = a.PutFile(bytes.NewReader([]byte("hello\n")), 6)
		_ = a.EndMessage()
		a.PutString("empty.txt")
		_ = a.PutEmptyFile()
		_ = a.EndMessage()
		a.PutInt(1)
		_ = a.EndMessage()
	}()
	wantString(t, b, "in.txt")
	wantInt(t, b, 6)
	wantInt(t, b, fileChunk)
	must(t, b.EndOfMessage())
	data := make([]byte, 100)
	n, err := b.ReadMessage(data)
	must(t, err)
	if diff := cmp.Diff("hello\n", string(data[:n])); diff != "" {
		t.Error(diff)
	}
	wantString(t, b, "empty.txt")
	wantInt(t, b, 0)
	wantInt(t, b, fileChunk)
	must(t, b.EndOfMessage())
	wantInt(t, b, 666)
	must(t, b.EndOfMessage())
	wantInt(t, b, 1)
	must(t, b.EndOfMessage())
}

// TestFileOfOthers takes files whose messages are cut otherwise.
func TestFileOfOthers(t *testing.T) {
	for _, c := range []struct{ chunk, message, packet int }{
		{262144, 262144, 4091},
		{1, 1, 4091},
		{100, 70, 33}, // shorter messages than announced are fine
		{1 << 30, 700, 1},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			a, b := pair(t)
			encrypt(t, a, b)
			data := pattern(1234)
			a.SetPacketSize(c.packet)
			a.PutInt(int64(len(data)))
			a.PutInt(int64(c.chunk))
			must(t, a.EndMessage())
			for rest := data; len(rest) > 0; {
				n := min(c.message, len(rest))
				a.PutBytes(rest[:n])
				must(t, a.EndMessage())
				rest = rest[n:]
			}
			a.PutInt(5)
			must(t, a.EndMessage())
			var got bytes.Buffer
			if _, err := b.GetFile(&got, -1); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(data, got.Bytes()) {
				t.Error("other bytes arrived")
			}
			must(t, b.EndOfMessage())
			wantInt(t, b, 5)
		})
	}
}

// failing is a file that takes only some bytes.
type failing struct{ left int }

var errFull = errors.New("disk full")

func (f *failing) Write(p []byte) (int, error) {
	n := min(f.left, len(p))
	f.left -= n
	if n < len(p) {
		return n, errFull
	}
	return n, nil
}

func TestFileWriteFails(t *testing.T) {
	modes(t, func(t *testing.T, a, b *Stream) {
		const size = 2 * fileChunk
		go func() {
			_ = a.PutFile(zeros{}, size)
			_ = a.EndMessage()
			a.PutInt(5)
			_ = a.EndMessage()
		}()
		n, err := b.GetFile(&failing{left: 1000}, -1)
		var broken *FileWriteError
		if !errors.As(err, &broken) || !errors.Is(err, errFull) || n != 1000 || broken.Size != size {
			t.Fatalf("got %d, %v", n, err)
		}
		// The rest was thrown away, the conversation goes on.
		must(t, b.EndOfMessage())
		wantInt(t, b, 5)
	})
}

func TestFileTooLarge(t *testing.T) {
	a, b := pair(t)
	encrypt(t, a, b)
	go func() { _ = a.PutFile(zeros{}, 100) }()
	if _, err := b.GetFile(io.Discard, 99); !errors.Is(err, ErrFileTooLarge) {
		t.Errorf("got %v", err)
	}
	if _, err := b.GetInt(); !errors.Is(err, ErrFileTooLarge) {
		t.Errorf("the stream goes on: %v", err)
	}
}

func TestFileSourceEndsEarly(t *testing.T) {
	modes(t, func(t *testing.T, a, b *Stream) {
		err := a.PutFile(bytes.NewReader([]byte("short")), 6)
		var broken *FileReadError
		if !errors.As(err, &broken) || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("got %v", err)
		}
		a.PutInt(1)
		if err := a.EndMessage(); !errors.As(err, &broken) {
			t.Errorf("the stream goes on: %v", err)
		}
	})
}

func TestHostileFiles(t *testing.T) {
	for _, c := range []struct {
		name string
		put  func(*Stream)
	}{
		{"negative size", func(s *Stream) { s.PutInt(-1); s.PutInt(1); _ = s.EndMessage() }},
		{"chunk of nothing", func(s *Stream) { s.PutInt(1); s.PutInt(0); _ = s.EndMessage() }},
		{"chunk too long", func(s *Stream) {
			s.PutInt(10)
			s.PutInt(4)
			_ = s.EndMessage()
			s.PutBytes(make([]byte, 5))
			_ = s.EndMessage()
		}},
		{"more than announced", func(s *Stream) {
			s.PutInt(3)
			s.PutInt(4)
			_ = s.EndMessage()
			s.PutBytes(make([]byte, 4))
			_ = s.EndMessage()
		}},
		{"wrong mark", func(s *Stream) {
			s.PutInt(0)
			s.PutInt(4)
			_ = s.EndMessage()
			s.PutInt(667)
			_ = s.EndMessage()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := pair(t)
			encrypt(t, a, b)
			c.put(a)
			var violation *ProtocolError
			if n, err := b.GetFile(io.Discard, -1); !errors.As(err, &violation) {
				t.Errorf("got %d, %v", n, err)
			}
		})
	}
}

// TestFileSlowPeer sends less than the kernel gathers and then nothing for
// longer than the timeout: it is progress that counts.
func TestFileSlowPeer(t *testing.T) {
	const size = fileChunk
	a, out := recorder(nil)
	encrypt(t, a)
	a.SetPacketSize(4000)
	a.PutInt(size)
	a.PutInt(fileChunk)
	must(t, a.EndMessage())
	a.PutBytes(make([]byte, size))
	must(t, a.EndMessage())
	bytesOfFile := out.Bytes()

	tx, rx := connPair(t)
	b := NewStream(rx)
	encrypt(t, b)
	b.SetTimeout(100 * time.Millisecond)
	arrived := make(chan error, 1)
	go func() {
		_, err := b.GetFile(io.Discard, -1)
		arrived <- err
	}()
	for part := range slices.Chunk(bytesOfFile, 50000) {
		_, err := tx.Write(part)
		must(t, err)
		<-time.After(70 * time.Millisecond)
	}
	must(t, <-arrived)
}

func TestFileFromDisk(t *testing.T) {
	a, b := pair(t)
	encrypt(t, a, b)
	name := filepath.Join(t.TempDir(), "file")
	data := pattern(1 << 20)
	must(t, os.WriteFile(name, data, 0o600))
	f, err := os.Open(name)
	must(t, err)
	defer f.Close()
	go func() { _ = a.PutFile(f, int64(len(data))) }()
	var got bytes.Buffer
	_, err = b.GetFile(&got, -1)
	must(t, err)
	if !bytes.Equal(data, got.Bytes()) {
		t.Error("other bytes arrived")
	}
}
