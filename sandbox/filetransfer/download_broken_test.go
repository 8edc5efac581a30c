package filetransfer

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"podstarter/internal/cedar"
	"podstarter/sandbox/sandboxtest"
)

func TestDownloadBrokenStreams(t *testing.T) {
	bad := func(t *testing.T, set func(*fakeShadow)) (*Error, *fakeShadow) {
		t.Helper()
		f, s := newShadow(t), sandboxtest.New(t)
		f.items = []sent{{command: 1, name: "a", data: "a"}, {command: 1, name: "b", data: "b"}}
		set(f)
		result, err := f.transfer(s, plainJob).Download(context.Background())
		var v *Error
		if !errors.As(err, &v) {
			t.Fatalf("error %v", err)
		}
		if !result.Met {
			t.Error("the shadow has no half of the transfer, which it says is broken")
		}
		select {
		case <-f.done:
		case <-time.After(20 * time.Second):
			t.Fatal("shadow hangs")
		}
		return v, f
	}
	t.Run("key refused", func(t *testing.T) {
		v, _ := bad(t, func(f *fakeShadow) { f.badKey = true })
		if v.Code != 12 || !v.TryAgain || !strings.Contains(v.Text, "transfer key") {
			t.Errorf("%+v", v)
		}
	})
	t.Run("cut between items", func(t *testing.T) {
		v, _ := bad(t, func(f *fakeShadow) { f.cut = func(i int) bool { return i == 1 } })
		if v.Code != 12 || !v.TryAgain || v.Subcode != int(unix.ECONNRESET) {
			t.Errorf("%+v", v)
		}
	})
	t.Run("cut in a file", func(t *testing.T) {
		v, f := bad(t, func(f *fakeShadow) {
			f.items[1].raw = func(s *cedar.Stream) error {
				s.PutInt(0o644)
				_ = s.EndMessage()
				s.PutInt(1000)
				s.PutInt(262144)
				_ = s.EndMessage()
				s.PutBytes(make([]byte, 10))
				_ = s.EndMessage()
				return errors.Join(s.Flush(), errCut)
			}
		})
		if v.Code != 12 || !v.TryAgain || !strings.Contains(v.Text, "|Error: receiving file") {
			t.Errorf("%+v", v)
		}
		_ = f
	})
	t.Run("nonsense behind an empty file", func(t *testing.T) {
		v, _ := bad(t, func(f *fakeShadow) {
			f.items[0].raw = func(s *cedar.Stream) error {
				for _, n := range [][]int64{{0o644}, {0, 262144}, {665}} {
					for _, v := range n {
						s.PutInt(v)
					}
					_ = s.EndMessage()
				}
				return s.Flush()
			}
		})
		if !v.TryAgain || !strings.Contains(v.Text, "665") {
			t.Errorf("%+v", v)
		}
	})
	t.Run("refused go-ahead", func(t *testing.T) {
		v, _ := bad(t, func(f *fakeShadow) {
			f.refuse = ad(t, `[Result=-1; TryAgain=false; HoldReasonCode=32; HoldReasonSubCode=5; HoldReason="too much"]`)
		})
		if v.Code != 32 || v.Subcode != 5 || v.TryAgain || v.Text != "too much" {
			t.Errorf("%+v", v)
		}
	})
	t.Run("go-ahead without result", func(t *testing.T) {
		v, _ := bad(t, func(f *fakeShadow) { f.refuse = ad(t, `[Foo=1]`) })
		if v.Code != 18 || v.Subcode != 1 || v.TryAgain {
			t.Errorf("%+v", v)
		}
	})
	t.Run("sender failed", func(t *testing.T) {
		v, f := bad(t, func(f *fakeShadow) {
			f.ack = ad(t, `[Result=-1; HoldReasonCode=13; HoldReasonSubCode=2; HoldReason="SHADOW at 1.2.3.4 failed to send file(s) to <>: |Error: reading from file /x: (errno 2) No such file or directory"]`)
		})
		if v.Code != 13 || v.Subcode != 2 || v.TryAgain || !strings.HasPrefix(v.Text, "SHADOW at 1.2.3.4 failed") ||
			!strings.Contains(v.Text, "; STARTER failed to receive file(s) from <127.0.0.1:") {
			t.Errorf("%+v", v)
		}
		told, err := f.ackIn.GetAd("TransferStats")
		if err != nil || told.FormatNew() != ad(t, `[CedarFilesCount=2; Protocols=""]`).FormatNew() {
			t.Errorf("statistics that replace the shadow's own: %s", f.ackIn.FormatNew())
		}
		if f.ackIn.IntOr("HoldReasonCode", 0) != 13 || !strings.HasPrefix(f.ackIn.StringOr("HoldReason", ""), "STARTER failed to receive") {
			t.Errorf("ack %s", f.ackIn.FormatNew())
		}
	})
	t.Run("sender failed for now", func(t *testing.T) {
		v, f := bad(t, func(f *fakeShadow) { f.ack = ad(t, `[Result=1; HoldReason="network"]`) })
		if v.Code != 12 || !v.TryAgain || f.ackIn.IntOr("Result", 0) != 1 {
			t.Errorf("%+v %s", v, f.ackIn.FormatNew())
		}
	})
	t.Run("ack without result", func(t *testing.T) {
		v, _ := bad(t, func(f *fakeShadow) { f.ack = ad(t, `[Foo=1]`) })
		if v.Code != 11 || v.TryAgain {
			t.Errorf("%+v", v)
		}
	})
}

func TestDownloadCancelled(t *testing.T) {
	f, s := newShadow(t), sandboxtest.New(t)
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("vacated")
	f.items = []sent{{command: 1, name: "a", raw: func(s *cedar.Stream) error {
		_ = s.Flush()
		cancel(why)
		return s.Wait() // until the starter hangs up
	}}}
	_, err := f.transfer(s, plainJob).Download(ctx)
	var v *Error
	if !errors.As(err, &v) || !errors.Is(err, why) || !v.TryAgain {
		t.Errorf("error %v", err)
	}
}

// TestVerdictOfACancelledTransfer: whatever went wrong first, a cancelled transfer may
// be tried again, and says why it was cancelled.
func TestVerdictOfACancelledTransfer(t *testing.T) {
	why := errors.New("the job is removed")
	for _, cancelled := range []bool{false, true} {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		if cancelled {
			cancel(why)
		}
		x := &session{Config: Config{Log: slog.New(slog.DiscardHandler)}, ctx: ctx, code: CodeDownload}
		v := x.verdict(fmt.Errorf("receiving: %w", &Error{Code: 7, Subcode: 2, Text: "no room\nfor it"}))
		if v.Code != 7 || v.Subcode != 2 || strings.Contains(v.Text, "\n") || v.TryAgain != cancelled || errors.Is(v.Err, why) != cancelled {
			t.Errorf("cancelled %v: %+v", cancelled, v)
		}
	}
}

func TestDownloadWaitsForTheShadowToClose(t *testing.T) {
	f, s := newShadow(t), sandboxtest.New(t)
	f.linger = 300 * time.Millisecond
	began := time.Now()
	if _, err := f.transfer(s, plainJob).Download(context.Background()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < f.linger {
		t.Errorf("returned after %v, the shadow was there for %v", took, f.linger)
	}
}

func TestDialFails(t *testing.T) {
	f, s := newShadow(t), sandboxtest.New(t)
	tr := f.transfer(s, plainJob)
	tr.SetPeer(func(context.Context, int) (*cedar.Stream, error) { return nil, unix.ECONNREFUSED }, "")
	result, err := tr.Download(context.Background())
	var v *Error
	if !errors.As(err, &v) || v.Subcode != int(unix.ECONNREFUSED) || !v.TryAgain || v.Code != 12 || result == nil || result.Met {
		t.Errorf("%+v, %v", result, err)
	}
	result, err = tr.Upload(context.Background(), Upload{})
	if !errors.As(err, &v) || v.Code != 13 || result.Met {
		t.Errorf("%+v, %v", result, err)
	}
}

// delegating is a shadow's half of the delegation of an X.509 proxy.
func delegating(signer *rsa.PrivateKey, chain int) func(*cedar.Stream) error {
	return func(s *cedar.Stream) error {
		n, err := s.GetInt()
		if err != nil {
			return err
		}
		der, err := s.GetBytes(int(n))
		if err = end(s, err); err != nil {
			return err
		}
		request, err := x509.ParseCertificateRequest(der)
		if err != nil {
			return err
		}
		var out []byte
		for i := range chain {
			template := &x509.Certificate{SerialNumber: big.NewInt(int64(i + 1)), NotAfter: time.Now().Add(time.Hour)}
			cert, err := x509.CreateCertificate(rand.Reader, template, template, request.PublicKey, signer)
			if err != nil {
				return err
			}
			out = append(out, cert...)
		}
		s.PutInt(int64(len(out)))
		if len(out) > 0 {
			s.PutBytes(out)
		}
		return s.EndMessage()
	}
}

// TestProxyReplacesNothing: a proxy is not written into an existing file, which others
// may be able to read.
func TestProxyReplacesNothing(t *testing.T) {
	f, s := newShadow(t), sandboxtest.New(t)
	signer, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	f.items = []sent{
		{command: 1, name: "taken", mode: 0o644, data: "mine"},
		{command: 4, name: "taken", raw: delegating(signer, 1)},
	}
	_, err = f.transfer(s, plainJob).Download(context.Background())
	f.mustPlay()
	var v *Error
	if !errors.As(err, &v) || v.Subcode != int(unix.EEXIST) {
		t.Errorf("%v", err)
	}
	if data, err := s.ReadFile("taken", 1<<20); err != nil || string(data) != "mine" {
		t.Errorf("%.40q, %v", data, err)
	}
}

func TestDelegatedProxy(t *testing.T) {
	f, s := newShadow(t), sandboxtest.New(t)
	signer, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	delegate := func(chain int) func(*cedar.Stream) error { return delegating(signer, chain) }
	f.items = []sent{
		{command: 4, name: "proxy", raw: delegate(3)},
		{command: 4, name: "../illegal", raw: delegate(1)},
		{command: 1, name: "after", mode: 0o644, data: "x"},
	}
	_, err = f.transfer(s, plainJob).Download(context.Background())
	f.mustPlay()
	var v *Error
	if !errors.As(err, &v) || v.Subcode != 1 {
		t.Errorf("illegal name: %v", err)
	}
	data, err := s.ReadFile("proxy", 1<<20)
	must(t, err)
	var types []string
	for len(data) > 0 {
		var b *pem.Block
		if b, data = pem.Decode(data); b == nil {
			t.Fatal("not PEM")
		}
		types = append(types, b.Type)
	}
	if diff := cmp.Diff([]string{"CERTIFICATE", "PRIVATE KEY", "CERTIFICATE", "CERTIFICATE"}, types); diff != "" {
		t.Error(diff)
	}
	if got := contents(t, s.Scratch())["after"]; got != "644 x" {
		t.Errorf("file after it: %q", got)
	}

	f, s = newShadow(t), sandboxtest.New(t)
	f.items = []sent{{command: 4, name: "proxy", raw: delegate(0)}}
	if _, err = f.transfer(s, plainJob).Download(context.Background()); !errors.Is(err, cedar.ErrNoDelegation) {
		t.Errorf("delegation refused: %v", err)
	}
}
