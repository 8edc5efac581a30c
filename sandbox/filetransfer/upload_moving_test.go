package filetransfer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/classads"
	"podstarter/internal/cedar"
	"podstarter/sandbox/sandboxtest"
)

func TestUploadSettles(t *testing.T) {
	run := func(t *testing.T, job string, set func(*fakeShadow)) (*Error, *fakeShadow) {
		t.Helper()
		f, s := newShadow(t), sandboxtest.New(t)
		sandboxtest.Put(t, s, map[string]string{"a": "a", "b": big1(5 << 20), "_condor_stdout": "o"})
		set(f)
		_, err := f.transfer(s, plainJob+job+"\n").Upload(context.Background(), Upload{})
		var v *Error
		if !errors.As(err, &v) {
			t.Fatalf("error %v", err)
		}
		<-f.done
		return v, f
	}
	good, bad := `TransferOutput = "a,b"`, `TransferOutput = "a,none"`
	full := `[Result=-1; HoldReasonCode=12; HoldReasonSubCode=28; HoldReason="SHADOW at 1.1.1.1 - |Error: writing to file /x: (errno 28) No space left on device"]`
	t.Run("receiver failed", func(t *testing.T) {
		v, _ := run(t, good, func(f *fakeShadow) { f.ack = ad(t, full) })
		if v.Code != 12 || v.Subcode != 28 || v.TryAgain || !strings.HasPrefix(v.Text, "STARTER at 127.0.0.1 failed to send file(s) to <127.0.0.1:") ||
			!strings.Contains(v.Text, "; SHADOW at 1.1.1.1") {
			t.Errorf("%+v", v)
		}
	})
	t.Run("receiver failed for now", func(t *testing.T) {
		v, _ := run(t, good, func(f *fakeShadow) { f.ack = ad(t, `[Result=1]`) })
		if v.Code != 13 || !v.TryAgain {
			t.Errorf("%+v", v)
		}
	})
	t.Run("both failed", func(t *testing.T) {
		v, _ := run(t, bad, func(f *fakeShadow) {
			f.ack = ad(t, `[Result=-1; HoldReasonCode=13; HoldReasonSubCode=2; HoldReason="SHADOW failed to receive file(s) from <1.1.1.1:1>"]`)
		})
		if v.Code != 13 || v.Subcode != 2 || v.TryAgain || !strings.HasSuffix(v.Text, "No such file or directory; SHADOW failed to receive file(s) from <1.1.1.1:1>") {
			t.Errorf("%+v", v)
		}
	})
	t.Run("no acknowledgement", func(t *testing.T) {
		v, _ := run(t, good, func(f *fakeShadow) { f.mangle = func(*cedar.Stream) {} })
		if v.Code != 13 || !v.TryAgain || v.Subcode != int(unix.ECONNRESET) {
			t.Errorf("%+v", v)
		}
	})
	t.Run("no acknowledgement of a failure", func(t *testing.T) {
		v, _ := run(t, bad, func(f *fakeShadow) { f.mangle = func(*cedar.Stream) {} })
		if v.Code != 13 || v.TryAgain || v.Subcode != 2 {
			t.Errorf("%+v", v)
		}
	})
	t.Run("cut", func(t *testing.T) {
		v, _ := run(t, good, func(f *fakeShadow) { f.cut = func(i int) bool { return i == 1 } })
		if v.Code != 13 || !v.TryAgain {
			t.Errorf("%+v", v)
		}
	})
	t.Run("refused", func(t *testing.T) {
		v, _ := run(t, good, func(f *fakeShadow) { f.refuse = ad(t, `[Result=-1; HoldReason="queue is away"]`) })
		if v.Code != 13 || !v.TryAgain || v.Text != "queue is away" {
			t.Errorf("%+v", v)
		}
	})
	t.Run("newlines", func(t *testing.T) {
		v, f := run(t, `OutputDestination = "x://\n"`+"\n"+`TransferOutput = "a"`, func(f *fakeShadow) {
			f.ack = classads.NewAd()
			f.ack.SetInt("Result", -1)
			f.ack.SetString("HoldReason", "one\ntwo")
		})
		if strings.Contains(v.Text, "\n") || strings.Contains(f.ackIn.StringOr("HoldReason", "\n"), "\n") {
			t.Errorf("%q", v.Text)
		}
	})
}

func TestUploadOnceGoAhead(t *testing.T) {
	f, s := newShadow(t), sandboxtest.New(t)
	f.once, f.waits = true, 1
	sandboxtest.Put(t, s, map[string]string{"a": "a", "b": "b", "_condor_stdout": "o"})
	if _, err := f.transfer(s, plainJob+"TransferOutput = \"a,b\"\n").Upload(context.Background(), Upload{}); err != nil {
		t.Fatal(err)
	}
	f.mustPlay()
	if len(f.got) != 3 {
		t.Error(gotten(f, true))
	}
}

// A file that grows while it is read arrives as long as it was announced.
func TestUploadOfGrowingFile(t *testing.T) {
	f, s := newShadow(t), sandboxtest.New(t)
	sandboxtest.Put(t, s, map[string]string{"a": big1(1 << 20), "_condor_stdout": "o"})
	file, err := os.OpenFile(s.Scratch()+"/a", os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	defer file.Close()
	grown := make(chan struct{})
	go func() {
		defer close(grown)
		for range 200 {
			if _, err := file.WriteString(big1(5000)); err != nil {
				t.Error(err)
			}
		}
	}()
	if _, err := f.transfer(s, plainJob+"TransferOutput = \"a\"\n").Upload(context.Background(), Upload{}); err != nil {
		t.Error(err)
	}
	<-grown
	f.mustPlay()
}

// One that shrinks leaves the peer waiting for bytes that do not exist: the
// connection ends, and the transfer may be tried again.
func TestUploadOfShrinkingFile(t *testing.T) {
	f, s := newShadow(t), sandboxtest.New(t)
	sandboxtest.Put(t, s, map[string]string{"a": "first", "b": big1(40 << 20), "_condor_stdout": "o"})
	f.limit = -1
	f.cut = func(item int) bool {
		if item == 1 { // b is open by now, or soon
			must(t, os.Truncate(s.Scratch()+"/b", 38<<20))
		}
		return false
	}
	_, err := f.transfer(s, plainJob+"TransferOutput = \"a,b\"\n").Upload(context.Background(), Upload{})
	var v *Error
	switch {
	case err == nil: // truncated before it was opened
	case !errors.As(err, &v) || v.Code != 13 || !v.TryAgain || !strings.Contains(v.Text, "|Error: sending file "+s.Scratch()+"/b"):
		t.Errorf("error %v", err)
	}
	<-f.done
}

func TestUploadManyFiles(t *testing.T) {
	f, s := newShadow(t), sandboxtest.New(t)
	sandboxtest.As(t, s, func(dir string) error {
		for i := range 50 {
			sub := fmt.Sprintf("%s/tree/%d", dir, i)
			if err := os.MkdirAll(sub, 0o755); err != nil {
				return err
			}
			for j := range 20 {
				if err := os.WriteFile(fmt.Sprintf("%s/%d", sub, j), []byte(sub), 0o644); err != nil {
					return err
				}
			}
		}
		return nil
	})
	sandboxtest.Put(t, s, map[string]string{"_condor_stdout": "o"})
	result, err := f.transfer(s, plainJob+"TransferOutput = \"tree\"\n").Upload(context.Background(), Upload{})
	if err != nil {
		t.Fatal(err)
	}
	f.mustPlay()
	if want := 1 + 50 + 50*20 + 1; result.Files != want || len(f.got) != want {
		t.Errorf("%d files, shadow has %d, want %d", result.Files, len(f.got), want)
	}
}

func TestUploadWaitsForAnAnswerThatTakesTime(t *testing.T) {
	f, s := newShadow(t), sandboxtest.New(t)
	f.beforeAck = func() { time.Sleep(1200 * time.Millisecond) }
	sandboxtest.Put(t, s, map[string]string{"_condor_stdout": "o"})
	tr := f.transfer(s, plainJob+"TransferOutput = \"http://a/b\"\n")
	tr.config.OutputTimeout = 500 * time.Millisecond
	if _, err := tr.Upload(context.Background(), Upload{}); err != nil {
		t.Errorf("with a URL to fetch: %v", err)
	}
	f2, s2 := newShadow(t), sandboxtest.New(t)
	f2.beforeAck = f.beforeAck
	sandboxtest.Put(t, s2, map[string]string{"_condor_stdout": "o"})
	tr = f2.transfer(s2, plainJob+"TransferOutput = \"\"\n")
	tr.config.OutputTimeout = 500 * time.Millisecond
	_, err := tr.Upload(context.Background(), Upload{})
	var v *Error
	if !errors.As(err, &v) || v.Subcode != int(unix.ETIMEDOUT) || !v.TryAgain {
		t.Errorf("without: %v", err)
	}
}

// A job that closes its own directories does so each time: it is held, and not run
// again forever.
func TestAnUnlistableSandboxIsTheJobsDoing(t *testing.T) {
	u := &upload{session: &session{code: CodeUpload}}
	for _, tc := range []struct {
		errno unix.Errno
		again bool
	}{{unix.EACCES, false}, {unix.EPERM, false}, {unix.EIO, true}} {
		e := u.unlisted(&os.PathError{Op: "open", Path: ".", Err: tc.errno})
		if e.TryAgain != tc.again || e.Code != CodeUpload || e.Subcode != int(tc.errno) {
			t.Errorf("%v: %d/%d, try again %v; want %d/%d, %v", tc.errno, e.Code, e.Subcode, e.TryAgain, CodeUpload, int(tc.errno), tc.again)
		}
	}
}
