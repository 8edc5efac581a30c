package credentials_test

import (
	"context"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/condor/condortest"
	"podstarter/condor/shadow"
	"podstarter/internal/cedar"
	"podstarter/starter/credentials"
)

// pemTypes are the kinds of what is in a file.
func pemTypes(t *testing.T, path string) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	var types []string
	for len(data) > 0 {
		var b *pem.Block
		if b, data = pem.Decode(data); b == nil {
			t.Fatalf("%s is not PEM: %.60q", path, data)
		}
		types = append(types, b.Type)
	}
	return types
}

// bringing is a shadow that brings proxies to r, and the sessions by which the starter
// knows it.
func bringing(t *testing.T, r *credentials.Renewals) (*condortest.Shadow, *cedar.Sessions) {
	t.Helper()
	sh := condortest.NewShadow(t, condortest.ShadowOptions{})
	connect(t, sh)
	claim, err := cedar.ImportSession(sh.Job().StringOr("ClaimId", ""), shadow.SubmitSide, cedar.Daemon)
	must(t, err)
	server := &cedar.Server{Sessions: cedar.NewSessions(), Log: quiet}
	must(t, server.Sessions.Add(claim))
	server.Handle(cedar.UpdateGSICred, cedar.Write, r.Command)
	server.HandleSpeaking(cedar.DelegateGSICredStarter, cedar.Write, r.Command)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	sh.SetStarter("<" + l.Addr().String() + ">")
	return sh, server.Sessions
}

// TestNewerProxy: a newer proxy takes the place of the old one, and one that is not
// taken leaves it there.
func TestNewerProxy(t *testing.T) {
	r := &credentials.Renewals{Log: quiet}
	sh, _ := bringing(t, r)
	if n, err := sh.SendProxy(t.Context(), "x"); err == nil {
		t.Errorf("a proxy is taken before there is a sandbox: %d", n)
	}
	box := newSandbox(t)
	r.Open(box, "")
	if n, err := sh.SendProxy(t.Context(), "x"); err == nil {
		t.Errorf("a proxy is taken for a job that has none: %d", n)
	}
	r.Open(box, "proxy")
	path := filepath.Join(box.Scratch(), "proxy")
	must(t, os.WriteFile(path, []byte("old"), 0o644))
	old, err := os.Open(path)
	must(t, err)
	defer old.Close()

	if n, err := sh.SendProxy(t.Context(), "a new one"); err != nil || n != 1 {
		t.Fatalf("as a file: the answer is %d, %v", n, err)
	}
	if diff := cmp.Diff([]string{"proxy 600 a new one"}, filesIn(t, box.Scratch())); diff != "" {
		t.Error(diff)
	}
	var text [8]byte
	if n, _ := old.Read(text[:]); string(text[:n]) != "old" {
		t.Errorf("who has the old one open reads %q", text[:n])
	}

	if n, err := sh.DelegateProxy(t.Context(), 2); err != nil || n != 1 {
		t.Fatalf("by delegation: the answer is %d, %v", n, err)
	}
	if diff := cmp.Diff([]string{"CERTIFICATE", "PRIVATE KEY", "CERTIFICATE"}, pemTypes(t, path)); diff != "" {
		t.Error(diff)
	}

	if n, err := sh.DelegateProxy(t.Context(), 0); err != nil || n != 0 {
		t.Errorf("no delegation: the answer is %d, %v", n, err)
	}
	// The refusal may come with an answer, or as the end of the connection.
	if n, err := sh.SendProxy(t.Context(), strings.Repeat("x", 1<<20+1)); err == nil && n != 0 {
		t.Errorf("a huge proxy: the answer is %d", n)
	}
	if len(pemTypes(t, path)) != 3 {
		t.Error("the proxy is gone")
	}
}

// TestNewerProxyOfOthers: nobody but the submit side brings a proxy.
func TestNewerProxyOfOthers(t *testing.T) {
	r := &credentials.Renewals{Log: quiet}
	sh, sessions := bringing(t, r)
	box := newSandbox(t)
	r.Open(box, "proxy")
	reader, err := cedar.MintSession("u@d", cedar.Read)
	must(t, err)
	must(t, sessions.Add(reader))
	client := cedar.Client{}
	s, err := client.Command(t.Context(), sh.Starter(), cedar.UpdateGSICred, reader)
	if err == nil {
		defer s.Close()
		err = errors.Join(s.PutFile(strings.NewReader("x"), 1), s.EndMessage())
	}
	if err == nil {
		_, err = s.GetInt()
	}
	if err == nil || len(filesIn(t, box.Scratch())) != 0 {
		t.Errorf("a proxy is taken of the job's owner: %v", err)
	}
}

// TestNewerProxyOverALink: a link in the proxy's place is replaced, not followed.
func TestNewerProxyOverALink(t *testing.T) {
	r := &credentials.Renewals{Log: quiet}
	sh, _ := bringing(t, r)
	box := newSandbox(t)
	r.Open(box, "proxy")
	outside := filepath.Join(t.TempDir(), "file")
	must(t, errors.Join(os.WriteFile(outside, []byte("untouched"), 0o600), os.Symlink(outside, filepath.Join(box.Scratch(), "proxy"))))
	if n, err := sh.SendProxy(t.Context(), "new"); err != nil || n != 1 {
		t.Errorf("the answer is %d, %v", n, err)
	}
	if data, err := os.ReadFile(outside); err != nil || string(data) != "untouched" {
		t.Errorf("what the link led to is now %q, %v", data, err)
	}
	if diff := cmp.Diff([]string{"proxy 600 new"}, filesIn(t, box.Scratch())); diff != "" {
		t.Error(diff)
	}
	// A directory cannot be replaced, and the shadow hears of it.
	must(t, errors.Join(os.Remove(filepath.Join(box.Scratch(), "proxy")), os.Mkdir(filepath.Join(box.Scratch(), "proxy"), 0o700)))
	if n, err := sh.SendProxy(t.Context(), "new"); err != nil || n != 0 {
		t.Errorf("over a directory: the answer is %d, %v", n, err)
	}
}

// TestNewerProxyDeclined: without file transfer the shadow is told not to come again.
func TestNewerProxyDeclined(t *testing.T) {
	r := &credentials.Renewals{Log: quiet}
	sh, _ := bringing(t, r)
	r.Open(nil, "")
	if n, err := sh.SendProxy(t.Context(), "x"); err != nil || n != 2 {
		t.Errorf("as a file: the answer is %d, %v", n, err)
	}
	if _, err := sh.SendProxy(t.Context(), strings.Repeat("x", 1<<20+1)); err == nil {
		t.Error("a huge proxy is read to its end")
	}
}

// TestDelegatedProxy: a job without file transfer has its proxy delegated into the
// sandbox. Without one it starts all the same, unless the shadow is lost.
func TestDelegatedProxy(t *testing.T) {
	sh := condortest.NewShadow(t, condortest.ShadowOptions{})
	sh.On("get_delegated_proxy", 1, condortest.Refuse(1))
	sh.On("get_delegated_proxy", 3, condortest.HangUp())
	o := options(t, "", nil)
	o.Shadow = connect(t, sh)
	k := newKeeper(t, o)
	if err := k.DelegateProxy(t.Context()); err != nil || k.Proxy() != "" {
		t.Errorf("without a proxy: %v, %q", err, k.Proxy())
	}
	o.Job.SetString("x509userproxy", "/home/alice/x509up_u1000")
	o.Info.FileTransfer = true
	if err := newKeeper(t, o).DelegateProxy(t.Context()); err != nil || sh.Count(condortest.Call("get_delegated_proxy")) != 0 {
		t.Errorf("a job with file transfer: %v", err)
	}
	o.Info.FileTransfer = false
	path := filepath.Join(o.Sandbox.Scratch(), "x509up_u1000")
	k = newKeeper(t, o)
	for range 2 {
		if err := k.DelegateProxy(t.Context()); err != nil || k.Proxy() != path {
			t.Errorf("%v, %q, want %q", err, k.Proxy(), path)
		}
	}
	if diff := cmp.Diff([]string{"CERTIFICATE", "PRIVATE KEY", "CERTIFICATE"}, pemTypes(t, path)); diff != "" {
		t.Error(diff)
	}
	h := sh.Wait(t, condortest.Call("get_delegated_proxy").About("/home/alice/x509up_u1000"))
	if diff := cmp.Diff([]int64{2_000_000_000}, h.Ints); diff != "" {
		t.Errorf("the proxy ends at (-want +got):\n%s", diff)
	}
	if err := k.DelegateProxy(t.Context()); !errors.Is(err, shadow.ErrLost) {
		t.Errorf("the shadow is lost: %v", err)
	}
}
