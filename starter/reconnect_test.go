package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/condor/config"
	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/condor/startd"
	"podstarter/internal/cedar"
	"podstarter/payload"
	"podstarter/sandbox"
	"podstarter/sandbox/filetransfer"
	"podstarter/starter/failure"
	"podstarter/starter/orders"
	"podstarter/starter/settings"
	"podstarter/starter/usage"
)

// longTime bounds what happens at once on a machine that is not overloaded.
const longTime = 30 * time.Second

const shadowVersion = "$CondorVersion: 25.14.1 2026-10-01 BuildID: 1 $"

// submitter is the submit side of an activation: shadows that come and go.
type submitter struct {
	t       *testing.T
	address string
	claim   *cedar.Session // shared with the starter
	other   *cedar.Session // of somebody else who may write

	serving  sync.WaitGroup
	mu       sync.Mutex
	heard    []string // calls that were answered
	unheard  []string // calls that were not
	dieAfter int      // calls to answer before the connection breaks; -1: never
}

// starterWith makes an activation whose job has ended and whose shadow is the
// submitter's first.
func starterWith(t *testing.T, lease time.Duration) (*activation, *submitter) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	key := strings.Repeat("5e", 32)
	importSession := func(id, user string) *cedar.Session {
		s, err := cedar.ImportSessionParts(id, "", key, user, cedar.Daemon)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	sub := &submitter{t: t, dieAfter: -1, claim: importSession("claim", shadow.SubmitSide), other: importSession("family", "condor@family")}

	mine, theirs := sockets(t)
	startdEnd, startdPeer := sockets(t)
	go func() { _, _ = cedar.NewStream(startdPeer).ReadMessage(make([]byte, 1<<20)) }()
	a := &activation{
		log: log, orders: orders.New(log), cfg: config.FromMap(nil), address: "<127.0.0.1:1?sock=starter>",
		meter: usage.NewMeter(usage.Knobs{}, log), ad: classads.NewAd(), machine: classads.NewAd(),
		shadow:   shadow.New(cedar.NewStream(mine), log),
		startd:   startd.NewUpdateSocket(cedar.NewStream(startdEnd), log),
		sessions: cedar.NewSessions(),
		payload:  &payloadRun{exit: &payload.Exit{WaitStatus: 7 << 8}},
	}
	a.useKnobs(config.FromMap(nil))
	a.meetPeers()
	known := classads.NewAd()
	known.SetString("TransferSocket", "<127.0.0.1:2>")
	known.SetString("TransferKey", "first")
	a.submit.Know(known, job.Info{Lease: lease}, classads.NewAd())
	var err error
	a.sandbox, err = sandbox.Create(t.Context(), sandbox.Options{Execute: t.TempDir(), PID: os.Getpid(), Condor: sandbox.Self(), Payload: sandbox.Self(), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*cedar.Session{sub.claim, sub.other} {
		if err := a.sessions.Add(s); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	sub.address = "<" + l.Addr().String() + ">"
	ctx, cancel := context.WithCancel(context.Background())
	server := &cedar.Server{Sessions: a.sessions, Version: shadowVersion, Log: log}
	server.Handle(cedar.CACmd, cedar.Write, a.submit.Reconnect)
	var running sync.WaitGroup
	running.Go(func() {
		if err := server.Serve(ctx, l); err != nil {
			t.Error(err)
		}
	})
	running.Go(func() { a.submit.Keep(ctx) })
	t.Cleanup(func() { cancel(); running.Wait(); a.shadow.Close() })
	sub.serving.Go(func() { sub.serve(cedar.NewStream(theirs)) })
	return a, sub
}

// sockets are the two ends of a connection.
func sockets(t *testing.T) (net.Conn, net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	b, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// serve answers calls until the connection ends, or breaks it.
func (s *submitter) serve(st *cedar.Stream) {
	defer st.Close()
	for {
		number, err := st.GetInt()
		if err != nil {
			return
		}
		call := fmt.Sprint(number)
		switch number {
		case 288:
			_, _ = st.GetString()
			_, _ = st.GetString()
		case -65:
			status, _ := st.GetInt()
			reason, _ := st.GetInt()
			_, _ = st.GetAd()
			call = fmt.Sprintf("job_exit %d %d", status, reason)
		default:
			ad, err := st.GetAd()
			if err != nil {
				s.t.Error(err)
				return
			}
			call = ad.StringOr("JobState", call)
			if number == 284 {
				call = "error " + ad.StringOr("ErrorMsg", "")
			}
		}
		if err := st.EndOfMessage(); err != nil {
			s.t.Error(err)
			return
		}
		if !s.answer(call) {
			return
		}
		switch number {
		case 284:
			continue
		case 288:
			st.PutInt(1)
			for _, id := range []string{"claim", "filetrans.claim"} {
				st.PutString(id)
				st.PutString("")
				st.PutSecret(strings.Repeat("5e", 32))
			}
		default:
			st.PutInt(0)
		}
		if err := st.EndMessage(); err != nil {
			return
		}
	}
}

// answer notes a call and says whether it is to be answered.
func (s *submitter) answer(call string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dieAfter == 0 {
		s.dieAfter = -1
		s.unheard = append(s.unheard, call)
		return false
	}
	if s.dieAfter > 0 {
		s.dieAfter--
	}
	s.heard = append(s.heard, call)
	return true
}

// comeBack asks for the job as a shadow does; the result is the starter's.
func (s *submitter) comeBack(session *cedar.Session) (*classads.Ad, error) {
	client := &cedar.Client{Version: shadowVersion, Timeout: longTime}
	st, err := client.Command(context.Background(), s.address, cedar.CACmd, session)
	if err != nil {
		return nil, err
	}
	ad := classads.NewAd()
	ad.SetString("Command", "CA_RECONNECT_JOB")
	ad.SetString("ShadowIpAddr", "<127.0.0.1:3>")
	ad.SetString("ShadowVersion", shadowVersion)
	ad.SetString("TransferSocket", "<127.0.0.1:3>")
	ad.SetString("TransferKey", "second")
	st.PutAd(ad)
	if err := st.EndMessage(); err != nil {
		return nil, err
	}
	reply, err := st.GetAd()
	if err == nil {
		err = st.EndOfMessage()
	}
	if err != nil || reply.StringOr("Result", "") != shadow.ResultSuccess {
		st.Close()
		return reply, err
	}
	s.serving.Go(func() { s.serve(st) })
	return reply, nil
}

func TestReconnect(t *testing.T) {
	a, sub := starterWith(t, time.Hour)
	a.shadow.Disconnect(errors.New("the network is gone"))
	reply, err := sub.comeBack(sub.claim)
	if err != nil || reply.StringOr("Result", "") != shadow.ResultSuccess {
		t.Fatalf("%v, %v", reply, err)
	}
	select {
	case <-a.submit.Back():
	case <-time.After(longTime):
		t.Fatal("nobody hears that the shadow is back")
	}
	if err := a.submit.Await(t.Context()); err != nil {
		t.Error(err)
	}
	if a.orders.Ended() != nil {
		t.Errorf("the job is to end: %v", a.orders.Ended())
	}
	if v := a.shadow.Version(); !v.AtLeast(25, 14, 1) {
		t.Errorf("the shadow is %v", v)
	}
}

// TestReconnectRefused: only the shadow gets the job, and only while there is
// one to be had.
func TestReconnectRefused(t *testing.T) {
	t.Run("somebody else", func(t *testing.T) {
		a, sub := starterWith(t, time.Hour)
		reply, err := sub.comeBack(sub.other)
		if err != nil || reply.StringOr("Result", "") != shadow.ResultNotAuthorized {
			t.Errorf("%v, %v", reply, err)
		}
		if a.shadow.Broken() {
			t.Error("the connection to the shadow is lost by it")
		}
	})
	t.Run("lease over", func(t *testing.T) {
		a, sub := starterWith(t, 0)
		a.shadow.Disconnect(errors.New("the network is gone"))
		select {
		case <-a.orders.Hard():
		case <-time.After(longTime):
			t.Fatal("the job goes on without a lease")
		}
		if e := a.orders.Ended(); !e.Lost || e.Urgency == orders.Soft {
			t.Errorf("%+v", e)
		}
		reply, err := sub.comeBack(sub.claim)
		if err != nil || reply.StringOr("Result", "") != shadow.ResultInvalidState {
			t.Errorf("%v, %v", reply, err)
		}
		if err := a.handOver(t.Context()); !errors.Is(err, shadow.ErrLost) && !errors.Is(err, orders.ErrEnded) {
			t.Errorf("handOver: %v", err)
		}
		if code := a.conclude(t.Context(), shadow.ErrLost); code != exitLostShadow {
			t.Errorf("exit code %d", code)
		}
	})
}

// TestHandOver breaks the connection at each call of a job's end: the job's
// exit is reported nevertheless, and answered once.
func TestHandOver(t *testing.T) {
	whole := []string{string(job.Exited), "job_exit 1792 100"}
	for n := range whole {
		t.Run(whole[n], func(t *testing.T) {
			a, sub := starterWith(t, time.Hour)
			sub.mu.Lock()
			sub.dieAfter = n
			sub.mu.Unlock()
			done := make(chan error, 1)
			go func() { done <- a.handOver(t.Context()) }()
			select {
			case <-a.shadow.Lost():
			case <-time.After(longTime):
				t.Fatal("the loss is not noticed")
			}
			if _, err := sub.comeBack(sub.claim); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			sub.mu.Lock()
			defer sub.mu.Unlock()
			want := append(append([]string{}, whole[:n]...), append([]string{"288"}, whole...)...)
			if diff := cmp.Diff(want, sub.heard); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(whole[n:n+1], sub.unheard); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestHoldAwaits: that a job which ran is to be held reaches a shadow that is
// away, that it goes back to the queue need not.
func TestHoldAwaits(t *testing.T) {
	a, sub := starterWith(t, time.Hour)
	a.shadow.Disconnect(errors.New("the network is gone"))
	done := make(chan int, 1)
	go func() {
		done <- a.conclude(t.Context(), failure.New(shadow.HoldJobOutOfResources, shadow.OutOfMemory, errors.New("too large")))
	}()
	if _, err := sub.comeBack(sub.claim); err != nil {
		t.Fatal(err)
	}
	if code := <-done; code != exitNormal {
		t.Errorf("exit code %d", code)
	}
	deadline := time.Now().Add(longTime)
	for heard := ""; heard != "288 error too large"; {
		sub.mu.Lock()
		heard = strings.Join(sub.heard, " ")
		sub.mu.Unlock()
		if time.Now().After(deadline) {
			t.Fatalf("the shadow hears %q", heard)
		}
		time.Sleep(time.Millisecond)
	}

	a, sub = starterWith(t, time.Hour)
	a.shadow.Disconnect(errors.New("the network is gone"))
	if code := a.conclude(t.Context(), failure.New(shadow.VacateContainerError, 0, errors.New("no container"))); code != exitNormal {
		t.Errorf("exit code %d", code)
	}
	if len(sub.heard) != 0 {
		t.Errorf("the shadow hears %v", sub.heard)
	}
}

// TestRetryOutput: a transfer that breaks is tried again where that can help,
// and given up after as many times as under stock.
func TestRetryOutput(t *testing.T) {
	reset := &filetransfer.Error{Code: 13, TryAgain: true, Text: "reset", Err: net.ErrClosed}
	for name, tt := range map[string]struct {
		lease time.Duration
		err   error
		lost  int // tries that wait for the shadow
	}{
		"no more use": {time.Hour, &filetransfer.Error{Code: 13, Subcode: 2, Text: "no such file"}, 0},
		"no lease":    {0, reset, 0},
		"breaks":      {time.Hour, reset, forcedDisconnects},
		"not its own": {time.Hour, errors.New("something else"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			a, sub := starterWith(t, tt.lease)
			for n := range tt.lost {
				if err := a.retryOutput(t.Context(), tt.err); !errors.Is(err, shadow.ErrLost) {
					t.Fatalf("try %d: %v", n, err)
				}
				if _, err := sub.comeBack(sub.claim); err != nil {
					t.Fatal(err)
				}
			}
			if err := a.retryOutput(t.Context(), tt.err); !errors.Is(err, tt.err) || errors.Is(err, shadow.ErrLost) {
				t.Errorf("in the end: %v", err)
			}
		})
	}
}

// useKnobs gives the activation a configuration.
func (a *activation) useKnobs(cfg *config.Config) {
	a.cfg = cfg
	set, _ := settings.Read(cfg)
	set.Backend, set.Programs, set.ProgramPaths = a.set.Backend, a.set.Programs, a.set.ProgramPaths
	a.set = set
}
