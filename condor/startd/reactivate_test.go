package startd

import (
	"context"
	"testing"

	"podstarter/classads"
	"podstarter/internal/cedar"
)

// TestMayReactivate asks a startd's command server.
func TestMayReactivate(t *testing.T) {
	answers := make(chan string, 1)
	startd := serve(t, "$CondorVersion: 25.14.1 x $", func(s *cedar.Server, claim string) {
		s.Handle(cedar.ReactivateClaimCheck, cedar.Daemon, func(_ context.Context, c *cedar.Call) error {
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
	})
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
		may, err := MayReactivate(t.Context(), startd.client, startd.address, startd.claim)
		if may != tt.may || (err != nil) != tt.fails {
			t.Errorf("answer %q: %v, %v", tt.answer, may, err)
		}
	}
	for _, bad := range []string{"", "no-session-in-here"} {
		if may, err := MayReactivate(t.Context(), startd.client, startd.address, bad); err == nil || may {
			t.Errorf("claim %q: %v, %v", bad, may, err)
		}
	}
	for v, want := range map[string]bool{"$CondorVersion: 25.14.1 x $": true, "$CondorVersion: 25.5.0 x $": true, "$CondorVersion: 25.4.9 x $": false, "$CondorVersion: 23.9.6 x $": false, "": false} {
		if KnowsReactivation(v) != want {
			t.Errorf("%q: %v", v, !want)
		}
	}
}
