package decision

import (
	"math"
	"strings"
	"testing"

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
