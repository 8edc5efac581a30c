package channel

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// encoded are frames as they are on the wire.
func encoded(frames ...frame) []byte {
	var text []byte
	for _, f := range frames {
		text = append(text, byte(f.kind), byte(len(f.data)>>24), byte(len(f.data)>>16), byte(len(f.data)>>8), byte(len(f.data)))
		text = append(text, f.data...)
	}
	return text
}

func TestReadFrame(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       frame
		err        string
	}{
		{name: "output", text: "O\x00\x00\x00\x02hi rest", want: frame{frameStdout, []byte("hi")}},
		{name: "empty", text: "i\x00\x00\x00\x00", want: frame{frameStdinEnd, []byte{}}},
		{name: "nothing", err: "EOF"},
		{name: "half a header", text: "O\x00", err: "unexpected EOF"},
		{name: "no data", text: "O\x00\x00\x00\x02", err: "unexpected EOF"},
		{name: "half the data", text: "O\x00\x00\x00\x02h", err: "unexpected EOF"},
		{name: "unknown", text: "?\x00\x00\x00\x00", err: "a frame of the unknown type '?'"},
		{name: "too long", text: "O\x00\x00\x80\x01", err: "a frame of type 'O' has 32769 bytes, not 1 to 32768"},
		{name: "far too long", text: "R\xff\xff\xff\xff", err: "a frame of type 'R' has 4294967295 bytes, not 0 to 4194304"},
		{name: "empty output", text: "O\x00\x00\x00\x00", err: "a frame of type 'O' has 0 bytes, not 1 to 32768"},
		{name: "short exit", text: "X\x00\x00\x00\x01\x00", err: "a frame of type 'X' has 1 bytes, not 2 to 2"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := readFrame(strings.NewReader(tc.text))
			var text string
			if err != nil {
				text = err.Error()
			}
			if text != tc.err || got.kind != tc.want.kind || !bytes.Equal(got.data, tc.want.data) {
				t.Errorf("readFrame = %q %q, %q; want %q %q, %q", byte(got.kind), got.data, text, byte(tc.want.kind), tc.want.data, tc.err)
			}
		})
	}
}

func FuzzReadFrame(f *testing.F) {
	f.Add([]byte("O\x00\x00\x00\x02hii\x00\x00\x00\x00"))
	f.Add([]byte("R\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, text []byte) {
		r := bytes.NewReader(text)
		var again []byte
		for {
			got, err := readFrame(r)
			if err != nil {
				break
			}
			if least, most, ok := got.kind.size(); !ok || len(got.data) < int(least) || len(got.data) > int(most) {
				t.Fatalf("a frame %q of %d bytes", byte(got.kind), len(got.data))
			}
			again = append(again, encoded(got)...)
		}
		if !bytes.HasPrefix(text, again) {
			t.Errorf("%q was read as %q", text, again)
		}
	})
}

// FuzzTake: whatever a client sends, in any order, is an error at worst.
func FuzzTake(f *testing.F) {
	f.Add(encoded(frame{frameStdin, []byte("a")}, frame{frameStdinEnd, nil}, frame{frameStdinEnd, nil}, frame{frameSignal, []byte{15}}))
	f.Add(encoded(frame{frameCredit, []byte("O")}))
	f.Fuzz(func(t *testing.T, text []byte) {
		s := &session{stdin: newQueue(), outputs: []*output{{frameStdout, nil, newCredits()}}, ended: make(chan struct{})}
		close(s.ended)
		r := bytes.NewReader(text)
		for {
			got, err := readFrame(r)
			if err != nil || s.take(got) != nil {
				return
			}
		}
	})
}

func number(t *testing.T, text []byte) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func asked(t *testing.T, args ...string) frame {
	t.Helper()
	text, err := json.Marshal(request{Args: toBytes(args)})
	if err != nil {
		t.Fatal(err)
	}
	return frame{frameRequest, text}
}

// A client that breaks the rules loses its command, and nobody else does.
func TestHostileClient(t *testing.T) {
	dial, _ := server(t)
	for _, tc := range []struct {
		name string
		sent []byte
		want string
	}{
		{name: "unknown type", sent: []byte("?\x00\x00\x00\x00"), want: "unknown type"},
		{name: "a second command", sent: encoded(asked(t, "true")), want: "does not send here"},
		{name: "output", sent: encoded(frame{frameStdout, []byte("x")}), want: "does not send here"},
		{name: "bytes after the end", sent: encoded(frame{frameStdinEnd, nil}, frame{frameStdin, []byte("x")}), want: "after the end"},
		{name: "too much input", sent: bytes.Repeat(encoded(frame{frameStdin, make([]byte, chunkSize)}), 100), want: "on the way"},
		{name: "no signal", sent: encoded(frame{frameSignal, []byte{65}}), want: "no signal 65"},
		{name: "signal 0", sent: encoded(frame{frameSignal, []byte{0}}), want: "no signal 0"},
		{name: "credit for nothing", sent: bytes.Repeat(encoded(frame{frameCredit, []byte("E")}), 2), want: "was not sent"},
		{name: "credit for input", sent: encoded(frame{frameCredit, []byte("I")}), want: "no output"},
		{name: "cut off", sent: []byte("O\x00"), want: "unexpected EOF"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			conn := dial()
			defer conn.Close()
			if _, err := conn.Write(encoded(asked(t, "sh", "-c", "echo $$; exec sleep 1000"))); err != nil {
				t.Fatal(err)
			}
			first, err := readFrame(conn)
			if err != nil || first.kind != frameStdout {
				t.Fatalf("first comes %q %q, %v", byte(first.kind), first.data, err)
			}
			pid := pidfd(t, number(t, first.data))
			if _, err := conn.Write(tc.sent); err != nil {
				t.Fatal(err)
			}
			if tcp := conn.(*net.TCPConn); tc.name == "cut off" {
				if err := tcp.CloseWrite(); err != nil {
					t.Fatal(err)
				}
			}
			ended(t, pid)
			for {
				f, err := readFrame(conn)
				if err != nil {
					t.Fatalf("no failure comes, but %v", err)
				}
				if f.kind != frameFailure {
					continue
				}
				if !strings.Contains(string(f.data), tc.want) {
					t.Errorf("the server says %q, want %q in it", f.data, tc.want)
				}
				return
			}
		})
	}
	t.Run("first frame", func(t *testing.T) {
		for _, sent := range []frame{{frameStdin, []byte("x")}, {frameRequest, []byte("{")}, {frameRequest, []byte("{}")}} {
			conn := dial()
			if _, err := conn.Write(encoded(sent)); err != nil {
				t.Fatal(err)
			}
			if f, err := readFrame(conn); err != nil || f.kind != frameFailure {
				t.Errorf("%q: the server says %q %q, %v", sent.data, byte(f.kind), f.data, err)
			}
			if _, err := readFrame(conn); !errors.Is(err, io.EOF) {
				t.Errorf("%q: after the failure comes %v", sent.data, err)
			}
			conn.Close()
		}
	})
}

// A server that breaks the rules, or ends, is an error of Run.
func TestHostileServer(t *testing.T) {
	output := encoded(frame{frameStdout, []byte("x")})
	for _, tc := range []struct {
		name string
		sent []byte
		want string
	}{
		{name: "nothing", want: "the connection ended before the command did"},
		{name: "output and nothing", sent: output, want: "the connection ended before the command did"},
		{name: "half a frame", sent: output[:3], want: "unexpected EOF"},
		{name: "unknown type", sent: []byte("?\x00\x00\x00\x00"), want: "unknown type"},
		{name: "a client's frame", sent: encoded(frame{frameStdinEnd, nil}), want: "which only a client sends"},
		{name: "credit for nothing", sent: encoded(frame{frameCredit, []byte("I")}), want: "was not sent"},
		{name: "too much output", sent: slices.Repeat(output, 100), want: "on the way"},
		{name: "failure", sent: encoded(frame{frameFailure, []byte("no room")}), want: "in the guest: no room"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ours, theirs := net.Pipe()
			held := &gate{open: make(chan struct{})}
			go func() {
				go func() { _, _ = io.Copy(io.Discard, theirs) }()
				_, _ = theirs.Write(tc.sent)
				theirs.Close()
				close(held.open)
			}()
			code, err := Run(t.Context(), ours, Command{Args: []string{"x"}, Stdout: held})
			if code != -1 || err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Run = %d, %v; want %q", code, err, tc.want)
			}
		})
	}
}

// A context that ended before, or a connection that hangs, does not hold Run up.
func TestEndOfTheContext(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	reason := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		_, _ = theirs.Read(make([]byte, 1))
		cancel(reason)
	}()
	if code, err := Run(ctx, ours, Command{Args: []string{"x"}}); code != -1 || !errors.Is(err, reason) {
		t.Errorf("Run = %d, %v", code, err)
	}
}
