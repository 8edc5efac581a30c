package startd

import (
	"context"
	"net"
	"testing"

	"podstarter/classads"
	"podstarter/internal/cedar"
)

// TestMayReactivate asks a startd's command server.
func TestMayReactivate(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	claim := "<127.0.0.1:9618>#1#2#" + policy + parentKey
	theirs, err := cedar.ImportSession(claim, "submit-side@matchsession", cedar.Daemon)
	if err != nil {
		t.Fatal(err)
	}
	sessions := cedar.NewSessions()
	if err := sessions.Add(theirs); err != nil {
		t.Fatal(err)
	}
	answers := make(chan string, 1)
	server := &cedar.Server{Sessions: sessions, Version: "$CondorVersion: 25.14.1 x $", Log: quiet}
	server.Handle(cedar.ReactivateClaimCheck, cedar.Daemon, func(_ context.Context, c *cedar.Call) error {
		id, err := c.Stream.GetSecret()
		if err != nil || id != claim {
			t.Errorf("claim %q, %v", id, err)
		}
		if err := c.Stream.EndOfMessage(); err != nil {
			return err
		}
		text := <-answers
		if text == "none" {
			return nil
		}
		ad, err := classads.ParseOld(text)
		if err != nil {
			return err
		}
		c.Stream.PutAd(ad)
		return c.Stream.EndMessage()
	})
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, l) }()
	client := &cedar.Client{Version: "$CondorVersion: 25.14.1 x $", Name: "STARTER"}
	for _, tt := range []struct {
		answer string
		may    bool
		fails  bool
	}{
		{"Start = true", true, false},
		{"Start = false", false, false},
		{`Other = "x"`, true, false},
		{"none", false, true},
	} {
		answers <- tt.answer
		may, err := MayReactivate(ctx, client, "<"+l.Addr().String()+">", claim)
		if may != tt.may || (err != nil) != tt.fails {
			t.Errorf("answer %q: %v, %v", tt.answer, may, err)
		}
	}
	for _, bad := range []string{"", "no-session-in-here"} {
		if may, err := MayReactivate(ctx, client, "<"+l.Addr().String()+">", bad); err == nil || may {
			t.Errorf("claim %q: %v, %v", bad, may, err)
		}
	}
	cancel()
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	for v, want := range map[string]bool{"$CondorVersion: 25.14.1 x $": true, "$CondorVersion: 25.5.0 x $": true, "$CondorVersion: 25.4.9 x $": false, "$CondorVersion: 23.9.6 x $": false, "": false} {
		if KnowsReactivation(v) != want {
			t.Errorf("%q: %v", v, !want)
		}
	}
}
