package decision

import (
	"math"
	"strings"
	"testing"
	"time"

	"podstarter/provisioner/resources"
)

// A schedd that says that it has 10^12 jobs, and a slot that says that it has as
// many CPUs, cost neither time nor pods without end.
func TestBounds(t *testing.T) {
	in := site()
	in.demand(0, one, []int{small}, alice(1e12))
	out := Decide(in)
	checkOutcomes(t, in, out)
	if len(out.Create) != 1 || out.Create[0].Count != mostPods {
		t.Errorf("the decision is %+v, want %d pods", out.Create, mostPods)
	}
	in.Pods = []Pod{{ID: "liar", Shape: small, Phase: Reported, Free: resources.Amount{CPUs: 1 << 40, Memory: 1 << 50, Disk: 1 << 60}}}
	out = Decide(in)
	checkOutcomes(t, in, out)
	if o := out.Groups[0]; o.Free != mostJobs || len(out.Create) != 0 {
		t.Errorf("the outcome is %+v", o)
	}
}

// Pods that are made for nobody in particular are no user's.
func TestTallyHasNoUser(t *testing.T) {
	in := site()
	in.Limits.PerUser = 1
	in.Users = map[string]User{"": {Pods: 5}}
	if why := NewTally(&in).Refuses(small); why != "" {
		t.Errorf("a pod is refused: %s", why)
	}
}

// A shape that is closed leaves the others of its template open.
func TestClosedShape(t *testing.T) {
	in := site()
	in.Shapes[large].Closed = "it is refused"
	in.demand(0, four, []int{large}, alice(5))
	in.demand(0, one, []int{small, large}, bob(2))
	out := Decide(in)
	checkOutcomes(t, in, out)
	if len(out.Create) != 1 || out.Create[0].Shape != small || out.Create[0].Count != 2 {
		t.Errorf("the decision is %+v", out.Create)
	}
	if w := out.Groups[0].Waiting; len(w) != 1 || w[0].Jobs != 5 || !strings.Contains(w[0].Why, "plain/large: it is refused") {
		t.Errorf("those of the closed shape: %+v", w)
	}
}

// Numbers of the accountant that are none give nobody a place before the others
// for ever.
func TestPrioritiesThatAreNoNumbers(t *testing.T) {
	for _, u := range []User{{Priority: math.NaN()}, {Priority: math.Inf(1)}, {Usage: math.Inf(1)}, {Priority: -1, Usage: math.NaN()}} {
		in := site()
		in.Users = map[string]User{"alice": u}
		in.Limits.PerRound = 10
		in.demand(0, one, []int{small}, alice(100), bob(100))
		out := Decide(in)
		made := map[string]int{}
		for _, c := range out.Create {
			made[c.User] += c.Count
		}
		if made["alice"] != 5 || made["bob"] != 5 {
			t.Errorf("%+v: %v", u, made)
		}
	}
}

// A group may be tried with a few pods of a template, while it takes those that are
// there, and other templates and groups go on.
func TestBoundedFit(t *testing.T) {
	in := site()
	in.demand(0, one, []int{small, large, graphics}, alice(50))
	in.demand(0, one, []int{small}, bob(3))
	for i := range 2 {
		in.Fits[0][i].Bounded, in.Fits[0][i].Most, in.Fits[0][i].Why = true, 2, "it is tried"
	}
	in.Fits[0][2].Bounded, in.Fits[0][2].Why = true, "nobody takes it"
	in.Pods = []Pod{{ID: "there", Shape: graphics, Phase: Reported, Free: gpu}}
	out := Decide(in)
	checkOutcomes(t, in, out)
	made := map[string]int{}
	for _, c := range out.Create {
		made[c.User] += c.Count
	}
	if made["alice"] != 2 || made["bob"] != 3 {
		t.Errorf("pods are made for %v", made)
	}
	o := out.Groups[0]
	if o.Free != 4 || len(o.Waiting) != 1 || !strings.Contains(o.Waiting[0].Why, "it is tried; nobody takes it") {
		t.Errorf("the outcome is %+v", o)
	}
}

// The limit of a user is the same under whatever names the user is charged, and that
// of others who are charged under the same name is their own.
func TestLimitOfWhoIsChargedUnderOtherNames(t *testing.T) {
	in := Input{
		Now: time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC), Policy: DefaultPolicy, Limits: Limits{PerUser: 3},
		Templates: []Template{{Name: "plain", Allowance: 1000}},
		Shapes:    []Shape{{Name: "one", Size: resources.Amount{CPUs: 1}}},
		Users:     map[string]User{"eve@x": {Pods: 1}},
		Groups: []Group{{ID: "g", Submitters: []Submitter{
			{User: "a.eve@x", Owner: "eve@x", Idle: 50}, {User: "b.eve@x", Owner: "eve@x", Idle: 50}, {User: "eve@x", Owner: "eve@x", Idle: 50},
			{User: "physics@x", Owner: "bob@x", Idle: 50}, {User: "physics@x", Owner: "eve@x", Idle: 50}, {User: "alice@x", Idle: 50},
		}}},
		Fits: [][]Fit{{{Shape: 0, Request: resources.Amount{CPUs: 1}}}},
	}
	made := map[string]int{}
	for _, c := range Decide(in).Create {
		made[c.User] += c.Count
	}
	for user, want := range map[string]int{"eve@x": 2, "bob@x": 3, "alice@x": 3} {
		if made[user] != want {
			t.Errorf("%d pods are made for %s, want %d: %v", made[user], user, want, made)
		}
	}
}

// A ramp that allows less than one pod lets a small group have one all the same:
// otherwise its jobs would wait for ever.
func TestRampOfFewJobs(t *testing.T) {
	in := site()
	in.Policy.Ramp = Ramp{Part: 0.25}
	in.demand(0, one, []int{small}, alice(3))
	out := Decide(in)
	checkOutcomes(t, in, out)
	if len(out.Create) != 1 || out.Create[0].Count != 1 {
		t.Errorf("the decision is %+v", out)
	}
}

// A pod whose time is over takes no job, however far places are planned.
func TestPodWhoseTimeIsOver(t *testing.T) {
	for _, horizon := range []time.Duration{0, time.Hour} {
		in := site()
		in.Policy.Horizon = horizon
		in.demand(0, one, []int{small}, alice(1))
		in.Pods = []Pod{{ID: "old", Shape: small, Phase: Reported, Free: one, Until: start.Add(-time.Minute)}}
		out := Decide(in)
		checkOutcomes(t, in, out)
		if o := out.Groups[0]; o.Free != 0 || o.New != 1 {
			t.Errorf("with a horizon of %s the outcome is %+v", horizon, o)
		}
	}
}

// Whoever asks for nothing gets a place of its own all the same.
func TestRequestForNothing(t *testing.T) {
	in := site()
	in.demand(0, resources.Amount{}, []int{small}, alice(3))
	in.Pods = []Pod{{ID: "there", Shape: small, Phase: Reported, Free: one}}
	out := Decide(in)
	checkOutcomes(t, in, out)
	if o := out.Groups[0]; o.Free != 1 || o.New != 2 || len(out.Create) != 1 || out.Create[0].Count != 2 {
		t.Errorf("the outcome is %+v, and %+v is made", o, out.Create)
	}
}
