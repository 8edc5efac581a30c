package qmgmt

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/condor/condortest"
	"podstarter/internal/cedar"
)

const user = "alice@example.org"

func updater(d *condortest.Schedd, ad *classads.Ad) *Updater {
	return NewUpdater(Queue{
		Client: &cedar.Client{Version: "$CondorVersion: 25.14.1 2026-01-01 $", Name: "STARTER"}, Addr: d.Address, Session: d.Session, User: user,
	}, JobID{17, 3}, ad)
}

func parsed(t *testing.T, text string) *classads.Ad {
	t.Helper()
	ad, err := classads.ParseOld(text)
	if err != nil {
		t.Fatal(err)
	}
	return ad
}

func TestUpdate(t *testing.T) {
	names := []string{"ExitCode", "HoldReason", "RemoveReason", "RequeueReason", "ImageSize", "Args", "RemoteUserCpu", "TimerRemove", "NumJobStarts"}
	tests := map[string]struct {
		moment Moment
		queue  map[string]string
		want   map[string]string // besides the queue
		timer  string            // what the ad has then
	}{
		"terminated": {moment: Terminated, want: map[string]string{"ExitCode": "5", "ImageSize": "100", "RemoteUserCpu": "2.0"}},
		"requeued":   {moment: Requeued, want: map[string]string{"RequeueReason": `"again"`, "ImageSize": "100", "RemoteUserCpu": "2.0"}},
		"removed":    {moment: Removed, want: map[string]string{"RemoveReason": `"gone"`, "ImageSize": "100", "RemoteUserCpu": "2.0"}},
		"periodic":   {moment: Periodic, want: map[string]string{"ImageSize": "100", "RemoteUserCpu": "2.0"}},
		"held":       {moment: Held, queue: map[string]string{"JobStatus": "2"}, want: map[string]string{"HoldReason": `"a \"quoted\" reason"`, "ImageSize": "100", "RemoteUserCpu": "2.0"}},
		"held by somebody else": {moment: Held, queue: map[string]string{"JobStatus": "5", "HoldReason": `"by hand"`},
			want: map[string]string{"ImageSize": "100", "RemoteUserCpu": "2.0"}},
		"held, and the status is not told": {moment: Held, want: map[string]string{"HoldReason": `"a \"quoted\" reason"`, "ImageSize": "100", "RemoteUserCpu": "2.0"}},
		"a time that was changed": {moment: Terminated, queue: map[string]string{"TimerRemove": "99"}, timer: "99",
			want: map[string]string{"ExitCode": "5", "ImageSize": "100", "RemoteUserCpu": "2.0"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d := condortest.NewSchedd(t, tt.queue)
			ad := parsed(t, "Args = \"x\"\nImageSize = 1\nRemoteUserCpu = 0.0\n")
			if tt.timer != "" {
				ad.SetInt("TimerRemove", 1)
			}
			u := updater(d, ad)
			ad.Update(parsed(t, "Args = \"changed\"\nExitCode = 5\nImageSize = 100\nRemoteUserCpu = 2.0\nHoldReason = \"a \\\"quoted\\\" reason\"\nRemoveReason = \"gone\"\nRequeueReason = \"again\"\n"))
			if err := u.Update(t.Context(), tt.moment, ad); err != nil {
				t.Fatal(err)
			}
			want, got := map[string]string{}, map[string]string{}
			for _, name := range names {
				want[name], got[name] = tt.queue[name], d.Queue(name)
				if expr, ok := tt.want[name]; ok {
					want[name] = expr
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the queue (-want +got):\n%s", diff)
			}
			if tt.timer != "" {
				if e, _ := ad.Lookup("TimerRemove"); e.OldString() != tt.timer {
					t.Errorf("TimerRemove is %s, want %s", e.OldString(), tt.timer)
				}
			}
			if diff := cmp.Diff([]string{user}, d.Users()); diff != "" {
				t.Errorf("in whose name (-want +got):\n%s", diff)
			}
			// What was told is not told again.
			d.Fail(1)
			if err := u.Update(t.Context(), tt.moment, ad); tt.moment != Held && tt.timer == "" && err != nil {
				t.Errorf("nothing was to be told: %v", err)
			}
		})
	}
}

func TestUpdateFails(t *testing.T) {
	tests := map[string]struct {
		prepare func(*condortest.Schedd)
		gone    bool
		errno   syscall.Errno
	}{
		"an attribute is refused": {prepare: func(d *condortest.Schedd) { d.Refuse("ExitCode", syscall.EACCES) }, errno: syscall.EACCES},
		"the job is gone":         {prepare: func(d *condortest.Schedd) { d.Refuse("ExitCode", syscall.ENOENT) }, errno: syscall.ENOENT, gone: true},
		"the user is refused":     {prepare: func(d *condortest.Schedd) { d.Refuse("SetEffectiveOwner", syscall.EACCES) }, errno: syscall.EACCES},
		"it makes up a number":    {prepare: func(d *condortest.Schedd) { d.Refuse("ExitCode", 70_000) }, errno: syscall.EIO},
		"the schedd hangs up":     {prepare: func(d *condortest.Schedd) { d.Fail(1) }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d := condortest.NewSchedd(t, nil)
			tt.prepare(d)
			ad := classads.NewAd()
			u := updater(d, ad)
			ad.SetInt("ExitCode", 5)
			err := u.Update(t.Context(), Terminated, ad)
			if err == nil || tt.errno != 0 && !errors.Is(err, tt.errno) || Gone(err) != tt.gone {
				t.Fatalf("got %v, gone %v", err, Gone(err))
			}
			if got := d.Queue("ExitCode"); got != "" {
				t.Errorf("ExitCode is %s all the same", got)
			}
			// Another try tells all.
			d.Refuse("ExitCode", 0)
			d.Refuse("SetEffectiveOwner", 0)
			if err := u.Update(t.Context(), Terminated, ad); err != nil || d.Queue("ExitCode") != "5" {
				t.Errorf("another try: %v, ExitCode %q", err, d.Queue("ExitCode"))
			}
		})
	}
}

func TestSetInt(t *testing.T) {
	d := condortest.NewSchedd(t, nil)
	u := updater(d, classads.NewAd())
	if err := u.SetInt(t.Context(), "NumJobStarts", 4); err != nil || d.Queue("NumJobStarts") != "4" {
		t.Errorf("got %v, NumJobStarts %q", err, d.Queue("NumJobStarts"))
	}
	d.Refuse("NumJobStarts", syscall.EACCES)
	if err := u.SetInt(t.Context(), "NumJobStarts", 5); !errors.Is(err, syscall.EACCES) || d.Queue("NumJobStarts") != "4" {
		t.Errorf("got %v, NumJobStarts %q", err, d.Queue("NumJobStarts"))
	}
}

func TestUpdateEndsWithItsContext(t *testing.T) {
	d := condortest.NewSchedd(t, nil)
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	ad := classads.NewAd()
	u := updater(d, ad)
	ad.SetInt("ExitCode", 5)
	if err := u.Update(ctx, Terminated, ad); err == nil {
		t.Error("no error")
	}
}

// TestUpdateOfLines: a schedd refuses values with line feeds, and with them the whole update.
func TestUpdateOfLines(t *testing.T) {
	d := condortest.NewSchedd(t, nil)
	ad := classads.NewAd()
	u := updater(d, ad)
	ad.SetString("HoldReason", "one\ntwo\r\nthree")
	ad.SetInt("ImageSize", 100)
	if err := u.Update(t.Context(), Held, ad); err != nil {
		t.Fatal(err)
	}
	if got, want := d.Queue("HoldReason"), `"one two three"`; got != want || d.Queue("ImageSize") != "100" {
		t.Errorf("HoldReason is %s, want %s; ImageSize %s", got, want, d.Queue("ImageSize"))
	}
}

// TestUpdateWithoutTimer: that a user has taken TimerRemove away does not keep the queue from hearing how the job ended.
func TestUpdateWithoutTimer(t *testing.T) {
	d := condortest.NewSchedd(t, map[string]string{"TimerRemove": "1"})
	d.Refuse("TimerRemove", syscall.EINVAL) // qmgmt.cpp:GetAttributeExprNew
	ad := classads.NewAd()
	ad.SetInt("TimerRemove", 1)
	u := updater(d, ad)
	ad.SetInt("ExitCode", 5)
	if err := u.Update(t.Context(), Terminated, ad); err != nil || d.Queue("ExitCode") != "5" {
		t.Errorf("got %v, ExitCode %q", err, d.Queue("ExitCode"))
	}
}

// TestUpdateWithoutSense: a queue's text that makes no sense does not keep the job's end, which the queue has heard, from counting: the schedd would
// run the job again.
func TestUpdateWithoutSense(t *testing.T) {
	d := condortest.NewSchedd(t, map[string]string{"TimerRemove": "(("})
	ad := classads.NewAd()
	ad.SetInt("TimerRemove", 1)
	u := updater(d, ad)
	ad.SetInt("ExitCode", 5)
	if err := u.Update(t.Context(), Terminated, ad); err != nil || d.Queue("ExitCode") != "5" {
		t.Errorf("got %v, ExitCode %q", err, d.Queue("ExitCode"))
	}
	if got := ad.IntOr("TimerRemove", 0); got != 1 {
		t.Errorf("TimerRemove is %d", got)
	}
}
