package main

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/internal/cedar"
	"podstarter/sandbox"
)

// delegate plays the side of a delegation that has the proxy; chain is how many
// certificates it gives, 0 that it cannot.
func delegate(s *cedar.Stream, signer *rsa.PrivateKey, chain int) error {
	n, err := s.GetInt()
	if err != nil {
		return err
	}
	der, err := s.GetBytes(int(n))
	if err := errors.Join(err, s.EndOfMessage()); err != nil {
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

func pemTypes(t *testing.T, path string) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
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

// sendProxy is a shadow that brings a newer proxy; it returns the answer.
func sendProxy(t *testing.T, addr string, session *cedar.Session, command int, send func(*cedar.Stream) error) (int64, error) {
	t.Helper()
	client := cedar.Client{Version: testVersion}
	s, err := client.Command(t.Context(), addr, command, session)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	if err := send(s); err != nil {
		return 0, err
	}
	n, err := s.GetInt()
	return n, errors.Join(err, s.EndOfMessage())
}

func putFile(text string) func(*cedar.Stream) error {
	return func(s *cedar.Stream) error {
		if err := s.PutFile(strings.NewReader(text), int64(len(text))); err != nil {
			return err
		}
		return s.EndMessage()
	}
}

func TestNewerProxy(t *testing.T) {
	signer, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	a := &activation{}
	addr, claim := commandPort(t, a, func(s *cedar.Server) {
		s.Handle(cedar.UpdateGSICred, cedar.Write, a.commandProxy)
		s.HandleSpeaking(cedar.DelegateGSICredStarter, cedar.Write, a.commandProxy)
	})
	if _, err := sendProxy(t, addr, claim, cedar.UpdateGSICred, putFile("x")); err == nil {
		t.Error("a proxy is taken before there is a sandbox")
	}
	box, err := sandbox.Create(t.Context(), sandbox.Options{Execute: t.TempDir(), PID: os.Getpid(), Nested: true, Payload: sandbox.Self(), Condor: sandbox.Self()})
	if err != nil {
		t.Fatal(err)
	}
	a.proxies.know(box, "")
	if _, err := sendProxy(t, addr, claim, cedar.UpdateGSICred, putFile("x")); err == nil {
		t.Error("a proxy is taken for a job that has none")
	}
	a.proxies.know(box, "proxy")
	path := filepath.Join(box.Scratch(), "proxy")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	old, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()

	// As a file.
	n, err := sendProxy(t, addr, claim, cedar.UpdateGSICred, putFile("a new one"))
	if err != nil || n != 1 {
		t.Fatalf("the answer is %d, %v", n, err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "a new one" {
		t.Errorf("the proxy is %q, %v", data, err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v, %v", st.Mode(), err)
	}
	var text [8]byte
	if n, _ := old.Read(text[:]); string(text[:n]) != "old" {
		t.Errorf("who has the old one open reads %q", text[:n])
	}

	// By delegation.
	n, err = sendProxy(t, addr, claim, cedar.DelegateGSICredStarter, func(s *cedar.Stream) error { return delegate(s, signer, 2) })
	if err != nil || n != 1 {
		t.Fatalf("the answer is %d, %v", n, err)
	}
	if diff := cmp.Diff([]string{"CERTIFICATE", "PRIVATE KEY", "CERTIFICATE"}, pemTypes(t, path)); diff != "" {
		t.Error(diff)
	}

	// What fails leaves the old one in its place.
	n, err = sendProxy(t, addr, claim, cedar.DelegateGSICredStarter, func(s *cedar.Stream) error { return delegate(s, signer, 0) })
	if err != nil || n != 0 {
		t.Errorf("no delegation: the answer is %d, %v", n, err)
	}
	// The refusal may come with an answer, or as the end of the connection.
	if n, err = sendProxy(t, addr, claim, cedar.UpdateGSICred, putFile(strings.Repeat("x", maxProxyFile+1))); err == nil && n != 0 {
		t.Errorf("a huge proxy: the answer is %d", n)
	}
	if len(pemTypes(t, path)) != 3 {
		t.Error("the proxy is gone")
	}

	// Who may only read brings nothing.
	reader, err := cedar.MintSession("u@d", cedar.Read)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.sessions.Add(reader); err != nil {
		t.Fatal(err)
	}
	if _, err := sendProxy(t, addr, reader, cedar.UpdateGSICred, putFile("x")); err == nil {
		t.Error("a proxy is taken of the job's owner")
	}

	// A link in its place is replaced, not followed.
	outside := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(outside, []byte("untouched"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(path), os.Symlink(outside, path)); err != nil {
		t.Fatal(err)
	}
	if n, err = sendProxy(t, addr, claim, cedar.UpdateGSICred, putFile("new")); err != nil || n != 1 {
		t.Errorf("over a link: the answer is %d, %v", n, err)
	}
	if data, err := os.ReadFile(outside); err != nil || !bytes.Equal(data, []byte("untouched")) {
		t.Errorf("what the link led to is now %q, %v", data, err)
	}

	// Without file transfer the shadow is told not to come again.
	a.proxies.know(nil, "")
	if n, err = sendProxy(t, addr, claim, cedar.UpdateGSICred, putFile("x")); err != nil || n != 2 {
		t.Errorf("without file transfer: the answer is %d, %v", n, err)
	}
}

// delegateTo answers get_delegated_proxy.
func delegateTo(signer *rsa.PrivateKey, chain int, want string) play {
	return func(s *cedar.Stream) error {
		n, err := s.GetInt()
		if err != nil {
			return err
		}
		source, err := s.GetString()
		if err != nil {
			return err
		}
		until, err := s.GetInt()
		if err := errors.Join(err, s.EndOfMessage()); err != nil {
			return err
		}
		if n != 303 || source != want || until <= time.Now().Unix() {
			return errors.New("this is not the call that was expected")
		}
		return delegate(s, signer, chain)
	}
}

// A job without file transfer has its proxy delegated into the sandbox; without
// one it starts all the same.
func TestDelegatedProxy(t *testing.T) {
	signer, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	a := &activation{}
	plays := make(chan play, 3)
	withShadow(t, a, plays)
	if err := a.delegatedProxy(t.Context()); err != nil || a.creds.proxy != "" {
		t.Errorf("without a proxy: %v, %q", err, a.creds.proxy)
	}
	a.ad.SetString("x509userproxy", "/home/alice/x509up_u1000")
	plays <- delegateTo(signer, 0, "/home/alice/x509up_u1000")
	plays <- delegateTo(signer, 1, "/home/alice/x509up_u1000")
	plays <- giveTokens(map[string]string{"a": "b"}) // the connection is good still
	close(plays)
	path := filepath.Join(a.sandbox.Scratch(), "x509up_u1000")
	for range 2 {
		if err := a.delegatedProxy(t.Context()); err != nil || a.creds.proxy != path {
			t.Errorf("%v, %q, want %q", err, a.creds.proxy, path)
		}
	}
	if diff := cmp.Diff([]string{"CERTIFICATE", "PRIVATE KEY"}, pemTypes(t, path)); diff != "" {
		t.Error(diff)
	}
	if err := a.fetchTokens(t.Context(), []string{"a"}); err != nil {
		t.Error(err)
	}
}
