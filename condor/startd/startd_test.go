package startd

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/condor/config"
	"podstarter/internal/cedar"
)

func classad(t testing.TB, text string) *classads.Ad {
	t.Helper()
	a, err := classads.ParseOld(text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestReadMachine(t *testing.T) {
	const oldVersion, newVersion = `CondorVersion = "$CondorVersion: 24.9.1 x $"`, `CondorVersion = "$CondorVersion: 24.9.2 x $"`
	show := func(a *classads.Ad) string {
		if a == nil {
			return "none"
		}
		return a.FormatOld()
	}
	for name, tt := range map[string]struct {
		machine, overlay string
		secrets          string
		want             [3]string
	}{
		"new startd": {"Name = \"slot1_1@h\"\n" + newVersion, "", `ClaimId = "<1>#2#3"`,
			[3]string{"Name = \"slot1_1@h\"\n" + newVersion + "\n", "none", "ClaimId = \"<1>#2#3\"\n"}},
		"overlay":          {newVersion, "RequestCpus = 2", "X = 1", [3]string{newVersion + "\n", "RequestCpus = 2\n", "X = 1\n"}},
		"empty secrets":    {newVersion, "", "#", [3]string{newVersion + "\n", "none", "none"}},
		"old startd":       {oldVersion, "A = 1", "", [3]string{oldVersion + "\n", "A = 1\n", "none"}},
		"unknown version":  {"A = 1", "", "", [3]string{"A = 1\n", "none", "none"}},
		"nonsense version": {`CondorVersion = 7`, "", "", [3]string{"CondorVersion = 7\n", "none", "none"}},
	} {
		t.Run(name, func(t *testing.T) {
			mine, theirs := pair(t)
			u := NewUpdateSocket(cedar.NewStream(mine), quiet)
			s := cedar.NewStream(theirs)
			s.PutAd(classad(t, tt.machine))
			s.PutAd(classad(t, tt.overlay)) // in the same message
			if err := s.EndMessage(); err != nil {
				t.Fatal(err)
			}
			if tt.secrets != "" {
				s.PutAd(classad(t, tt.secrets))
				if err := s.EndMessage(); err != nil {
					t.Fatal(err)
				}
			}
			m, err := u.ReadMachine(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, [3]string{show(m.Ad), show(m.Overlay), show(m.Secrets)}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadMachineFails(t *testing.T) {
	mine, theirs := pair(t)
	u := NewUpdateSocket(cedar.NewStream(mine), quiet)
	s := cedar.NewStream(theirs)
	s.PutAd(classad(t, "A = 1"))
	if err := s.EndMessage(); err != nil { // without the overlay
		t.Fatal(err)
	}
	if _, err := u.ReadMachine(context.Background()); err == nil || !strings.Contains(err.Error(), "overlay") {
		t.Errorf("error %v", err)
	}
	if err := u.Update(context.Background(), classads.NewAd()); !errors.Is(err, ErrClosed) {
		t.Errorf("an update on a broken socket: %v", err)
	}
	mine, theirs = pair(t)
	u = NewUpdateSocket(cedar.NewStream(mine), quiet)
	ctx, cancel := context.WithCancelCause(context.Background())
	reason := errors.New("reason")
	cancel(reason)
	if _, err := u.ReadMachine(ctx); !errors.Is(err, reason) {
		t.Errorf("error %v", err)
	}
	theirs.Close()
}

func TestUpdates(t *testing.T) {
	mine, theirs := pair(t)
	u := NewUpdateSocket(cedar.NewStream(mine), quiet)
	ctx := context.Background()
	ad := classad(t, "StarterIpAddr = \"<1.2.3.4:5>\"\nClaimId = \"secret\"")
	if err := u.Update(ctx, ad); err != nil {
		t.Fatal(err)
	}
	if err := u.FinalUpdate(ctx, classad(t, "BytesSent = 5")); err != nil {
		t.Fatal(err)
	}
	if err := u.Update(ctx, ad); !errors.Is(err, ErrClosed) {
		t.Errorf("an update after the final one: %v", err)
	}
	if err := u.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
	s := cedar.NewStream(theirs)
	for _, want := range []struct {
		command int64
		ad      string
	}{{0, "StarterIpAddr = \"<1.2.3.4:5>\"\n"}, {1, "BytesSent = 5\n"}} {
		n, err := s.GetInt()
		if err != nil || n != want.command {
			t.Fatalf("command %d, %v", n, err)
		}
		got, err := s.GetAd()
		if err != nil || s.EndOfMessage() != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.ad, got.FormatOld()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if _, err := s.GetInt(); err == nil {
		t.Error("the socket is still open")
	}
}

// order returns a stream on which a peer has sent a message.
func order(t testing.TB, put func(s *cedar.Stream)) *cedar.Stream {
	mine, theirs := pair(t)
	s := cedar.NewStream(theirs)
	put(s)
	if err := s.EndMessage(); err != nil {
		t.Fatal(err)
	}
	theirs.(*net.TCPConn).CloseWrite()
	return cedar.NewStream(mine)
}

func TestOrders(t *testing.T) {
	put := func(reason string, numbers ...int64) *cedar.Stream {
		return order(t, func(s *cedar.Stream) {
			s.PutString(reason)
			for _, n := range numbers {
				s.PutInt(n)
			}
		})
	}
	for name, tt := range map[string]struct {
		stream *cedar.Stream
		want   Vacate
		vacate bool
	}{
		"soft":        {put("Claim deactivated", 1009, 0, 1), Vacate{"Claim deactivated", 1009, 0, true}, true},
		"hard":        {put("Claim deactivated forcibly", 1009, 0, 0), Vacate{"Claim deactivated forcibly", 1009, 0, false}, true},
		"no reason":   {put("", 0, 0, 0), Vacate{}, true},
		"hold":        {put("over the limit", 21, 7, 1), Vacate{"over the limit", 21, 7, true}, false},
		"hold not":    {put("x", 21, -1001, 1), Vacate{"x", 21, -1001, true}, true},
		"long reason": {put(strings.Repeat("x", maxReason+5), 1010, 0, 1), Vacate{strings.Repeat("x", maxReason), 1010, 0, true}, true},
	} {
		got, err := ReadVacate(tt.stream)
		if err != nil || !cmp.Equal(got, tt.want) || got.ShouldVacate() != tt.vacate {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for name, s := range map[string]*cedar.Stream{
		"short": put("x", 1009, 0), "long": put("x", 1009, 0, 1, 1), "wide": put("x", 1<<40, 0, 1),
	} {
		if v, err := ReadVacate(s); err == nil {
			t.Errorf("%s: %+v, no error", name, v)
		}
	}
	number := func(n ...int64) *cedar.Stream {
		return order(t, func(s *cedar.Stream) {
			for _, n := range n {
				s.PutInt(n)
			}
		})
	}
	if n, err := ReadSignal(number(100)); n != cedar.DCSigSuspend || err != nil {
		t.Errorf("signal %d, %v", n, err)
	}
	for name, s := range map[string]*cedar.Stream{"zero": number(0), "two": number(15, 15), "wide": number(1 << 40)} {
		if n, err := ReadSignal(s); err == nil {
			t.Errorf("%s: signal %d, no error", name, n)
		}
	}
}

func TestAbilities(t *testing.T) {
	ad := classad(t, "HasFileTransfer = True\nHasFileTransferPluginMethods = \"data,https\"")
	var out bytes.Buffer
	if err := WriteAbilities(&out, ad); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("HasFileTransfer = true\nHasFileTransferPluginMethods = \"data,https\"\n", out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	ad.SetString("Long", strings.Repeat("x", maxAbilityLine))
	ad.SetString("Lines", "a\nb")
	out.Reset()
	err := WriteAbilities(&out, ad)
	if err == nil || !strings.Contains(err.Error(), "Long") || !strings.Contains(err.Error(), "Lines") || out.Len() > 0 {
		t.Errorf("error %v, output %q", err, out.String())
	}
	ad.Delete("Lines")
	ad.SetString("Long", strings.Repeat("x", maxAbilityLine-len(`Long = ""`)))
	if err := WriteAbilities(&out, ad); err != nil {
		t.Errorf("a line of the largest size: %v", err)
	}
	if err := WriteAbilities(&out, classads.NewAd()); err == nil {
		t.Error("an empty ad: no error")
	}
}

func TestPlan(t *testing.T) {
	session := func(v string) *Inheritance {
		return &Inheritance{ParentSession: &cedar.Session{PeerVersion: v}}
	}
	for name, tt := range map[string]struct {
		startd string
		knobs  map[string]string
		want   schedule
		err    bool
	}{
		"stock":         {"$CondorVersion: 25.14.1 x $", nil, schedule{3600 * time.Second, 30 * time.Second, 1170 * time.Second, 390 * time.Second}, false},
		"older":         {"$CondorVersion: 23.9.6 x $", nil, schedule{3600 * time.Second, 0, 1170 * time.Second, 390 * time.Second}, false},
		"general knob":  {"", map[string]string{"NOT_RESPONDING_TIMEOUT": "600"}, schedule{600 * time.Second, 0, 170 * time.Second, 60 * time.Second}, false},
		"own knob":      {"", map[string]string{"NOT_RESPONDING_TIMEOUT": "600", "STARTER_NOT_RESPONDING_TIMEOUT": "30"}, schedule{30 * time.Second, 0, time.Second, 60 * time.Second}, false},
		"first knob":    {"$CondorVersion: 26.0.0 x $", map[string]string{"STARTER_FIRST_CHILDALIVE_DELAY": "5"}, schedule{3600 * time.Second, 5 * time.Second, 1170 * time.Second, 390 * time.Second}, false},
		"first too far": {"$CondorVersion: 26.0.0 x $", map[string]string{"STARTER_FIRST_CHILDALIVE_DELAY": "99999"}, schedule{3600 * time.Second, 1200 * time.Second, 1170 * time.Second, 390 * time.Second}, false},
		"nonsense":      {"", map[string]string{"STARTER_NOT_RESPONDING_TIMEOUT": "long"}, schedule{3600 * time.Second, 0, 1170 * time.Second, 390 * time.Second}, true},
		"never":         {"", map[string]string{"STARTER_NOT_RESPONDING_TIMEOUT": "0"}, schedule{3600 * time.Second, 0, 1170 * time.Second, 390 * time.Second}, false},
	} {
		t.Run(name, func(t *testing.T) {
			k := KeepAlive{Inheritance: session(tt.startd), Config: config.FromMap(tt.knobs)}
			got, err := k.plan(0)
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(schedule{})); diff != "" || (err != nil) != tt.err {
				t.Errorf("error %v (-want +got):\n%s", err, diff)
			}
			for _, fuzz := range []float64{-1, 1} {
				if s, _ := k.plan(fuzz); s.hang < s.period || s.hang%time.Second != 0 {
					t.Errorf("fuzz %v: %+v", fuzz, s)
				}
			}
		})
	}
}

// TestRepeat counts calls on a fake clock.
func TestRepeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		start := time.Now()
		var calls []time.Duration
		k := &KeepAlive{Inheritance: &Inheritance{}, Config: config.FromMap(map[string]string{"NOT_RESPONDING_TIMEOUT": "90"}), Log: quiet}
		k.send = func(context.Context, time.Duration) error {
			calls = append(calls, time.Since(start).Round(time.Second))
			if n := len(calls); n == 2 || n == 3 {
				return errors.New("no") // the second round succeeds at the third try
			}
			if len(calls) >= 5 {
				cancel()
			}
			return nil
		}
		k.repeat(ctx)
		s := time.Second
		if diff := cmp.Diff([]time.Duration{0, s, 6 * s, 11 * s, 12 * s}, calls); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestChildAlive has a startd's command server receive a keep-alive.
func TestChildAlive(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	sessions := cedar.NewSessions()
	claim := "0123#" + policy + parentKey
	theirs, err := cedar.ImportSession(claim, "condor@child", cedar.Daemon)
	if err != nil {
		t.Fatal(err)
	}
	if err := sessions.Add(theirs); err != nil {
		t.Fatal(err)
	}
	got := make(chan [2]int64, 1)
	server := &cedar.Server{Sessions: sessions, Version: "$CondorVersion: 25.14.1 x $", Log: quiet}
	server.Handle(cedar.DCChildAlive, cedar.Daemon, func(_ context.Context, c *cedar.Call) error {
		pid, _ := c.Stream.GetInt()
		hang, _ := c.Stream.GetInt()
		if _, err := c.Stream.GetDouble(); err != nil {
			t.Error(err)
		}
		got <- [2]int64{pid, hang}
		return c.Stream.EndOfMessage()
	})
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, l) }()
	mine, err := cedar.ImportSession(claim, "condor@parent", cedar.Daemon)
	if err != nil {
		t.Fatal(err)
	}
	address, err := cedar.ParseSinful("<" + l.Addr().String() + ">")
	if err != nil {
		t.Fatal(err)
	}
	k := &KeepAlive{
		Inheritance: &Inheritance{ParentPID: os.Getpid(), Parent: address, ParentSession: mine, EndpointID: "slot1_1"},
		Config:      config.FromMap(map[string]string{"STARTER_FIRST_CHILDALIVE_DELAY": "0"}), Log: quiet, PID: 479,
	}
	alive := make(chan error, 1)
	go func() { alive <- k.Run(ctx) }()
	select {
	case n := <-got:
		if n[0] != 479 || n[1] < 3528 || n[1] > 3672 {
			t.Errorf("pid %d, hang %d", n[0], n[1])
		}
	case <-time.After(10 * time.Second):
		t.Error("no sign of life")
	}
	cancel()
	if err := <-alive; err != nil {
		t.Errorf("Run: %v", err)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

func TestParentGone(t *testing.T) {
	child := exec.Command("cat")
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	k := &KeepAlive{Inheritance: &Inheritance{ParentPID: child.Process.Pid}, Config: config.FromMap(nil), Log: quiet}
	ended := make(chan error, 1)
	go func() { ended <- k.Run(context.Background()) }()
	in.Close()
	child.Wait()
	select {
	case err := <-ended:
		if !errors.Is(err, ErrParentGone) {
			t.Errorf("error %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the end of the parent is not noticed")
	}
	if err := watchParent(context.Background(), child.Process.Pid); !errors.Is(err, ErrParentGone) {
		t.Errorf("a parent that has already ended: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go cancel()
	if err := watchParent(ctx, os.Getpid()); err != nil {
		t.Errorf("a parent that lives: %v", err)
	}
}

func TestPollParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		err := pollParent(context.Background(), maxPID+1, ErrParentGone)
		if !errors.Is(err, ErrParentGone) || time.Since(start) != firstParentCheck {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		if err := pollParent(ctx, os.Getpid(), ErrParentGone); err != nil {
			t.Error(err)
		}
	})
}
