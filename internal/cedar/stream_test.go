package cedar

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
)

// modes runs a test on a plaintext and on an encrypted pair of streams.
func modes(t *testing.T, f func(t *testing.T, a, b *Stream)) {
	for _, mode := range []string{"plain", "encrypted"} {
		t.Run(mode, func(t *testing.T) {
			a, b := pair(t)
			if mode == "encrypted" {
				encrypt(t, a, b)
			}
			f(t, a, b)
		})
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantInt(t testing.TB, s *Stream, want int64) {
	t.Helper()
	got, err := s.GetInt()
	if err != nil || got != want {
		t.Fatalf("got %d, %v; want %d", got, err, want)
	}
}

func wantString(t testing.TB, s *Stream, want string) {
	t.Helper()
	got, err := s.GetString()
	if err != nil || got != want {
		t.Fatalf("got %.80q, %v; want %.80q", got, err, want)
	}
}

func TestRoundTrip(t *testing.T) {
	modes(t, func(t *testing.T, a, b *Stream) {
		long := strings.Repeat("0123456789abcdef", 20000)
		// Small packets make every value straddle some boundary.
		for _, size := range []int{1, 3, 7, 64, 4091, DefaultPacketSize, MaxPacketSize + 5} {
			a.SetPacketSize(size)
			if size < 64 && a.send.counter > 0 {
				long = long[:500]
			}
			done := make(chan error, 1)
			go func() {
				a.PutInt(math.MinInt64)
				a.PutUint(math.MaxUint64)
				a.PutBool(true)
				a.PutDouble(-2.75)
				a.PutString("")
				a.PutString(long)
				a.PutNullString("", false)
				a.PutNullString("there", true)
				a.PutSecret("s3cret")
				a.PutBytes([]byte{0, 1, 2})
				a.PutMode(0o100644)
				a.PutMode(MissingPermissions)
				a.PutErrno(syscall.ENOTEMPTY)
				_, _ = a.Write([]byte("tail"))
				done <- a.EndMessage()
			}()
			wantInt(t, b, math.MinInt64)
			if v, err := b.GetUint(); err != nil || v != math.MaxUint64 {
				t.Fatal(v, err)
			}
			if v, err := b.GetBool(); err != nil || !v {
				t.Fatal(v, err)
			}
			if v, err := b.GetDouble(); err != nil || math.Abs(v+2.75) > 1e-8 {
				t.Fatal(v, err)
			}
			wantString(t, b, "")
			wantString(t, b, long)
			if _, present, err := b.GetNullString(); err != nil || present {
				t.Fatal(present, err)
			}
			if v, present, err := b.GetNullString(); err != nil || !present || v != "there" {
				t.Fatal(v, present, err)
			}
			if v, err := b.GetSecret(); err != nil || v != "s3cret" {
				t.Fatal(v, err)
			}
			if v, err := b.GetBytes(3); err != nil || !bytes.Equal(v, []byte{0, 1, 2}) {
				t.Fatal(v, err)
			}
			if v, err := b.GetMode(); err != nil || v != 0o644 {
				t.Fatal(v, err)
			}
			if v, err := b.GetMode(); err != nil || v != MissingPermissions {
				t.Fatal(v, err)
			}
			if v, err := b.GetErrno(); err != nil || v != syscall.ENOTEMPTY {
				t.Fatal(v, err)
			}
			tail := make([]byte, 4)
			if err := b.ReadFull(tail); err != nil || string(tail) != "tail" {
				t.Fatal(tail, err)
			}
			must(t, b.EndOfMessage())
			must(t, <-done)
		}
	})
}

func TestPacketBoundary(t *testing.T) {
	s, out := recorder(nil)
	s.SetPacketSize(8)
	s.PutInt(1)
	must(t, s.EndMessage())
	s.PutInt(1)
	s.PutBytes([]byte{9})
	must(t, s.EndMessage())
	want := "01 00000008 0000000000000001" + "00 00000008 0000000000000001" + "01 00000001 09"
	if diff := cmp.Diff(unhex(t, want), out.Bytes()); diff != "" {
		t.Error(diff)
	}
}

func TestEndOfMessage(t *testing.T) {
	modes(t, func(t *testing.T, a, b *Stream) {
		if err := a.EndMessage(); !errors.Is(err, ErrNoMessage) {
			t.Errorf("sending an empty message: %v", err)
		}
		if err := b.EndOfMessage(); !errors.Is(err, ErrNoMessage) {
			t.Errorf("ending a message that was not begun: %v", err)
		}
		a.AllowEmptyMessage()
		must(t, a.EndMessage())
		if err := a.EndMessage(); !errors.Is(err, ErrNoMessage) {
			t.Errorf("the permission for an empty message holds twice: %v", err)
		}
		b.AllowEmptyMessage()
		must(t, b.EndOfMessage())

		a.SetPacketSize(4)
		a.PutInt(1)
		a.PutInt(2)
		must(t, a.EndMessage())
		a.PutInt(3)
		must(t, a.EndMessage())
		wantInt(t, b, 1)
		if err := b.EndOfMessage(); !errors.Is(err, ErrLeftover) {
			t.Errorf("unread bytes: %v", err)
		}
		wantInt(t, b, 3)
		if _, err := b.GetInt(); !errors.Is(err, ErrMessageEnd) {
			t.Errorf("reading over the end of a message: %v", err)
		}
		must(t, b.EndOfMessage())
	})
}

func TestReadAsReader(t *testing.T) {
	modes(t, func(t *testing.T, a, b *Stream) {
		a.SetPacketSize(100)
		want := bytes.Repeat([]byte("abc"), 1000)
		a.PutBytes(want)
		must(t, a.EndMessage())
		got, err := io.ReadAll(b)
		must(t, err)
		if !bytes.Equal(want, got) {
			t.Error("the bytes are not those sent")
		}
		must(t, b.EndOfMessage())
		must(t, a.Close())
		if _, err := io.ReadAll(b); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("the end of the connection looks like the end of a message: %v", err)
		}
	})
}

func TestReadMessage(t *testing.T) {
	modes(t, func(t *testing.T, a, b *Stream) {
		a.SetPacketSize(3)
		a.PutBytes([]byte("12345"))
		must(t, a.EndMessage())
		a.PutBytes([]byte("123456"))
		must(t, a.EndMessage())
		buf := make([]byte, 5)
		if n, err := b.ReadMessage(buf); n != 5 || err != nil || string(buf) != "12345" {
			t.Fatal(n, err, buf)
		}
		var violation *ProtocolError
		if _, err := b.ReadMessage(buf); !errors.As(err, &violation) {
			t.Errorf("a message that is too long: %v", err)
		}
	})
}

func TestCoalesce(t *testing.T) {
	modes(t, func(t *testing.T, a, b *Stream) {
		a.SetCoalesce(true)
		for i := range 3 {
			a.PutInt(int64(i))
			must(t, a.EndMessage())
		}
		b.SetTimeout(20 * time.Millisecond)
		if err := b.Wait(); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("something was sent before the flush: %v", err)
		}
		b.SetTimeout(0)
		go func() {
			b.PutInt(9)
			_ = b.EndMessage()
		}()
		// Reading flushes.
		wantInt(t, a, 9)
		for i := range 3 {
			wantInt(t, b, int64(i))
			must(t, b.EndOfMessage())
		}
	})
}

func TestStrings(t *testing.T) {
	s, _ := recorder(nil)
	s.PutString("a\x00b")
	if err := s.EndMessage(); err == nil {
		t.Error("a string with a NUL byte was sent")
	}
	s, _ = recorder(nil)
	s.PutString(strings.Repeat("x", maxString))
	if err := s.EndMessage(); err == nil {
		t.Error("a string that no peer accepts was sent")
	}
	s, _ = recorder(nil)
	s.PutDouble(math.NaN())
	if err := s.EndMessage(); err == nil {
		t.Error("NaN was sent")
	}
}

func TestAds(t *testing.T) {
	modes(t, func(t *testing.T, a, b *Stream) {
		ad := classads.NewAd()
		ad.SetString("MyType", "Job")
		ad.SetString("ClaimId", "<127.0.0.1:1>#1#2#secret")
		ad.SetString("Path", `C:\dir\"x"`)
		ad.SetInt("N", -5)
		must(t, ad.SetExpr("Requirements", "TARGET.Cpus >= 1 && x =?= undefined"))
		done := make(chan error, 1)
		go func() {
			a.PutAd(ad)
			a.PutAdWith(ad, AdOptions{OmitPrivate: true, ServerTime: time.Unix(77, 0)})
			done <- a.EndMessage()
		}()
		got, err := b.GetAd()
		must(t, err)
		if diff := cmp.Diff(ad.FormatOld(), got.FormatOld()); diff != "" {
			t.Error(diff)
		}
		got, err = b.GetAd()
		must(t, err)
		if got.Has("ClaimId") || got.IntOr("ServerTime", 0) != 77 || got.Len() != ad.Len() {
			t.Errorf("public ad: %s", got.FormatOld())
		}
		must(t, b.EndOfMessage())
		must(t, <-done)
	})
}

func TestAdOnTheWire(t *testing.T) {
	a, b := pair(t)
	for _, lines := range [][]string{
		{"2", "ZKM", `TransferKey = "k"`, "A = 1", "Job", "(unknown type)"},
		{"2", "A = 1", `B = ("s3cret"`, "", ""},
		{"0", "", ""},
	} {
		var n int64
		_, _ = fmt.Sscan(lines[0], &n)
		a.PutInt(n)
		for _, l := range lines[1:] {
			a.PutString(l)
		}
		must(t, a.EndMessage())
	}
	ad, err := b.GetAd()
	must(t, err)
	must(t, b.EndOfMessage())
	if diff := cmp.Diff("TransferKey = \"k\"\nA = 1\nMyType = \"Job\"\n", ad.FormatOld()); diff != "" {
		t.Error(diff)
	}
	// An ad that cannot be parsed is taken from the stream all the same.
	var bad *AdError
	if _, err := b.GetAd(); !errors.As(err, &bad) || bad.Name != "B" || bad.Line != 2 || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("a bad attribute: %v", err)
	}
	must(t, b.EndOfMessage())
	ad, err = b.GetAd()
	must(t, err)
	if ad.Len() != 0 {
		t.Error(ad.FormatOld())
	}
	must(t, b.EndOfMessage())
}

func TestCancel(t *testing.T) {
	modes(t, func(t *testing.T, a, b *Stream) {
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		b.SetTimeout(time.Minute)
		undo := b.Cancel(ctx)
		go cancel(cause)
		if err := b.Wait(); !errors.Is(err, cause) {
			t.Errorf("interrupted wait: %v", err)
		}
		// As long as the context is watched, nothing goes on.
		if _, err := b.GetInt(); !errors.Is(err, cause) {
			t.Errorf("read after the interruption: %v", err)
		}
		undo()
		// An interruption between messages does no harm.
		a.PutInt(4)
		must(t, a.EndMessage())
		wantInt(t, b, 4)
		must(t, b.EndOfMessage())
		// A context that has ended by the time of undo leaves no trace.
		ctx2, cancel2 := context.WithCancel(t.Context())
		undo2 := b.Cancel(ctx2)
		cancel2()
		undo2()
		a.PutInt(5)
		must(t, a.EndMessage())
		wantInt(t, b, 5)
	})
}

func TestTimeout(t *testing.T) {
	_, b := pair(t)
	b.SetTimeout(10 * time.Millisecond)
	if _, err := b.GetInt(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestDetach(t *testing.T) {
	a, b := pair(t)
	a.PutInt(1)
	must(t, a.EndMessage())
	_, err := a.Conn().Write([]byte("SSH-2.0"))
	must(t, err)
	wantInt(t, b, 1)
	must(t, b.EndOfMessage())
	must(t, b.Wait())
	conn, rest := b.Detach()
	if string(rest) != "SSH-2.0" || conn != b.Conn() {
		t.Errorf("got %q", rest)
	}
}

// TestBothDirections puts in one goroutine and gets in another.
func TestBothDirections(t *testing.T) {
	modes(t, func(t *testing.T, a, b *Stream) {
		const n = 200
		done := make(chan error, 2)
		for _, s := range []*Stream{a, b} {
			go func() {
				for i := range n {
					s.PutInt(int64(i))
					if err := s.EndMessage(); err != nil {
						done <- err
						return
					}
				}
				done <- nil
			}()
		}
		for i := range n {
			for _, s := range []*Stream{a, b} {
				wantInt(t, s, int64(i))
				must(t, s.EndOfMessage())
			}
		}
		must(t, errors.Join(<-done, <-done))
	})
}
