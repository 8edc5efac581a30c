package startd

import (
	"context"
	"strings"
	"testing"

	"podstarter/classads"
	"podstarter/internal/cedar"
)

// TestSlotState asks a startd's command server.
func TestSlotState(t *testing.T) {
	const name = `slot1@a"b`
	answers := make(chan string, 1)
	startd := serve(t, "$CondorVersion: 23.9.6 x $", func(s *cedar.Server, _ string) {
		s.Handle(cedar.QueryStartdAds, cedar.Read, func(_ context.Context, c *cedar.Call) error {
			query, err := c.Stream.GetAd()
			if err == nil {
				err = c.Stream.EndOfMessage()
			}
			if err != nil {
				return err
			}
			slot := classads.NewAd()
			slot.SetString("Name", name)
			if text := query.FormatOld(); !strings.Contains(text, "TARGET.Name") || !strings.Contains(text, `slot1@a\"b`) {
				t.Errorf("the query is %s", text)
			}
			switch text := <-answers; text {
			case "none":
			case "silence":
				return nil
			case "no state":
				c.Stream.PutInt(1)
				c.Stream.PutAd(slot)
			default:
				slot.SetString("State", text)
				c.Stream.PutInt(1)
				c.Stream.PutAd(slot)
			}
			c.Stream.PutInt(0)
			return c.Stream.EndMessage()
		})
	})
	for answer, want := range map[string]string{"Claimed": "Claimed", "Preempting": "Preempting", "none": "", "silence": "", "no state": ""} {
		answers <- answer
		state, err := SlotState(t.Context(), startd.client, startd.address, startd.claim, name)
		if state != want || (err == nil) != (want != "") {
			t.Errorf("answer %q: %q, %v", answer, state, err)
		}
	}
	if state, err := SlotState(t.Context(), startd.client, startd.address, "", name); err == nil {
		t.Errorf("no claim: %q", state)
	}
	for v, want := range map[string]bool{"$CondorVersion: 25.14.1 x $": true, "$CondorVersion: 24.9.2 x $": true, "$CondorVersion: 24.8.1 x $": false, "$CondorVersion: 23.9.6 x $": false} {
		if GivesReasons(v) != want {
			t.Errorf("%q: %v", v, !want)
		}
	}
}
