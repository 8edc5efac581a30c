package visitors_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"podstarter/classads"
	"podstarter/internal/cedar"
)

// TestOwnerSession: a schedd that knows the claim gets a session for the owner's tool,
// which is good for the owner's commands alone.
func TestOwnerSession(t *testing.T) {
	for name, tt := range map[string]struct{ user, want string }{
		"owner":             {alice, alice},
		"nobody said whose": {"", "job-owner@submit-domain"},
	} {
		t.Run(name, func(t *testing.T) {
			d := serve(t, nil)
			d.Know(jobOf(tt.user, secret), version)
			answer, err := d.ask(t, d.claim, cedar.CreateJobOwnerSecSession, sessionRequest(secret, toolInfo))
			must(t, err)
			if !answer.BoolOr("Result", false) || answer.StringOr("StarterIpAddr", "") != d.address || answer.StringOr("CondorVersion", "") != version {
				t.Fatalf("the answer is %s", answer.FormatOld())
			}
			// The tool's side of it.
			session, err := cedar.ImportSession(answer.StringOr("ClaimId", ""), "execute-side@matchsession")
			must(t, err)
			if !session.Expires.IsZero() {
				t.Errorf("the session ends at %s, the activation's end should end it", session.Expires)
			}
			if want := "$CondorVersion: 25.14.1 ExportedSessionInfo $"; session.PeerVersion != want {
				t.Errorf("the tool takes the starter for %q, want %q", session.PeerVersion, want)
			}
			who, err := d.ask(t, session, whoAmI, classads.NewAd())
			must(t, err)
			if got := who.StringOr("Peer", ""); got != tt.want {
				t.Errorf("the tool is %q, want %q", got, tt.want)
			}
			if answer, err := d.ask(t, session, cedar.StarterPeek, classads.NewAd()); err != nil || answer.StringOr("ErrorString", "") == "" {
				t.Errorf("the owner is not answered: %v, %v", answer, err)
			}
			for _, number := range []int{cedar.StarterVacateJob, cedar.CreateJobOwnerSecSession} {
				if answer, err := d.ask(t, session, number, sessionRequest(secret, toolInfo)); err == nil {
					t.Errorf("command %d is answered to the owner: %s", number, answer.FormatOld())
				}
			}
		})
	}
}

// TestOwnerCommandsAreTheOwners: the level of the owner's commands is one that many
// hold. The name counts.
func TestOwnerCommandsAreTheOwners(t *testing.T) {
	d := serve(t, nil)
	for _, known := range []bool{false, true} {
		if known {
			d.Know(jobOf(alice, "id"), version)
		}
		for _, number := range []int{cedar.StarterPeek, cedar.StartSSHD} {
			if answer, err := d.ask(t, d.claim, number, classads.NewAd()); err == nil {
				t.Errorf("with the owner known %t, command %d is done for the submit side itself: %s", known, number, answer.FormatOld())
			}
		}
	}
}

// TestOwnerSessionNeedsTheClaim: a peer that does not know the claim's secret hears
// nothing, before and after there is one.
func TestOwnerSessionNeedsTheClaim(t *testing.T) {
	d := serve(t, nil)
	for _, job := range []*classads.Ad{nil, jobOf("u@d", ""), jobOf("u@d", "<1>#2#3#secret")} {
		if job != nil {
			d.Know(job, version)
		}
		for _, id := range []string{"", "<1>#2#3#secre", "<1>#2#3#secret2", "<1>#2#3#", strings.Repeat("x", 1<<16)} {
			answer, err := d.ask(t, d.claim, cedar.CreateJobOwnerSecSession, sessionRequest(id, toolInfo))
			if err == nil {
				t.Errorf("claim id %.20q is answered: %s", id, answer.FormatOld())
			}
			if err != nil && !errors.Is(err, io.EOF) {
				t.Errorf("claim id %.20q: %v, want the end of the connection", id, err)
			}
		}
	}
}

// TestOwnerSessionPolicies: what a tool wishes of its session may be nonsense.
func TestOwnerSessionPolicies(t *testing.T) {
	d := serve(t, nil)
	d.Know(jobOf("u@d", "id"), "no version")
	later := time.Now().Add(time.Hour).Unix()
	for name, tt := range map[string]struct {
		info    string
		ok      bool
		expires int64
	}{
		"none":          {ok: true},
		"usual":         {info: toolInfo, ok: true},
		"empty":         {info: "[]", ok: true},
		"list with AES": {info: `[CryptoMethods="BLOWFISH";CryptoMethodsList="AES.BLOWFISH.3DES";]`, ok: true},
		"without AES":   {info: `[CryptoMethods="BLOWFISH";]`},
		"no encryption": {info: `[Encryption="NO";Integrity="NO";]`, ok: true},
		"an hour":       {info: fmt.Sprintf("[SessionExpires=%d;]", later), ok: true, expires: later},
		"expired":       {info: "[SessionExpires=1000000000;]"},
		"no brackets":   {info: `Encryption="YES"`},
		"no value":      {info: `[Encryption;]`},
		"huge":          {info: "[" + strings.Repeat(`A="B";`, 1000) + "]", ok: true},
	} {
		t.Run(name, func(t *testing.T) {
			answer, err := d.ask(t, d.claim, cedar.CreateJobOwnerSecSession, sessionRequest("id", tt.info))
			must(t, err)
			if got := answer.BoolOr("Result", !tt.ok); got != tt.ok {
				t.Fatalf("Result is %t, want %t: %s", got, tt.ok, answer.StringOr("ErrorString", ""))
			}
			if !tt.ok {
				if answer.StringOr("ErrorString", "") == "" || answer.Has("ClaimId") {
					t.Errorf("the refusal is %s", answer.FormatOld())
				}
				return
			}
			session, err := cedar.ImportSession(answer.StringOr("ClaimId", ""), "x@y")
			must(t, err)
			var expires int64
			if !session.Expires.IsZero() {
				expires = session.Expires.Unix()
			}
			if expires != tt.expires {
				t.Errorf("the session ends at %d, want %d", expires, tt.expires)
			}
		})
	}
}

// TestOwnerSessionsAreBounded: however often a tool is used, at most a thousand sessions
// are kept, and the newest is good.
func TestOwnerSessionsAreBounded(t *testing.T) {
	const most, more = 1000, 3
	d := serve(t, nil)
	d.Know(jobOf(alice, secret), version)
	ids := make([]string, most+more)
	for i := range ids {
		ids[i] = d.tool(t).ID
	}
	for _, i := range []int{0, more - 1, more, most + more - 1} {
		if _, ok := d.sessions.Lookup(ids[i]); ok != (i >= more) {
			t.Errorf("session %d of %d is there: %v", i+1, len(ids), ok)
		}
	}
}
