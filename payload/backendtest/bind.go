package backendtest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"podstarter/payload"
	"podstarter/rescue"
	"podstarter/wrapper/agent/agenttest"
)

// bind: a job without an image gets the default; its payload runs as the lease's user; the
// next binding gets another container.
func bind(t *testing.T, f Fixture) {
	boots := make(map[string]bool)
	for range 2 {
		l := lease(t, f.Backend)
		c := bound(t, l, "")
		if hello := c.Client().Hello(); hello.PID <= 0 || hello.Nonce == "" || hello.Boot == "" || boots[hello.Boot] || boots[hello.Nonce] {
			t.Errorf("not the wrapper of a new container: %+v", hello)
		} else {
			boots[hello.Boot], boots[hello.Nonce] = true, true
		}
		if hello := c.Client().Hello(); c.Client().SeenPID() != hello.PID {
			t.Error("the wrapper is in another PID namespace")
		}
		want := ""
		if f.Images != nil {
			want = f.Images.Default
		}
		if c.Image() != want {
			t.Errorf("image %q, want %q", c.Image(), want)
		}
		j := start(t, l, c, "facts")
		if exit := j.wait(); exit.WaitStatus != 0 {
			t.Fatalf("exit %+v, output %s", exit, agenttest.Output(t, j.spec))
		}
		facts := j.facts()
		if u := owner(l); facts.UIDs != [3]int{u.uid, u.uid, u.uid} || facts.GIDs != [3]int{u.gid, u.gid, u.gid} {
			t.Errorf("the payload has users %v and groups %v, the lease's owner is %v", facts.UIDs, facts.GIDs, u)
		}
		for _, v := range facts.Env {
			if strings.HasPrefix(v, payload.NonceEnv) {
				t.Errorf("the payload's environment has %s", v)
			}
		}
		j.sweep()
		release(t, l)
	}
}

// images: a job gets the image that it wants, and reports of progress. If the backend
// offers no choice of images, asking for one is the user's mistake, and the lease can be
// bound without one.
func images(t *testing.T, f Fixture) {
	l := lease(t, f.Backend)
	if f.Images == nil {
		_, err := l.Bind(agenttest.Context(t), request("registry.example.com/u/tool:2"))
		if v := verdict(t, err); v.Blame != payload.User || !strings.Contains(v.Message, "registry.example.com/u/tool:2") {
			t.Errorf("%s is blamed: %v", v.Blame, v)
		}
		bound(t, l, " ")
		return
	}
	var told []string
	r := request(f.Images.Other)
	r.Report = func(progress string) { told = append(told, progress) }
	c, err := l.Bind(agenttest.Context(t), r)
	if err != nil {
		t.Fatal(err)
	}
	if c.Image() != f.Images.Other {
		t.Errorf("image %q instead of %q", c.Image(), f.Images.Other)
	}
	if !strings.Contains(strings.Join(told, "\n"), f.Images.Other) {
		t.Errorf("no report names the image: %q", told)
	}
	release(t, l)
	l = lease(t, f.Backend)
	if c := bound(t, l, " "); c.Image() != f.Images.Default {
		t.Errorf("image %q after another job's, want the default %q", c.Image(), f.Images.Default)
	}
}

// refusedImages: if an image does not exist, blame whoever chose it. The lease can be bound
// to another image afterwards.
func refusedImages(t *testing.T, f Fixture) {
	if f.Images == nil {
		return // the images test asks for one
	}
	l := lease(t, f.Backend)
	f.Images.Refuse(t, f.Images.Other)
	_, err := l.Bind(agenttest.Context(t), request(f.Images.Other))
	if v := verdict(t, err); v.Blame != payload.User || v.Subcode == 0 || !strings.Contains(v.Error(), f.Images.Other) {
		t.Errorf("%s is blamed, subcode %d: %v", v.Blame, v.Subcode, v)
	}
	r := request(f.Images.Other)
	r.ChosenBy = "SOME_KNOB"
	_, err = l.Bind(agenttest.Context(t), r)
	if v := notUsers(t, err); !strings.Contains(v.Message, "SOME_KNOB") {
		t.Errorf("the message lacks the setting that names the image: %v", v)
	}
	bound(t, l, "")
	f.Images.Refuse(t, f.Images.Default)
	release(t, l)
	_, err = lease(t, f.Backend).Bind(agenttest.Context(t), request(""))
	notUsers(t, err)
}

// bindFails: the user is not blamed for a failure of the backend.
func bindFails(t *testing.T, f Fixture) {
	f.Break(t)
	l := lease(t, f.Backend)
	_, err := l.Bind(agenttest.Context(t), request(""))
	notUsers(t, err)
}

// bindEnds: the end of the context ends a binding; this is not a verdict.
func bindEnds(t *testing.T, f Fixture) {
	gone := errors.New("the job is gone")
	l := lease(t, f.Backend)
	started := f.Stall(t)
	ctx, cancel := context.WithCancelCause(agenttest.Context(t))
	ended := make(chan error, 1)
	rescue.Go(func() {
		_, err := l.Bind(ctx, request(""))
		ended <- err
	})
	select {
	case <-started:
	case err := <-ended:
		t.Fatalf("no wrapper was started: %v", err)
	}
	cancel(gone)
	select {
	case err := <-ended:
		checkCause(t, err, gone)
	case <-agenttest.Context(t).Done():
		t.Fatal("the binding goes on")
	}
	_, err := l.Bind(ctx, request(""))
	checkCause(t, err, gone)
}

func checkCause(t *testing.T, err, cause error) {
	t.Helper()
	v := (*payload.Verdict)(nil)
	if !errors.Is(err, cause) || errors.As(err, &v) {
		t.Errorf("error %T: %v; want the cause of the context's end", err, err)
	}
}

// secondBind: a lease has one container at a time. A second bind either ends the first
// container and gives a new one, or is refused, and the first goes on.
func secondBind(t *testing.T, f Fixture) {
	l := lease(t, f.Backend)
	first := bound(t, l, "")
	j := start(t, l, first, "tree")
	second, err := l.Bind(agenttest.Context(t), request(""))
	if !f.Rebinds {
		if err == nil {
			t.Fatal("got a second container for one lease")
		}
		if len(j.alive()) != agenttest.Leaves {
			t.Errorf("only processes %v of the job are left", j.alive())
		}
		j.sweep()
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if second.Client().Hello().Boot == first.Client().Hello().Boot {
		t.Error("got the same container again")
	}
	if alive := j.alive(); len(alive) > 0 {
		t.Errorf("processes %v of the first container's payload are left", alive)
	}
	if _, err := first.Client().Usage(agenttest.Context(t)); !errors.Is(err, payload.ErrLost) {
		t.Errorf("the first container's wrapper still answers: %v", err)
	}
	notLost(t, first)
	if exit := start(t, l, second, "exit", "0").wait(); exit.WaitStatus != 0 {
		t.Errorf("exit %+v", exit)
	}
}
