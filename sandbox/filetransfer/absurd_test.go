package filetransfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/classads"
	"podstarter/internal/cedar"
	"podstarter/sandbox/sandboxtest"
)

// What no shadow should send, and what the transfer gives up for it: the stream or the
// item.
func TestDownloadOfAbsurdities(t *testing.T) {
	file := func(numbers ...int64) func(*cedar.Stream) error {
		return func(s *cedar.Stream) error {
			s.PutInt(0o644)
			_ = s.EndMessage()
			for _, n := range numbers {
				s.PutInt(n)
			}
			_ = s.EndMessage()
			s.PutBytes([]byte("a few bytes"))
			return errors.Join(s.EndMessage(), s.Flush(), errCut)
		}
	}
	long := strings.Repeat("n", 1<<20)
	for _, c := range []struct {
		name  string
		item  sent
		again bool // the stream is unusable
		sub   unix.Errno
		text  string
	}{
		{"file of less than nothing", sent{command: 1, name: "f", raw: file(-1, 262144)}, true, unix.EIO, "file of -1 bytes"},
		{"file of all there is", sent{command: 1, name: "f", raw: file(math.MaxInt64, 262144)}, true, unix.ECONNRESET, "receiving file"},
		{"pieces of nothing", sent{command: 1, name: "f", raw: file(11, 0)}, true, unix.EIO, "messages of 0 bytes"},
		{"pieces of less than nothing", sent{command: 1, name: "f", raw: file(11, -5)}, true, unix.EIO, "messages of -5 bytes"},
		{"pieces shorter than what comes", sent{command: 1, name: "f", raw: file(1000, 4)}, true, unix.EIO, "more than the 4 bytes announced"},
		{"more than was announced", sent{command: 1, name: "f", raw: file(5, 262144)}, true, unix.EIO, "more than the 5 bytes announced"},
		{"proxy of nothing", sent{command: 4, name: "p", raw: func(s *cedar.Stream) error {
			n, err := s.GetInt()
			if err == nil {
				_, err = s.GetBytes(int(n))
			}
			if err = end(s, err); err == nil {
				s.PutInt(0)
				err = s.EndMessage()
			}
			return errors.Join(err, s.Flush(), errCut)
		}}, true, unix.EIO, "receiving file"},
		{"proxy of nonsense", sent{command: 4, name: "p", raw: func(s *cedar.Stream) error {
			n, err := s.GetInt()
			if err == nil {
				_, err = s.GetBytes(int(n))
			}
			if err = end(s, err); err == nil {
				s.PutInt(3)
				s.PutBytes([]byte("abc"))
				err = s.EndMessage()
			}
			return errors.Join(err, s.Flush(), errCut)
		}}, true, unix.EIO, "receiving file"},
		{"proxy too long", sent{command: 4, name: "p", raw: func(s *cedar.Stream) error {
			n, err := s.GetInt()
			if err == nil {
				_, err = s.GetBytes(int(n))
			}
			if err = end(s, err); err == nil {
				s.PutInt(math.MaxInt64)
				err = s.EndMessage()
			}
			return errors.Join(err, s.Flush(), errCut)
		}}, true, unix.EIO, "receiving file"},
		{"ad of too many attributes", sent{command: 999, raw: func(s *cedar.Stream) error {
			s.PutInt(math.MaxInt64)
			return errors.Join(s.EndMessage(), s.Flush(), errCut)
		}}, true, unix.EIO, "attributes"},
		{"ad that is too long", sent{command: 999, raw: func(s *cedar.Stream) error {
			s.PutInt(1)
			s.PutString("SubCommand = " + strings.Repeat(" ", maxAd) + "8")
			s.PutString("")
			s.PutString("")
			return errors.Join(s.EndMessage(), s.Flush(), errCut)
		}}, true, unix.EIO, fmt.Sprintf("message of more than %d bytes", maxAd)},
		{"long name", sent{command: 1, name: long, data: "x"}, false, unix.ENAMETOOLONG, "(errno 36) File name too long"},
		{"long name of a directory", sent{command: 6, name: long, mode: 0o755}, false, unix.ENAMETOOLONG, "failed to create directory"},
		{"long path of a directory", sent{command: 6, name: strings.Repeat("d/", 1<<19), mode: 0o755}, false, unix.ENAMETOOLONG, "failed to create directory"},
		{"the sandbox itself", sent{command: 1, name: ".", data: "x"}, false, unix.EISDIR, "(errno 21)"},
		{"command below all", sent{command: -7, name: "d/..", data: "x"}, false, unix.EPERM, "illegal sandbox path"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, s := newShadow(t), sandboxtest.New(t)
			f.items = []sent{c.item, {command: 1, name: "last", data: "last"}}
			_, err := f.transfer(s, plainJob).Download(t.Context())
			<-f.done
			var v *Error
			if !errors.As(err, &v) || v.Code != 12 || v.TryAgain != c.again || !strings.Contains(v.Text, c.text) || len(v.Text) > 20<<10 {
				t.Fatalf("error %.500v", err)
			}
			if !c.again && v.Subcode != int(c.sub) {
				t.Errorf("subcode %d, want %d", v.Subcode, int(c.sub))
			}
			_, err = os.Stat(s.Scratch() + "/last")
			if arrived := err == nil; arrived == c.again {
				t.Errorf("the next file arrived: %v", arrived)
			}
			if names, _ := os.ReadDir(s.Scratch()); c.again && len(names) > 0 {
				t.Errorf("left behind: %v", names)
			}
		})
	}
}

// Odd answers of a shadow to a go-ahead.
func TestOddGoAheads(t *testing.T) {
	s := sandboxtest.New(t)
	sandboxtest.Put(t, s, map[string]string{"a": big1(5000), "_condor_stdout": "o"})
	for _, c := range []struct {
		name string
		said []any
		code int // 0: it goes well
		sub  int
		sent int64 // bytes
	}{
		{"granted", []any{"[Result=2]", 300, "[Result=0]"}, 0, 0, 5001},
		{"granted, with a number that is none", []any{`[Result=2; MaxTransferBytes="many"]`, 300, "[Result=0]"}, 0, 0, 5001},
		{"granted, without a limit", []any{"[Result=2; MaxTransferBytes=-7]", 300, "[Result=0]"}, 0, 0, 5001},
		{"granted, for nothing", []any{"[Result=2; MaxTransferBytes=0]", 300, "[Result=0]"}, 33, 0, 0},
		{"limit that changes", []any{"[Result=0; MaxTransferBytes=1]", "[Result=2; MaxTransferBytes=10000]", 300, "[Result=0]"}, 0, 0, 5001},
		{"granted beyond all", []any{"[Result=9]", 300, "[Result=9]", "[Result=0]"}, 0, 0, 5001},
		{"result that is text", []any{`[Result="2"]`, 300}, 18, 1, 0},
		{"result that is undefined", []any{"[Result=undefined]", 300}, 18, 1, 0},
		{"result that refers to itself", []any{"[Result=Result]", 300}, 18, 1, 0},
		{"timeouts", []any{"[Result=0; Timeout=-1]", "[Result=0; Timeout=0]", "[Result=0; Timeout=9223372036854775807]", "[Result=2]", 300, "[Result=0]"}, 0, 0, 5001},
		{"refused, with codes that are none", []any{"[Result=-1; HoldReasonCode=99999999999; HoldReasonSubCode=-99999999999]", 300}, 13, 0, 0},
		{"refused, at length", []any{`[Result=-1; TryAgain=false; HoldReason="` + strings.Repeat("x", 100_000) + `"]`, 300}, 13, 0, 0},
		{"question without an end", []any{"[Result=2]", math.MaxInt64, "[Result=0]"}, 0, 0, 5001},
		{"question of less than nothing", []any{"[Result=2]", math.MinInt64, "[Result=0]"}, 0, 0, 5001},
		{"acknowledged with text", []any{"[Result=2]", 300, `[Result="0"]`}, 11, 0, 5001},
		{"acknowledged with codes that are none", []any{"[Result=2]", 300, `[Result=-9223372036854775808; HoldReasonCode=4294967308; HoldReasonSubCode=99999999999; HoldReason=17]`}, 13, 0, 5001},
		{"acknowledged with odd statistics", []any{"[Result=2]", 300, `[Result=0; TransferStats="none"; x=TransferStats.y]`}, 0, 0, 5001},
	} {
		t.Run(c.name, func(t *testing.T) {
			said := messages(t, c.said...)
			result, err := transferWith(t, s, func(context.Context, int) (*cedar.Stream, error) {
				return cedar.NewStream(deadConn{bytes.NewReader(said)}), nil
			}, `TransferOutput = "a"`).Upload(t.Context(), Upload{})
			var v *Error
			switch errors.As(err, &v); {
			case (err == nil) != (c.code == 0):
				t.Fatalf("error %.300v", err)
			case err != nil && (v.Code != c.code || v.Subcode != c.sub):
				t.Errorf("%d/%d, want %d/%d: %.300v", v.Code, v.Subcode, c.code, c.sub, err)
			case err != nil && len(v.Text) > 20<<10:
				t.Errorf("a reason of %d bytes", len(v.Text))
			}
			if result.Bytes != c.sent {
				t.Errorf("%d bytes were sent, want %d", result.Bytes, c.sent)
			}
		})
	}
}

// TestPatience: the starter waits for a peer as long as that says, but not absurdly
// long.
func TestPatience(t *testing.T) {
	const day = 86400
	for seconds, want := range map[int64]time.Duration{
		-1: 0, 0: 0, 1: time.Second, 300: 5 * time.Minute, day: 24 * time.Hour, day + 1: 0, 1 << 40: 0, 1<<63 - 1: 0,
	} {
		ad := classads.NewAd()
		ad.SetInt("Timeout", seconds)
		if got := patience(ad); got != want {
			t.Errorf("%d: %v, want %v", seconds, got, want)
		}
	}
	if got := patience(classads.NewAd()); got != 0 {
		t.Errorf("no word: %v", got)
	}
}
