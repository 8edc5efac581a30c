package filetransfer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/classads"
	condorjob "podstarter/condor/job"
	"podstarter/internal/cedar"
	"podstarter/sandbox"
	"podstarter/sandbox/sandboxtest"
)

// speaker is a peer that says something and then acts as it likes. It must be
// used in a bubble of synctest, where waiting takes no time.
func speaker(t *testing.T, reads bool, act func(there net.Conn)) Dial {
	return func(context.Context, int) (*cedar.Stream, error) {
		here, there := net.Pipe()
		var done sync.WaitGroup
		done.Go(func() { act(there) })
		if reads {
			done.Go(func() { _, _ = io.Copy(io.Discard, there) })
		}
		t.Cleanup(func() { _ = there.Close(); done.Wait() })
		return cedar.NewStream(here), nil
	}
}

// says sends this, and no more.
func says(text []byte) func(net.Conn) {
	return func(there net.Conn) {
		if len(text) > 0 {
			_, _ = there.Write(text)
		}
	}
}

// messages are what a shadow says when it gets files: numbers, and ads.
func messages(t testing.TB, all ...any) []byte {
	c := &recordConn{deadConn: deadConn{bytes.NewReader(nil)}}
	s := cedar.NewStream(c)
	for _, one := range all {
		switch v := one.(type) {
		case int:
			s.PutInt(int64(v))
		case string:
			s.PutAd(ad(t, v))
		}
		must(t, s.EndMessage())
	}
	return c.out.Bytes()
}

func transferWith(t testing.TB, s *sandbox.Sandbox, dial Dial, job string) *Transfer {
	t.Helper()
	parsed, err := classads.ParseOld(plainJob + job + "\n")
	must(t, err)
	condorjob.Localize(parsed, condorjob.Info{FileTransfer: true, Cmd: parsed.StringOr("Cmd", "")}, s.Scratch())
	return New(Config{Sandbox: s, Job: parsed, Dial: dial, Key: "1#k", Stall: time.Hour})
}

// mustTimeOut checks that a transfer ended, in a time that can be said, as one
// that may be tried again.
func mustTimeOut(t *testing.T, at int, err error, began time.Time, code int) {
	t.Helper()
	var v *Error
	switch took := time.Since(began); {
	case !errors.As(err, &v):
		t.Errorf("stall behind byte %d: error %v", at, err)
	case v.Code != code || v.Subcode != int(unix.ETIMEDOUT) || !v.TryAgain || v.PeerDone():
		t.Errorf("stall behind byte %d: %+v", at, v)
	case took < 4*time.Minute || took > 12*time.Minute:
		t.Errorf("stall behind byte %d: ended after %v", at, took)
	}
}

// A shadow that falls silent does not block the starter, at any moment of a transfer of
// input: neither before a message nor in the middle of one.
func TestDownloadStalls(t *testing.T) {
	said := conversation(t, []sent{
		{command: 1, name: "a", mode: 0o644, data: "hello"}, {command: 6, name: "d", mode: 0o755},
		{command: 999, ad: ad(t, "[SubCommand=8]")}, {command: 1, name: "empty", mode: 0o600},
	})
	s := sandboxtest.New(t)
	for n := range len(said) {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			_, err := transferWith(t, s, speaker(t, true, says(said[:n])), "").Download(t.Context())
			mustTimeOut(t, n, err, began, CodeDownload)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := transferWith(t, s, speaker(t, true, says(said)), "").Download(t.Context())
		if took := time.Since(began); err != nil || took > 2*lingerTime {
			t.Errorf("a shadow that does not hang up: %v after %v", err, took)
		}
	})
	synctest.Test(t, func(t *testing.T) { // nor one that does not listen
		began := time.Now()
		_, err := transferWith(t, s, speaker(t, false, says(said)), "").Download(t.Context())
		mustTimeOut(t, 0, err, began, CodeDownload)
	})
}

func TestUploadStalls(t *testing.T) {
	said := messages(t, "[Result=0]", "[Result=2; MaxTransferBytes=-1]", 300, "[Result=0]")
	s := sandboxtest.New(t)
	sandboxtest.Put(t, s, map[string]string{"a": big1(5000), "_condor_stdout": "o"})
	upload := func(t *testing.T, reads bool, text []byte) error {
		_, err := transferWith(t, s, speaker(t, reads, says(text)), `TransferOutput = "a"`).Upload(t.Context(), Upload{})
		return err
	}
	for n := range len(said) {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			mustTimeOut(t, n, upload(t, true, said[:n]), began, CodeUpload)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		if err := upload(t, true, said); err != nil {
			t.Error(err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		mustTimeOut(t, 0, upload(t, false, said), began, CodeUpload)
	})
}

// A peer that sends a byte now and then is never silent for long, and yet the
// input does not come.
func TestDownloadTrickles(t *testing.T) {
	said := conversation(t, []sent{{command: 1, name: "a", mode: 0o644, data: big1(100_000)}})
	s := sandboxtest.New(t)
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		dial := speaker(t, true, func(there net.Conn) {
			for i := range said {
				if _, err := there.Write(said[i : i+1]); err != nil {
					return
				}
				time.Sleep(time.Minute)
			}
		})
		_, err := transferWith(t, s, dial, "").Download(t.Context())
		var v *Error
		if !errors.As(err, &v) || v.Code != CodeDownload || v.Subcode != int(unix.ETIMEDOUT) || !v.TryAgain ||
			!strings.Contains(v.Text, "no progress for 3600 seconds") {
			t.Errorf("error %v", err)
		}
		if took := time.Since(began); took > 10*time.Hour {
			t.Errorf("ended after %v", took)
		}
	})
}

// A place in the access point's queue may take days to come; what counts is that the
// peer says so.
func TestDownloadWaitsInTheQueue(t *testing.T) {
	s := sandboxtest.New(t)
	waiting, rest := messages(t, "[Result=0]"), conversation(t, []sent{{command: 6, name: "d", mode: 0o755}})
	at := bytes.Index(rest, messages(t, "[Result=2]"))
	if at < 0 {
		t.Fatal("the conversation has no go-ahead")
	}
	synctest.Test(t, func(t *testing.T) {
		dial := speaker(t, true, func(there net.Conn) {
			_, _ = there.Write(rest[:at])
			for range 600 {
				time.Sleep(290 * time.Second)
				_, _ = there.Write(waiting)
			}
			_, _ = there.Write(rest[at:])
		})
		began := time.Now()
		if _, err := transferWith(t, s, dial, "").Download(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took < 48*time.Hour {
			t.Errorf("it only took %v", took)
		}
	})
}

// A peer that says how long it may be silent in its queue is given that time.
func TestDownloadWaitsForTheNextWord(t *testing.T) {
	s := sandboxtest.New(t)
	waiting, rest := messages(t, "[Result=0; Timeout=3000]"), conversation(t, []sent{{command: 6, name: "d", mode: 0o755}})
	at := bytes.Index(rest, messages(t, "[Result=2]"))
	if at < 0 {
		t.Fatal("the conversation has no go-ahead")
	}
	synctest.Test(t, func(t *testing.T) {
		dial := speaker(t, true, func(there net.Conn) {
			_, _ = there.Write(rest[:at])
			_, _ = there.Write(waiting)
			time.Sleep(3000 * time.Second)
			_, _ = there.Write(rest[at:])
		})
		if _, err := transferWith(t, s, dial, "").Download(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// An end of the connection at any byte is an error that says so, and leaves no
// incomplete file.
func TestDownloadIsCut(t *testing.T) {
	whole := big1(700)
	said := conversation(t, []sent{{command: 1, name: "a", mode: 0o644, data: whole}, {command: 999, ad: ad(t, "[SubCommand=9; SignList={\"x\"}]")}})
	s := sandboxtest.New(t)
	for n := range len(said) {
		_, err := transferWith(t, s, func(context.Context, int) (*cedar.Stream, error) {
			return cedar.NewStream(deadConn{bytes.NewReader(said[:n])}), nil
		}, "").Download(t.Context())
		var v *Error
		if !errors.As(err, &v) || v.Code != CodeDownload || v.Subcode != int(unix.ECONNRESET) || !v.TryAgain || !v.PeerDone() {
			t.Fatalf("cut behind byte %d of %d: %v", n, len(said), err)
		}
		if data, err := os.ReadFile(filepath.Join(s.Scratch(), "a")); err == nil && string(data) != whole {
			t.Fatalf("cut behind byte %d: the file is left with %d bytes", n, len(data))
		}
		if err := s.RemoveFile("a"); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
}

// A shadow that was silent for too long is not waited for a second time, and the multiplier makes that time longer by no more than it says.
func TestSilenceEndsOnce(t *testing.T) {
	said := messages(t, "[Result=0]", "[Result=2; MaxTransferBytes=-1]", 300) // all but the last report
	s := sandboxtest.New(t)
	sandboxtest.Put(t, s, map[string]string{"a": "x", "_condor_stdout": "o"})
	synctest.Test(t, func(t *testing.T) {
		speak := speaker(t, true, says(said))
		transfer := transferWith(t, s, func(ctx context.Context, command int) (*cedar.Stream, error) {
			stream, err := speak(ctx, command)
			if err == nil {
				stream.SetMultiplier(4)
			}
			return stream, err
		}, `TransferOutput = "a"`)
		transfer.config.OutputTimeout = 2 * time.Second
		began := time.Now()
		_, err := transfer.Upload(t.Context(), Upload{})
		var v *Error
		if took := time.Since(began); !errors.As(err, &v) || v.Subcode != int(unix.ETIMEDOUT) || took < 7*time.Second || took > 9*time.Second {
			t.Errorf("ended after %v, want 8s: %v", took, err)
		}
	})
}
