package owner

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"podstarter/cedar"
	"podstarter/classads"
)

func TestRequestPrintsWithoutItsSecret(t *testing.T) {
	secret := "<1>#2#3#very-secret"
	r := SessionRequest{Info: "[]", claim: &secret}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		if text := fmt.Sprintf(verb, r); strings.Contains(text, "very-secret") {
			t.Errorf("%s shows the secret: %s", verb, text)
		}
	}
}

func TestIdentity(t *testing.T) {
	for _, tt := range []struct{ ad, want string }{
		{`User = "alice@example.org"`, "alice@example.org"},
		{`Owner = "alice"`, Unknown},
		{`User = ""`, Unknown},
		{`User = 7`, Unknown},
		{`User = strcat("a", "@b")`, "a@b"},
	} {
		ad, err := classads.ParseOld(tt.ad)
		if err != nil {
			t.Fatal(err)
		}
		if got := Identity(ad); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.ad, got, tt.want)
		}
	}
}

// feed is a stream whose peer has said raw and hung up.
func feed(t testing.TB, raw []byte) *cedar.Stream {
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

// written is what put puts on the wire.
func written(t testing.TB, put func(*cedar.Stream)) []byte {
	mine, theirs := net.Pipe()
	s := cedar.NewStream(mine)
	all := make(chan []byte)
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

// FuzzReadSessionRequest has peers say anything at all: an error, or a request
// that proves nothing but what it holds.
func FuzzReadSessionRequest(f *testing.F) {
	ad := classads.NewAd()
	ad.SetString("ClaimId", "<127.0.0.1:9618?sock=x>#1#2#[Encryption=\"YES\";]key")
	ad.SetString("SessionInfo", `[Encryption="YES";Integrity="YES";]`)
	f.Add(written(f, func(s *cedar.Stream) { s.PutAd(ad) }))
	f.Add(written(f, func(s *cedar.Stream) { s.PutAd(classads.NewAd()) }))
	f.Add([]byte{})
	f.Add([]byte("\x01\x00\x00\x00\x08\x00\x00\x00\x00\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		request, err := ReadSessionRequest(feed(t, raw))
		if err != nil {
			return
		}
		if request.Proves("") || request.Proves("the one secret that nobody has guessed") {
			t.Error("the request proves what it does not hold")
		}
	})
}
