package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"podstarter/classads"
	"podstarter/internal/cedar"
)

const testVersion = "$CondorVersion: 25.14.1 2026-10-16 test $"

// commandPort serves the commands of an activation, as listen does, and returns
// how to reach it and the session of the claim.
func commandPort(t *testing.T, a *activation, register func(*cedar.Server)) (string, *cedar.Session) {
	t.Helper()
	claim, err := cedar.MintSession("submit-side@matchsession", cedar.Daemon)
	if err != nil {
		t.Fatal(err)
	}
	a.log = slog.New(slog.DiscardHandler)
	a.sessions = cedar.NewSessions()
	if err := a.sessions.Add(claim); err != nil {
		t.Fatal(err)
	}
	a.machine = classads.NewAd()
	a.machine.SetString("CondorVersion", testVersion)
	server := &cedar.Server{Sessions: a.sessions, Version: testVersion, Log: a.log}
	register(server)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	a.address = "<" + l.Addr().String() + ">"
	return a.address, claim
}

// adCommand sends a command with an ad and takes the ad that answers it.
func adCommand(t *testing.T, addr string, number int, session *cedar.Session, ad *classads.Ad) (*classads.Ad, error) {
	t.Helper()
	client := cedar.Client{Version: testVersion}
	s, err := client.Command(t.Context(), addr, number, session)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	s.PutAd(ad)
	if err := s.EndMessage(); err != nil {
		return nil, err
	}
	answer, err := s.GetAd()
	if err != nil {
		return nil, err
	}
	return answer, s.EndOfMessage()
}

func sessionRequest(claim, info string) *classads.Ad {
	ad := classads.NewAd()
	ad.SetString("ClaimId", claim)
	ad.SetString("SessionInfo", info)
	return ad
}

func jobOf(user, claim string) *classads.Ad {
	ad := classads.NewAd()
	if user != "" {
		ad.SetString("User", user)
	}
	if claim != "" {
		ad.SetString("ClaimId", claim)
	}
	return ad
}

// whoPeeks serves a command of the owner that answers with the peer's name.
func whoPeeks(_ context.Context, c *cedar.Call) error {
	if _, err := c.Stream.GetAd(); err != nil {
		return err
	}
	if err := c.Stream.EndOfMessage(); err != nil {
		return err
	}
	ad := classads.NewAd()
	ad.SetString("Peer", c.User)
	c.Stream.PutAd(ad)
	return c.Stream.EndMessage()
}

func ownerCommands(a *activation) func(*cedar.Server) {
	return func(s *cedar.Server) {
		s.Handle(cedar.CreateJobOwnerSecSession, cedar.Daemon, a.commandOwnerSession)
		s.Handle(cedar.StarterPeek, cedar.Read, a.ownerOnly(whoPeeks))
		s.Handle(cedar.StarterVacateJob, cedar.Daemon, whoPeeks)
	}
}

const toolInfo = `[Encryption="YES";Integrity="YES";]`

// A schedd that knows the claim gets a session for the owner's tool, which is
// good for the owner's commands alone.
func TestOwnerSession(t *testing.T) {
	for _, tt := range []struct{ name, user, want string }{
		{"owner", "alice@submit.example.org", "alice@submit.example.org"},
		{"nobody said whose", "", "job-owner@submit-domain"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := &activation{}
			addr, claim := commandPort(t, a, ownerCommands(a))
			a.ownerSessions.know(jobOf(tt.user, "<127.0.0.1:9618>#1#2#secret"))
			answer, err := adCommand(t, addr, cedar.CreateJobOwnerSecSession, claim, sessionRequest("<127.0.0.1:9618>#1#2#secret", toolInfo))
			if err != nil {
				t.Fatal(err)
			}
			if !answer.BoolOr("Result", false) || answer.StringOr("StarterIpAddr", "") != addr || answer.StringOr("CondorVersion", "") != testVersion {
				t.Fatalf("the answer is %s", answer.FormatOld())
			}
			// The tool's side of it.
			session, err := cedar.ImportSession(answer.StringOr("ClaimId", ""), "execute-side@matchsession")
			if err != nil {
				t.Fatal(err)
			}
			if !session.Expires.IsZero() {
				t.Errorf("the session ends at %s, the activation's end should end it", session.Expires)
			}
			if want := "$CondorVersion: 25.14.1 ExportedSessionInfo $"; session.PeerVersion != want {
				t.Errorf("the tool takes the starter for %q, want %q", session.PeerVersion, want)
			}
			peeked, err := adCommand(t, addr, cedar.StarterPeek, session, classads.NewAd())
			if err != nil {
				t.Fatal(err)
			}
			if got := peeked.StringOr("Peer", ""); got != tt.want {
				t.Errorf("the tool is %q, want %q", got, tt.want)
			}
			for _, number := range []int{cedar.StarterVacateJob, cedar.CreateJobOwnerSecSession} {
				if answer, err := adCommand(t, addr, number, session, sessionRequest("<127.0.0.1:9618>#1#2#secret", toolInfo)); err == nil {
					t.Errorf("command %d is answered to the owner: %s", number, answer.FormatOld())
				}
			}
		})
	}
}

// The level of the owner's commands is one that many hold; the name counts.
func TestOwnerCommandsAreTheOwners(t *testing.T) {
	a := &activation{}
	addr, claim := commandPort(t, a, ownerCommands(a))
	for _, known := range []bool{false, true} {
		if known {
			a.ownerSessions.know(jobOf("alice@submit.example.org", "id"))
		}
		if answer, err := adCommand(t, addr, cedar.StarterPeek, claim, classads.NewAd()); err == nil {
			t.Errorf("with the owner known %t, the submit side itself may peek: %s", known, answer.FormatOld())
		}
	}
}

// Who does not know the claim's secret hears nothing, before and after there is
// one.
func TestOwnerSessionNeedsTheClaim(t *testing.T) {
	a := &activation{}
	addr, claim := commandPort(t, a, ownerCommands(a))
	for _, job := range []*classads.Ad{nil, jobOf("u@d", ""), jobOf("u@d", "<1>#2#3#secret")} {
		if job != nil {
			a.ownerSessions.know(job)
		}
		for _, id := range []string{"", "<1>#2#3#secre", "<1>#2#3#secret2", "<1>#2#3#", strings.Repeat("x", 1<<16)} {
			answer, err := adCommand(t, addr, cedar.CreateJobOwnerSecSession, claim, sessionRequest(id, toolInfo))
			if err == nil {
				t.Errorf("claim id %.20q is answered: %s", id, answer.FormatOld())
			}
			if err != nil && !errors.Is(err, io.EOF) {
				t.Errorf("claim id %.20q: %v, want the end of the connection", id, err)
			}
		}
	}
	if n := len(a.ownerSessions.ids); n != 0 {
		t.Errorf("%d sessions were made", n)
	}
}

// What a tool wishes of its session may be nonsense.
func TestOwnerSessionPolicies(t *testing.T) {
	a := &activation{}
	addr, claim := commandPort(t, a, ownerCommands(a))
	a.ownerSessions.know(jobOf("u@d", "id"))
	later := time.Now().Add(time.Hour).Unix()
	for _, tt := range []struct {
		name, info string
		ok         bool
		expires    int64
	}{
		{name: "none", ok: true},
		{name: "usual", info: toolInfo, ok: true},
		{name: "empty", info: "[]", ok: true},
		{name: "list with AES", info: `[CryptoMethods="BLOWFISH";CryptoMethodsList="AES.BLOWFISH.3DES";]`, ok: true},
		{name: "without AES", info: `[CryptoMethods="BLOWFISH";]`},
		{name: "no encryption", info: `[Encryption="NO";Integrity="NO";]`, ok: true},
		{name: "an hour", info: fmt.Sprintf("[SessionExpires=%d;]", later), ok: true, expires: later},
		{name: "expired", info: "[SessionExpires=1000000000;]"},
		{name: "no brackets", info: `Encryption="YES"`},
		{name: "no value", info: `[Encryption;]`},
		{name: "huge", info: "[" + strings.Repeat(`A="B";`, 1000) + "]", ok: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			answer, err := adCommand(t, addr, cedar.CreateJobOwnerSecSession, claim, sessionRequest("id", tt.info))
			if err != nil {
				t.Fatal(err)
			}
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
			if err != nil {
				t.Fatal(err)
			}
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

// However often a tool is used, the number of sessions is bounded, and the
// newest is good.
func TestOwnerSessionsAreBounded(t *testing.T) {
	o := &ownerSessions{}
	o.know(jobOf("u@d", "id"))
	table := cedar.NewSessions()
	var first, last *cedar.Session
	for i := range maxOwnerSessions + 5 {
		session, err := o.open(table, "")
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = session
		}
		last = session
	}
	if len(o.ids) != maxOwnerSessions {
		t.Errorf("%d sessions are kept, want %d", len(o.ids), maxOwnerSessions)
	}
	if _, ok := table.Lookup(first.ID); ok {
		t.Error("the first session is still there")
	}
	if _, ok := table.Lookup(last.ID); !ok {
		t.Error("the last session is gone")
	}
}
