package condortest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/condor/shadow"
	"podstarter/condor/startd"
	"podstarter/condor/version"
	"podstarter/internal/cedar"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// starter is the least that a starter does: it takes over what it inherits, and serves orders.
type starter struct {
	*startd.Inheritance
	shadow  *shadow.Client
	updates *startd.UpdateSocket
	orders  chan string
}

func newStarter(t *testing.T, a *Activation) *starter {
	t.Helper()
	h, err := startd.Inherit(a.Env(t))
	must(t, err)
	s := &starter{Inheritance: h, shadow: shadow.New(h.Syscall, quiet), updates: startd.NewUpdateSocket(h.Update, quiet), orders: make(chan string, 8)}
	t.Cleanup(func() {
		s.shadow.Close()
		s.updates.Close()
		h.Listener.Close()
	})
	return s
}

func TestActivation(t *testing.T) {
	sh := NewShadow(t, ShadowOptions{Job: `Cmd = "/bin/true"`})
	d := NewStartd(t, StartdOptions{Machine: "Cpus = 3", Overlay: "Rank = 7.0"})
	for n := range 3 { // one after the other
		s := newStarter(t, d.Activate(t, sh))
		m, err := s.updates.ReadMachine(t.Context())
		must(t, err)
		if m.Ad.IntOr("Cpus", 0) != 3 || m.Overlay == nil || m.Secrets == nil {
			t.Errorf("the slot is %v, %v", m.Ad, m.Overlay)
		}
		job, err := s.shadow.GetJobInfo(t.Context())
		must(t, err)
		if job.StringOr("Cmd", "") != "/bin/true" || job.StringOr("ClaimId", "?") != m.Secrets.StringOr("ClaimId", "") {
			t.Errorf("the job is %v", job)
		}
		s.shadow.SetVersion(version.Of(job.StringOr("ShadowVersion", "")))
		info, err := s.shadow.GetSecSessionInfo(t.Context())
		must(t, err)
		if _, err := info.FileTransfer.Import(cedar.Write); err != nil {
			t.Error(err)
		}
		ad := classads.NewAd()
		ad.SetString("JobState", "Running")
		must(t, s.shadow.RegisterJobInfo(t.Context(), ad))
		must(t, s.updates.Update(t.Context(), ad))
		must(t, s.shadow.JobExit(t.Context(), 7<<8, shadow.JobExited, nil))
		must(t, s.updates.FinalUpdate(t.Context(), ad))
		d.WaitN(t, Call(Final), n+1) // each activation is heard by a goroutine of its own
	}
	for range 3 {
		d.WaitN(t, Call(Closed), 3)
	}
	life := []string{"get_job_info", `get_sec_session_info "" ""`, "register_job_info Running", "job_exit 1792 100"}
	sh.WaitN(t, Call(Closed), 3)
	var want []string
	for range 3 {
		want = append(want, life...)
	}
	if diff := cmp.Diff(want, sh.Story("get_job_info", "get_sec_session_info", "register_job_info", "job_exit")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"update Running", "final Running", "update Running", "final Running", "update Running", "final Running"}, d.Story(Update, Final)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestOrders are those that the recordings do not have.
func TestOrders(t *testing.T) {
	sh := NewShadow(t, ShadowOptions{})
	a := NewStartd(t, StartdOptions{}).Activate(t, sh)
	s := newStarter(t, a)
	server := &cedar.Server{Sessions: cedar.NewSessions()}
	must(t, errors.Join(server.Sessions.Add(s.ParentSession), server.Sessions.Add(s.FamilySession)))
	server.Handle(cedar.DCOffFast, cedar.Administrator, func(context.Context, *cedar.Call) error {
		s.orders <- "off"
		return nil
	})
	server.Handle(cedar.StarterVacateJob, cedar.Daemon, func(_ context.Context, c *cedar.Call) error {
		v, err := startd.ReadVacate(c.Stream)
		s.orders <- fmt.Sprintf("%+v, %v", v, c.Session == s.FamilySession)
		return errors.Join(err, result(c.Stream, 1))
	})
	server.Handle(cedar.DCRaiseSignal, cedar.Daemon, func(_ context.Context, c *cedar.Call) error {
		n, err := startd.ReadSignal(c.Stream)
		s.orders <- fmt.Sprintf("signal %d, %v", n, c.Session == s.ParentSession)
		return err
	})
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, s.Listener) }()
	t.Cleanup(func() { cancel(); <-served })

	// A hook of the test gives the order while the starter is in the middle of a call.
	sh.On("begin_execution", 1, Do(func(Heard) { a.Vacate(t, DeactivatedFast) }))
	must(t, s.shadow.BeginExecution(t.Context()))
	must(t, a.Command(t.Context(), cedar.DCOffFast, 1))
	var got []string
	got = append(got, <-s.orders, <-s.orders)
	must(t, a.Signal(t.Context(), cedar.DCSigPCkpt))
	got = append(got, <-s.orders)
	want := []string{"{Reason:Claim deactivated forcibly Code:1009 Subcode:0 Soft:false}, true", "off", "signal 104, true"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	cancel()
	s.Listener.Close()
	if err := a.TryVacate(t.Context(), Preempted); err == nil {
		t.Error("nobody listens, and nobody says so")
	}
}
