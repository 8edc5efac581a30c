package condortest

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/condor/config"
	"podstarter/condor/shadow"
	"podstarter/condor/startd"
	"podstarter/condor/version"
	"podstarter/internal/cedar"
)

// client is a starter's client of a shadow.
func client(t *testing.T, s *Shadow) *shadow.Client {
	t.Helper()
	c := shadow.New(s.Connect(t), quiet)
	c.SetVersion(version.Of(s.Job().StringOr("ShadowVersion", "")))
	t.Cleanup(func() { c.Close() })
	return c
}

// TestPlanOfCalls has the shadow do something else at its second call, and no other.
func TestPlanOfCalls(t *testing.T) {
	for _, tt := range []struct {
		name    string
		actions []Action
		lost    bool
		want    string // in the error
	}{
		{"nothing", nil, false, ""},
		{"refuse", []Action{Refuse(syscall.EACCES)}, false, "permission denied"},
		{"hang up", []Action{HangUp()}, true, "EOF"},
		{"hang up unread", []Action{HangUpUnread()}, true, ""},
		{"hang up within", []Action{HangUpWithin(7)}, true, "EOF"},
		{"garbage", []Action{Garbage([]byte("\x01\x00\x00\x00\x20no packet that was encrypted with any key"))}, true, ""},
		{"a lie", []Action{Say(func(s *cedar.Stream) { s.PutString("x") })}, true, ""},
		{"too long", []Action{Say(func(s *cedar.Stream) { s.PutInt(0); s.PutBytes(make([]byte, 1<<20)) })}, true, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := NewShadow(t, ShadowOptions{})
			c := client(t, s)
			s.On("register_job_info", 2, tt.actions...)
			var errs []error
			for range 3 {
				errs = append(errs, c.RegisterJobInfo(t.Context(), classads.NewAd()))
			}
			fails := tt.actions != nil
			if errs[0] != nil || (errs[1] != nil) != fails || (errs[2] != nil) != tt.lost {
				t.Fatalf("%v", errs)
			}
			if fails && (errors.Is(errs[1], shadow.ErrLost) != tt.lost || !strings.Contains(errs[1].Error(), tt.want)) {
				t.Errorf("%v", errs[1])
			}
			if want, got := map[bool]int{true: 2, false: 3}[tt.lost], s.Count(Call("register_job_info")); got != want {
				t.Errorf("%d calls were heard, not %d", got, want)
			}
		})
	}
}

// TestStall has a call wait for what a test does, and a hook be called before it is answered.
func TestStall(t *testing.T) {
	s := NewShadow(t, ShadowOptions{})
	c := client(t, s)
	until, hooked := make(chan struct{}), make(chan Heard, 1)
	s.On("begin_execution", 1, Do(func(h Heard) { hooked <- h }), Stall(until))
	ended := make(chan error, 1)
	go func() { ended <- c.BeginExecution(context.Background()) }()
	if diff := cmp.Diff(Heard{Call: "begin_execution"}, <-hooked); diff != "" {
		t.Error(diff)
	}
	s.Wait(t, Call("begin_execution"))
	select {
	case err := <-ended:
		t.Errorf("the call was answered before its time: %v", err)
	default:
	}
	close(until)
	must(t, <-ended)
}

// TestAnswers has answers that depend on what the test's shadow is.
func TestAnswers(t *testing.T) {
	s := NewShadow(t, ShadowOptions{Job: "Mark = 17", Without: []string{"Rank"}, Tokens: map[string]string{"b": "two", "a": "one"}, Kerberos: []byte("ticket"), Files: map[string]string{"sub/file": "contents"}})
	c := client(t, s)
	ctx := t.Context()
	job, err := c.GetJobInfo(ctx)
	must(t, err)
	if job.IntOr("Mark", 0) != 17 || job.Has("Rank") || job.StringOr("TransferKey", "") != s.Key() || job.StringOr("TransferSocket", "") != s.Address() {
		t.Errorf("the job is %v", job)
	}
	creds, err := c.GetCreds(ctx, false)
	must(t, err)
	var tokens []string
	for _, cred := range creds {
		tokens = append(tokens, cred.Service+" "+string(cred.Data()))
	}
	if diff := cmp.Diff([]string{"a one", "b two"}, tokens); diff != "" {
		t.Error(diff)
	}
	proxy, err := c.GetDelegatedProxy(ctx, "/proxy", time.Time{})
	if err != nil || strings.Count(string(proxy), "BEGIN CERTIFICATE") != 2 {
		t.Errorf("the proxy is %q, %v", proxy, err)
	}
	s.On("get_delegated_proxy", 2, Refuse(syscall.ENOENT))
	if _, err := c.GetDelegatedProxy(ctx, "/proxy", time.Time{}); !errors.Is(err, cedar.ErrNoDelegation) {
		t.Errorf("a proxy that is not there: %v", err)
	}
	s.On("request_guidance", 2, AnswerText(`Command = "Abort"`))
	for _, want := range []string{"StartJob", "Abort", "StartJob"} {
		ask := classads.NewAd()
		ask.SetString("RequestType", "JobEnvironment")
		g, err := c.RequestGuidance(ctx, ask)
		if err != nil || g.Command() != want {
			t.Errorf("guidance %v, %v, want %s", g, err, want)
		}
	}
	s.On("constrain", 0, Refuse(syscall.EPERM))
	for range 2 {
		if err := c.Constrain(ctx, "true"); !errors.Is(err, syscall.EPERM) {
			t.Errorf("what is always refused: %v", err)
		}
	}
	s.Forget()
	must(t, c.SetJobAttr(ctx, "Said", "1 + 2"))
	want := []Heard{{Call: "set_job_attr", Texts: []string{"1 + 2", "Said"}}}
	if diff := cmp.Diff(want, s.Heard()); diff != "" {
		t.Errorf("after all was forgotten (-want +got):\n%s", diff)
	}
	if got, err := c.GetJobAttr(ctx, "Said"); err != nil || got != "1 + 2" {
		t.Errorf("the attribute is %q, %v", got, err)
	}
	f, err := c.OpenFile(ctx, "sub/file", os.O_RDONLY, 0)
	must(t, err)
	b := make([]byte, 20)
	if n, err := f.ReadAt(ctx, b, 3); err != nil || string(b[:n]) != "tents" {
		t.Errorf("the file has %q, %v", b, err)
	}
	for _, name := range []string{"../outside", "/etc/passwd"} {
		if _, err := c.OpenFile(ctx, name, os.O_RDONLY, 0); !errors.Is(err, syscall.ENOENT) {
			t.Errorf("%s: %v", name, err)
		}
	}
	by := &cedar.Client{Version: s.version}
	session, err := s.TransferSession()
	must(t, err)
	if ticket, err := shadow.FetchKerberos(ctx, by, s.Address(), session, "u", "d"); err != nil || string(ticket) != "ticket" {
		t.Errorf("the ticket is %q, %v", ticket, err)
	}
	s.On(Kerberos, 2, HangUp())
	if _, err := shadow.FetchKerberos(ctx, by, s.Address(), session, "u", "d"); err == nil {
		t.Error("a shadow that hangs up has a ticket")
	}
}

// TestStartdDies is seen by who watches the process, and at the update socket.
func TestStartdDies(t *testing.T) {
	d := NewStartd(t, StartdOptions{Recording: "23.9/plain", Mortal: true})
	s := newStarter(t, d.Activate(t, NewShadow(t, ShadowOptions{Recording: "23.9/plain"})))
	ended := make(chan error, 1)
	alive := startd.KeepAlive{Inheritance: s.Inheritance, Config: config.FromMap(nil), Log: quiet, PID: 77}
	go func() { ended <- alive.Run(t.Context()) }()
	if h := d.Wait(t, Call(Alive)); h.Ints[0] != 77 { // a startd of 23.9 is told at once
		t.Errorf("%v", h)
	}
	d.Die(t)
	if err := <-ended; !errors.Is(err, startd.ErrParentGone) {
		t.Errorf("%v", err)
	}
}

// TestPlanOfStartd has a startd refuse, and end its socket.
func TestPlanOfStartd(t *testing.T) {
	sh := NewShadow(t, ShadowOptions{})
	d := NewStartd(t, StartdOptions{Without: []string{"Cpus"}, NoSessions: true})
	d.On(Again, 2, AnswerText("Start = false"))
	d.On(Update, 1, HangUp())
	s := newStarter(t, d.Activate(t, sh))
	if s.ParentSession != nil || s.FamilySession != nil {
		t.Errorf("sessions: %v", s.Inheritance)
	}
	m, err := s.updates.ReadMachine(t.Context())
	must(t, err)
	if m.Ad.Has("Cpus") {
		t.Error("the slot has Cpus")
	}
	by := &cedar.Client{Version: d.version}
	for _, want := range []bool{true, false, true} {
		may, err := startd.MayReactivate(t.Context(), by, d.Address(), m.Secrets.StringOr("ClaimId", ""))
		if err != nil || may != want {
			t.Errorf("the claim may go on: %v, %v, want %v", may, err, want)
		}
	}
	must(t, s.updates.Update(t.Context(), m.Ad))
	d.Wait(t, Call(Closed))
	if diff := cmp.Diff([]string{"reactivate", "reactivate", "reactivate", "update", "closed"}, d.Story()); diff != "" {
		t.Error(diff)
	}
}

// TestReconnect is a shadow that loses its connection and comes back with another key.
func TestReconnect(t *testing.T) {
	sh := NewShadow(t, ShadowOptions{})
	a := NewStartd(t, StartdOptions{}).Activate(t, sh)
	s := newStarter(t, a)
	if _, err := sh.Reconnect(t.Context()); err == nil {
		t.Error("the shadow comes back to a starter that it does not know")
	}
	sh.SetStarter(a.Address())
	first := sh.Key()
	server := &cedar.Server{Sessions: cedar.NewSessions()}
	claim, err := cedar.ImportSession(sh.Job().StringOr("ClaimId", ""), shadow.SubmitSide, cedar.Daemon, cedar.Write)
	must(t, err)
	must(t, server.Sessions.Add(claim))
	keys := make(chan string, 1)
	server.Handle(cedar.CACmd, cedar.Write, func(ctx context.Context, c *cedar.Call) error {
		r, err := shadow.ReadReconnect(c.Stream)
		if err != nil {
			return err
		}
		keys <- r.TransferKey()
		if err := shadow.Accept(c.Stream, classads.NewAd()); err != nil {
			return err
		}
		return s.shadow.Resume(ctx, c.Keep(), func(shadow.SecSessionInfo) error { return nil })
	})
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, s.Listener) }()
	t.Cleanup(func() { cancel(); <-served })

	lost := s.shadow.Lost()
	sh.Disconnect()
	<-lost
	reply, err := sh.Reconnect(t.Context())
	if err != nil || reply.Text("Result") != "Success" {
		t.Fatalf("%v, %v", reply, err)
	}
	if key := <-keys; key == first || key != sh.Key() {
		t.Errorf("the key is %q, after %q", key, first)
	}
	must(t, s.shadow.Await(t.Context()))
	must(t, s.shadow.BeginExecution(t.Context()))
	sh.Wait(t, Call("begin_execution"))
}
