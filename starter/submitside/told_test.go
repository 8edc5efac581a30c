package submitside_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/condor/condortest"
	"podstarter/condor/shadow"
	"podstarter/condor/startd"
	"podstarter/condor/version"
	"podstarter/internal/cedar"
	"podstarter/starter/submitside"
)

var quiet = slog.New(slog.DiscardHandler)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// telling are the reports of a job to peers that write down what they hear.
func telling(t *testing.T) (*submitside.Reports, *condortest.Shadow, *condortest.Startd) {
	t.Helper()
	sh, d := condortest.NewShadow(t, condortest.ShadowOptions{}), condortest.NewStartd(t, condortest.StartdOptions{})
	h, err := startd.Inherit(d.Activate(t, sh).Env(t))
	must(t, err)
	client, updates := shadow.New(h.Syscall, quiet), startd.NewUpdateSocket(h.Update, quiet)
	t.Cleanup(func() {
		client.Close()
		updates.Close()
		h.Listener.Close()
	})
	client.SetVersion(version.Of(sh.Job().StringOr("ShadowVersion", "")))
	_, err = updates.ReadMachine(t.Context())
	must(t, err)
	return submitside.NewReports(submitside.ReportsTo{
		Shadow: client, Startd: updates, Half: submitside.NewHalf(client, quiet), Address: cedar.Sinful{Host: "127.0.0.1", Port: 7}, Log: quiet,
		GiveBack:   func(*classads.Ad) {},
		StartdOnly: func(ad *classads.Ad) { ad.SetInt("Load", 3) },
	}), sh, d
}

// about are the attributes of an ad in which the peers differ.
func about(h condortest.Heard) string {
	return fmt.Sprintf("%s %s|%s|%s|%s", h.Call, h.Ad.Text("StarterIpAddr"), h.Ad.Text("CondorScratchDir"), h.Ad.Text("Load"), h.Ad.Text("_condor_JOBINFO_MAXINTERVAL"))
}

// TestWhoIsToldWhat: what is the startd's alone does not go to the shadow, and a shadow
// that has heard the last word hears nothing more.
func TestWhoIsToldWhat(t *testing.T) {
	r, sh, d := telling(t)
	must(t, r.Update(t.Context(), classads.NewAd()))
	r.Place("/execute/dir_1")
	r.Promise(300 * time.Second)
	r.Tell(t.Context(), classads.NewAd())
	r.TellStartd(t.Context(), classads.NewAd())
	r.Final(t.Context(), classads.NewAd())
	var got []string
	got = append(got, about(sh.WaitN(t, condortest.Call("register_job_info"), 1)), about(sh.WaitN(t, condortest.Call("register_job_info"), 2)))
	for n := range 3 {
		got = append(got, about(d.WaitN(t, condortest.Call(condortest.Update), n+1)))
	}
	got = append(got, about(d.Wait(t, condortest.Call(condortest.Final))))
	want := []string{
		"register_job_info |||-1", "register_job_info |||300",
		"update <127.0.0.1:7>||3|-1", "update <127.0.0.1:7>|/execute/dir_1|3|300", "update |/execute/dir_1|3|-1",
		"final |||",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := sh.Count(condortest.Call("register_job_info")); n != 2 {
		t.Errorf("the shadow is told %d times, want 2", n)
	}
	if h := d.WaitN(t, condortest.Call(condortest.Update), 3); h.Ad.Text("STARTER_DISCONNECTED_FROM_SUBMIT_NODE") != "true" {
		t.Errorf("the startd is told %v", h.Ad)
	}
}

// TestNobodyHears: an update that nobody hears is logged, and the job goes on.
func TestNobodyHears(t *testing.T) {
	r, sh, d := telling(t)
	d.On(condortest.Update, 0, condortest.HangUp())
	sh.Disconnect()
	if err := r.Update(t.Context(), classads.NewAd()); !errors.Is(err, shadow.ErrLost) {
		t.Errorf("the shadow is lost: %v", err)
	}
	r.Tell(t.Context(), classads.NewAd())
	d.Wait(t, condortest.Call(condortest.Closed))
	r.TellStartd(t.Context(), classads.NewAd())
	r.Final(t.Context(), classads.NewAd())
	if n := d.Count(condortest.Call(condortest.Final)); n != 0 {
		t.Errorf("the startd hears %d final updates on a connection that has ended", n)
	}
}

// TestEvent: a shadow may refuse an event; the caller decides what that means.
func TestEvent(t *testing.T) {
	r, sh, _ := telling(t)
	event := shadow.Event("SomethingHappened")
	sh.On("event_notification", 2, condortest.HangUp())
	if err := r.Event(t.Context(), event); errors.Is(err, shadow.ErrLost) {
		t.Errorf("the shadow is there: %v", err)
	}
	if err := r.Event(t.Context(), event); !errors.Is(err, shadow.ErrLost) {
		t.Errorf("the shadow hangs up: %v", err)
	}
	sh.Wait(t, condortest.Call("event_notification").With("EventType", "SomethingHappened"))
}

// TestNote: a line goes into the job's event log once, and is not cut short.
func TestNote(t *testing.T) {
	r, sh, _ := telling(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.Note(ctx, "a line")
	sh.Wait(t, condortest.Call("ulog").With("MyType", "GenericEvent").With("Info", "a line"))
	if n := sh.Count(condortest.Call("ulog")); n != 1 {
		t.Errorf("%d events", n)
	}
}

// TestUpdatesAreWhole: a demand that ends what the caller does cuts no update short.
func TestUpdatesAreWhole(t *testing.T) {
	r, sh, _ := telling(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Update(ctx, classads.NewAd()); err != nil {
		t.Error(err)
	}
	sh.Wait(t, condortest.Call("register_job_info"))
	must(t, r.Update(t.Context(), classads.NewAd()))
}
