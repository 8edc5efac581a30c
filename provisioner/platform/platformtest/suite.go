// Package platformtest has the tests that every platform must pass: what a
// platform owes the provisioner is said there and nowhere else.
package platformtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/provisioner/backoff"
	"podstarter/provisioner/platform"
	"podstarter/provisioner/resources"
)

// World is a platform, and what a test does to it from the other side.
type World interface {
	Platform() platform.Platform
	// Restart returns a platform as a provisioner that starts anew has it.
	Restart() platform.Platform
	// Begin, Fail and Finish let a unit run, end soon with an error, and end well.
	Begin(name string)
	Fail(name string)
	Finish(name string)
	// Stick makes a unit one for which there is no room.
	Stick(name string)
	// Deny makes the platform refuse new units, or not.
	Deny(deny bool)
}

var size = resources.Amount{CPUs: 2, Memory: 2048, Disk: 1 << 20}

func spec(name string) platform.Spec {
	return platform.Spec{Name: name, Template: "plain", Shape: "small", Size: size, User: "alice@x.org/group", Group: "0123456789abcdef"}
}

// Run runs the suite; each test has a world of its own.
func Run(t *testing.T, make func(t *testing.T) World) {
	for name, test := range map[string]func(t *testing.T, w World){
		"life of a unit":       life,
		"a restart":            restart,
		"creating twice":       twice,
		"creating at once":     atOnce,
		"failure":              failure,
		"no room":              noRoom,
		"refusal":              refusal,
		"withdrawal":           withdrawal,
		"withdrawal too late":  tooLate,
		"withdrawal of nobody": nobody,
		"ending":               ending,
	} {
		t.Run(name, func(t *testing.T) { test(t, make(t)) })
	}
}

// find returns the unit once the list has it as wanted. Platforms learn of changes
// in their own time.
func find(t *testing.T, p platform.Platform, name string, want func(u platform.Unit) bool) platform.Unit {
	t.Helper()
	var units []platform.Unit
	deadline := time.Now().Add(30 * time.Second)
	for {
		var err error
		if units, err = p.List(context.Background()); err != nil {
			t.Fatal(err)
		}
		for _, u := range units {
			if u.Name == name && want(u) {
				return u
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is not as wanted: %+v", name, units)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func in(phase platform.Phase) func(u platform.Unit) bool {
	return func(u platform.Unit) bool { return u.Phase == phase }
}

func create(t *testing.T, w World, names ...string) {
	t.Helper()
	for _, n := range names {
		if err := w.Platform().Create(context.Background(), spec(n)); err != nil {
			t.Fatal(err)
		}
	}
}

func life(t *testing.T, w World) {
	before := time.Now().Add(-2 * time.Second) // clocks of a platform may count in seconds
	create(t, w, "p-plain-1")
	units, err := w.Platform().List(context.Background())
	if err != nil || len(units) != 1 {
		t.Fatalf("a unit that was made is not in the list at once: %v, %v", units, err)
	}
	if diff := cmp.Diff(spec("p-plain-1"), units[0].Spec); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if u := units[0]; u.Phase != platform.Pending || u.Created.Before(before) || !u.Began.IsZero() || u.Trouble != "" {
		t.Errorf("a new unit is %+v", u)
	}
	w.Begin("p-plain-1")
	u := find(t, w.Platform(), "p-plain-1", in(platform.Running))
	if u.Began.Before(before) || !u.Ended.IsZero() || u.Trouble != "" || len(u.Hosts) == 0 {
		t.Errorf("a unit that runs is %+v", u)
	}
	w.Finish("p-plain-1")
	u = find(t, w.Platform(), "p-plain-1", in(platform.Ended))
	if u.Ended.Before(before) || u.Trouble != "" {
		t.Errorf("a unit that ended well is %+v", u)
	}
}

func restart(t *testing.T, w World) {
	create(t, w, "p-plain-1", "p-plain-2")
	w.Begin("p-plain-2")
	find(t, w.Platform(), "p-plain-2", in(platform.Running))
	again := w.Restart()
	for name, phase := range map[string]platform.Phase{"p-plain-1": platform.Pending, "p-plain-2": platform.Running} {
		u := find(t, again, name, in(phase))
		if diff := cmp.Diff(spec(name), u.Spec); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	}
}

func twice(t *testing.T, w World) {
	create(t, w, "p-plain-1", "p-plain-1")
	if units, err := w.Platform().List(context.Background()); err != nil || len(units) != 1 {
		t.Errorf("the unit is there %d times, %v", len(units), err)
	}
}

func atOnce(t *testing.T, w World) {
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if err := w.Platform().Create(context.Background(), spec(fmt.Sprintf("p-plain-%d", i))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if units, err := w.Platform().List(context.Background()); err != nil || len(units) != 20 {
		t.Errorf("there are %d units, want 20: %v", len(units), err)
	}
}

func failure(t *testing.T, w World) {
	create(t, w, "p-plain-1")
	w.Begin("p-plain-1")
	find(t, w.Platform(), "p-plain-1", in(platform.Running))
	w.Fail("p-plain-1")
	u := find(t, w.Platform(), "p-plain-1", in(platform.Ended))
	if u.Trouble != backoff.Failed || u.Detail == "" {
		t.Errorf("a unit that failed is %+v", u)
	}
}

func noRoom(t *testing.T, w World) {
	create(t, w, "p-plain-1")
	w.Stick("p-plain-1")
	u := find(t, w.Platform(), "p-plain-1", func(u platform.Unit) bool { return u.Trouble != "" })
	if u.Phase != platform.Pending || u.Trouble != backoff.Unschedulable || u.Detail == "" {
		t.Errorf("a unit without room is %+v", u)
	}
}

func refusal(t *testing.T, w World) {
	w.Deny(true)
	err := w.Platform().Create(context.Background(), spec("p-plain-1"))
	if !errors.Is(err, platform.ErrDenied) {
		t.Errorf("the error is %v, want one of ErrDenied", err)
	}
	w.Deny(false)
	create(t, w, "p-plain-1")
}

func withdrawal(t *testing.T, w World) {
	create(t, w, "p-plain-1", "p-plain-2")
	if err := w.Platform().Withdraw(context.Background(), "p-plain-1"); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(30 * time.Second)
	for {
		units, err := w.Platform().List(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if len(units) == 1 && units[0].Name == "p-plain-2" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after the withdrawal there are %+v", units)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func tooLate(t *testing.T, w World) {
	create(t, w, "p-plain-1")
	w.Begin("p-plain-1")
	if err := w.Platform().Withdraw(context.Background(), "p-plain-1"); !errors.Is(err, platform.ErrBegun) {
		t.Errorf("the error is %v, want ErrBegun", err)
	}
	find(t, w.Platform(), "p-plain-1", in(platform.Running))
}

// ending is of platforms that can end what runs.
func ending(t *testing.T, w World) {
	e, can := w.Platform().(platform.Ender)
	if !can {
		return
	}
	create(t, w, "p-plain-1", "p-plain-2")
	w.Begin("p-plain-1")
	find(t, w.Platform(), "p-plain-1", in(platform.Running))
	for _, name := range []string{"p-plain-1", "p-plain-9"} {
		if err := e.End(context.Background(), name); err != nil {
			t.Fatal(err)
		}
	}
	find(t, w.Platform(), "p-plain-2", in(platform.Pending))
}

func nobody(t *testing.T, w World) {
	if err := w.Platform().Withdraw(context.Background(), "p-plain-9"); err != nil {
		t.Error(err)
	}
}
