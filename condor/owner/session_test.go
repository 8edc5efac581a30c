package owner

import (
	"fmt"
	"strings"
	"testing"

	"podstarter/classads"
	"podstarter/internal/cedar"
	"podstarter/internal/cedar/cedartest"
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

// FuzzReadSessionRequest has peers send anything: the result is an error, or a
// request that proves only the claim it holds.
func FuzzReadSessionRequest(f *testing.F) {
	ad := classads.NewAd()
	ad.SetString("ClaimId", "<127.0.0.1:9618?sock=x>#1#2#[Encryption=\"YES\";]key")
	ad.SetString("SessionInfo", `[Encryption="YES";Integrity="YES";]`)
	f.Add(cedartest.Written(f, func(s *cedar.Stream) { s.PutAd(ad) }))
	f.Add(cedartest.Written(f, func(s *cedar.Stream) { s.PutAd(classads.NewAd()) }))
	f.Add([]byte{})
	f.Add([]byte("\x01\x00\x00\x00\x08\x00\x00\x00\x00\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		request, err := ReadSessionRequest(cedartest.Said(t, raw))
		if err != nil {
			return
		}
		if request.Proves("") || request.Proves("the one secret that nobody has guessed") {
			t.Error("the request proves what it does not hold")
		}
	})
}
