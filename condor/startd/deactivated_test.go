package startd

import (
	"context"
	"net"
	"strings"
	"testing"

	"podstarter/classads"
	"podstarter/internal/cedar"
)

// TestSlotState asks a startd's command server.
func TestSlotState(t *testing.T) {
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
	const name = `slot1@a"b`
	server := &cedar.Server{Sessions: sessions, Version: "$CondorVersion: 23.9.6 x $", Log: quiet}
	answers := make(chan string, 1)
	server.Handle(cedar.QueryStartdAds, cedar.Read, func(_ context.Context, c *cedar.Call) error {
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
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, l) }()
	client := &cedar.Client{Version: "$CondorVersion: 23.9.6 x $", Name: "STARTER"}
	for answer, want := range map[string]string{"Claimed": "Claimed", "Preempting": "Preempting", "none": "", "silence": "", "no state": ""} {
		answers <- answer
		state, err := SlotState(ctx, client, "<"+l.Addr().String()+">", claim, name)
		if state != want || (err == nil) != (want != "") {
			t.Errorf("answer %q: %q, %v", answer, state, err)
		}
	}
	if state, err := SlotState(ctx, client, "<"+l.Addr().String()+">", "", name); err == nil {
		t.Errorf("no claim: %q", state)
	}
	cancel()
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	for v, want := range map[string]bool{"$CondorVersion: 25.14.1 x $": true, "$CondorVersion: 24.9.2 x $": true, "$CondorVersion: 24.8.1 x $": false, "$CondorVersion: 23.9.6 x $": false} {
		if GivesReasons(v) != want {
			t.Errorf("%q: %v", v, !want)
		}
	}
}
