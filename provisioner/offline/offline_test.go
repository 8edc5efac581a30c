package offline

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/provisioner/decision"
	"podstarter/provisioner/resources"
)

var now = time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC)

// at is so many minutes before now.
func at(minutes int) time.Time { return now.Add(-time.Duration(minutes) * time.Minute) }

// site is a place with one template in two shapes that has worked.
func site() Input {
	return Input{
		Base: decision.Input{
			Now: now, Templates: []decision.Template{{Name: "t", Allowance: 100}},
			Shapes: []decision.Shape{{Name: "a", Size: resources.Amount{CPUs: 1}}, {Name: "b", Size: resources.Amount{CPUs: 2}}},
			Policy: decision.Policy{Settle: 3 * time.Minute},
		},
		Spare: 2, Cycle: now,
	}
}

func units(list []Offer) string {
	var names []string
	for _, o := range list {
		names = append(names, o.Unit)
	}
	return strings.Join(names, " ")
}

func taken(out Output) string {
	var names []string
	for _, t := range out.Take {
		names = append(names, t.Unit)
	}
	return strings.Join(names, " ")
}

func kept(out Output, role Role) string {
	var names []string
	for _, k := range out.Keep {
		if k.Role == role {
			names = append(names, k.Unit)
		}
	}
	return strings.Join(names, " ")
}

func TestDecide(t *testing.T) {
	for name, c := range map[string]struct {
		change                            func(in *Input)
		make, coming, spare, stuck, taken string
		more                              []int
		withdrawn                         int
		refused                           string
	}{
		"nothing there": {func(*Input) {}, "", "", "", "", "", []int{2, 2}, 0, ""},
		"spare ones stay": {func(in *Input) {
			in.Offers = []Offer{{Unit: "x", Shape: 0}, {Unit: "y", Shape: 1}}
		}, "", "", "x y", "", "", []int{1, 1}, 0, ""},
		"a match is a unit": {func(in *Input) {
			in.Offers = []Offer{{Unit: "x", Shape: 0, Matched: at(0)}, {Unit: "y", Shape: 0}}
		}, "x", "x", "y", "", "", []int{1, 2}, 0, ""},
		"the first match first": {func(in *Input) {
			in.Base.Limits.Pods = 1
			in.Offers = []Offer{{Unit: "x", Shape: 0, Matched: at(0)}, {Unit: "y", Shape: 1, Matched: at(1)}, {Unit: "z", Shape: 1}}
		}, "y", "y", "", "", "x z", []int{0, 0}, 0, "the limit of 1 pods is reached"},
		"a unit on its way keeps its offer": {func(in *Input) {
			in.Base.Pods = []decision.Pod{{ID: "x", Phase: decision.Pending, Created: at(1)}, {ID: "y", Phase: decision.Starting, Created: at(9)}}
			in.Offers = []Offer{{Unit: "x", Shape: 0, Matched: at(0)}, {Unit: "y", Shape: 0, Matched: at(8)}}
		}, "", "x y", "", "", "", []int{2, 2}, 0, ""},
		"and gets it back": {func(in *Input) {
			in.Base.Pods = []decision.Pod{{ID: "x", Phase: decision.Pending, Created: at(1)}}
		}, "", "x", "", "", "", []int{2, 2}, 0, ""},
		"but not once it has reported": {func(in *Input) {
			in.Base.Pods = []decision.Pod{{ID: "x", Phase: decision.Reported}, {ID: "y", Phase: decision.Ending}}
			in.Gone = map[string]bool{"z": true}
			in.Offers = []Offer{{Unit: "x", Matched: at(0)}, {Unit: "y", Matched: at(0)}, {Unit: "z", Matched: at(0)}}
		}, "", "", "", "", "x y z", []int{2, 2}, 0, ""},
		"a shape that is gone": {func(in *Input) {
			in.Base.Pods = []decision.Pod{{ID: "y", Shape: -1, Created: at(1)}}
			in.Offers = []Offer{{Unit: "x", Shape: -1, Matched: at(0)}, {Unit: "y", Shape: -1}, {Unit: "z", Shape: 7}}
		}, "", "", "", "", "x y z", []int{2, 2}, 0, ""},
		"one that is stuck is the last": {func(in *Input) {
			in.Base.Pods = []decision.Pod{{ID: "x", Shape: 1, Stuck: true, Created: at(1)}}
			in.Offers = []Offer{{Unit: "x", Shape: 1, Matched: at(0)}}
		}, "", "", "", "x", "", []int{2, 0}, 0, ""},
		"no match for a while": {func(in *Input) {
			in.Base.Pods = []decision.Pod{{ID: "x", Created: at(9)}, {ID: "y", Created: at(9)}, {ID: "z", Created: at(2)}}
			in.Offers = []Offer{{Unit: "x", Matched: at(5)}, {Unit: "y", Matched: at(1)}, {Unit: "z", Matched: at(2)}}
			in.Memory.Wanted = map[string]Sighting{"x": {at(5), at(4)}, "y": {at(5), at(4)}, "z": {at(2), at(2)}}
		}, "", "y z", "", "", "x", []int{0, 2}, 1, "a pod of the shape a of t was withdrawn less than 3m0s ago"},
		"a match that has not been yet": {func(in *Input) {
			in.Base.Pods = []decision.Pod{{ID: "x", Created: at(9)}}
			in.Offers = []Offer{{Unit: "x", Matched: at(-99999)}}
			in.Memory.Wanted = map[string]Sighting{"x": {at(-99999), at(4)}}
		}, "", "", "", "", "x", []int{0, 2}, 1, "a pod of the shape a of t was withdrawn less than 3m0s ago"},
		"no cycle since then": {func(in *Input) {
			in.Cycle = at(5)
			in.Base.Pods = []decision.Pod{{ID: "x", Created: at(9)}}
			in.Offers = []Offer{{Unit: "x", Matched: at(5)}}
			in.Memory.Wanted = map[string]Sighting{"x": {at(5), at(4)}}
		}, "", "x", "", "", "", []int{2, 2}, 0, ""},
		"a negotiator that nobody knows": {func(in *Input) {
			in.Cycle = time.Time{}
			in.Base.Pods = []decision.Pod{{ID: "x", Created: at(9)}}
			in.Memory.Wanted = map[string]Sighting{"x": {time.Time{}, at(9)}}
		}, "", "x", "", "", "", []int{2, 2}, 0, ""},
		"never matched": {func(in *Input) {
			in.Base.Pods = []decision.Pod{{ID: "x", Created: at(9)}}
			in.Memory.Wanted = map[string]Sighting{"x": {time.Time{}, at(4)}}
		}, "", "", "", "", "", []int{0, 2}, 1, "a pod of the shape a of t was withdrawn less than 3m0s ago"},
		"after a restart it waits again": {func(in *Input) {
			in.Base.Pods = []decision.Pod{{ID: "x", Created: at(9)}}
			in.Offers = []Offer{{Unit: "x", Matched: at(8)}}
		}, "", "x", "", "", "", []int{2, 2}, 0, ""},
		"what runs is never withdrawn": {func(in *Input) {
			in.Base.Pods = []decision.Pod{{ID: "x", Phase: decision.Starting, Created: at(9)}}
			in.Memory.Wanted = map[string]Sighting{"x": {time.Time{}, at(9)}}
		}, "", "x", "", "", "", []int{2, 2}, 0, ""},
		"a broken site has none": {func(in *Input) {
			in.Base.Templates[0].Allowance, in.Base.Templates[0].AllowanceWhy = 0, "wait"
			in.Offers = []Offer{{Unit: "x", Matched: at(0)}, {Unit: "y"}}
		}, "", "", "", "", "x y", []int{0, 0}, 0, "t: wait"},
		"one is tried": {func(in *Input) {
			in.Base.Templates[0].Allowance = 1
			in.Offers = []Offer{{Unit: "x"}, {Unit: "y"}}
		}, "", "", "x", "", "y", []int{0, 1}, 0, ""},
		"so many at a time": {func(in *Input) {
			in.Base.Limits.PerRound = 1
			in.Offers = []Offer{{Unit: "x", Matched: at(1)}, {Unit: "y", Matched: at(0)}}
		}, "x", "x", "y", "", "", []int{0, 1}, 0, ""},
		"an offer twice": {func(in *Input) {
			in.Offers = []Offer{{Unit: "x", Matched: at(1)}, {Unit: "x", Shape: 1, Matched: at(1)}}
		}, "x", "x", "", "", "", []int{2, 2}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := site()
			c.change(&in)
			out := Decide(in)
			got := []any{units(out.Create), kept(out, Coming), kept(out, Spare), kept(out, Stuck), taken(out), out.New, len(out.Withdraw), out.Refused[0]}
			want := []any{c.make, c.coming, c.spare, c.stuck, c.taken, c.more, c.withdrawn, c.refused}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got\n%s\n%+v", diff, out)
			}
		})
	}
}

// world makes an input of random numbers, hostile ones among them.
func world(r *rand.Rand) Input {
	in := Input{Base: decision.Input{Now: now, Limits: decision.Limits{Pods: r.IntN(12), Coming: r.IntN(8), PerRound: r.IntN(5)}, Policy: decision.Policy{Settle: 3 * time.Minute}}, Spare: r.IntN(7), Gone: map[string]bool{}}
	moment := func() time.Time {
		if r.IntN(3) == 0 {
			return time.Time{}
		}
		return now.Add(time.Duration(r.IntN(40)-30) * time.Minute)
	}
	in.Cycle = moment()
	for i := range 1 + r.IntN(3) {
		in.Base.Templates = append(in.Base.Templates, decision.Template{Name: fmt.Sprint("t", i), MaxPods: r.IntN(6), MaxComing: r.IntN(4), Allowance: r.IntN(6), AllowanceWhy: "wait"})
		for j := range 1 + r.IntN(3) {
			s := decision.Shape{Template: i, Name: fmt.Sprint("s", j), MaxPods: r.IntN(4)}
			if r.IntN(8) == 0 {
				s.Closed = "closed"
			}
			in.Base.Shapes = append(in.Base.Shapes, s)
		}
	}
	in.Memory.Wanted, in.Memory.Withdrawn = map[string]Sighting{}, map[string]time.Time{}
	for i := range r.IntN(25) {
		unit := fmt.Sprint("u", i)
		shape := r.IntN(len(in.Base.Shapes)+2) - 1
		if r.IntN(2) == 0 {
			for range 1 + r.IntN(2) {
				in.Offers = append(in.Offers, Offer{Unit: unit, Shape: shape, Matched: moment()})
			}
		}
		switch r.IntN(4) {
		case 0:
			in.Gone[unit] = true
		case 1, 2:
			in.Base.Pods = append(in.Base.Pods, decision.Pod{ID: unit, Shape: min(shape, len(in.Base.Shapes)-1), Phase: decision.Phase(r.IntN(4)), Stuck: r.IntN(5) == 0, Created: moment()})
		}
		if r.IntN(2) == 0 {
			in.Memory.Wanted[unit] = Sighting{moment(), moment()}
		}
	}
	return in
}

// check says what is wrong with a decision.
func check(in Input, out Output) error {
	there := map[string]decision.Phase{}
	pods, coming := 0, 0
	shapes, templates, arriving := map[int]int{}, map[int]int{}, map[int]int{}
	for _, p := range in.Base.Pods {
		there[p.ID] = p.Phase
		pods++
		if p.Phase < decision.Reported {
			coming++
		}
		if p.Shape >= 0 {
			shapes[p.Shape]++
			templates[in.Base.Shapes[p.Shape].Template]++
			if p.Phase < decision.Reported {
				arriving[in.Base.Shapes[p.Shape].Template]++
			}
		}
	}
	over := func(n, limit int) bool { return limit > 0 && n > limit }
	made := map[string]bool{}
	for _, o := range out.Create {
		if _, ok := there[o.Unit]; ok || in.Gone[o.Unit] || made[o.Unit] {
			return fmt.Errorf("%s is made although there is or was one", o.Unit)
		}
		made[o.Unit] = true
		s := in.Base.Shapes[o.Shape]
		t := in.Base.Templates[s.Template]
		pods, coming = pods+1, coming+1
		shapes[o.Shape]++
		templates[s.Template]++
		arriving[s.Template]++
		l := in.Base.Limits
		if over(pods, l.Pods) || over(coming, l.Coming) || over(shapes[o.Shape], s.MaxPods) || over(templates[s.Template], t.MaxPods) || over(arriving[s.Template], t.MaxComing) || t.Allowance == 0 || s.Closed != "" {
			return fmt.Errorf("%s exceeds a limit", o.Unit)
		}
	}
	if over(len(out.Create), in.Base.Limits.PerRound) {
		return fmt.Errorf("%d are made in a round", len(out.Create))
	}
	known := map[string]bool{}
	for _, o := range in.Offers {
		known[o.Unit] = true
	}
	spare := map[int]int{}
	kept := map[string]bool{}
	for _, k := range out.Keep {
		if kept[k.Unit] || in.Gone[k.Unit] {
			return fmt.Errorf("%s is kept twice, or after its end", k.Unit)
		}
		kept[k.Unit] = true
		phase, ok := there[k.Unit]
		switch {
		case k.Shape < 0 || k.Shape >= len(in.Base.Shapes):
			return fmt.Errorf("%s has the shape %d", k.Unit, k.Shape)
		case k.Role == Spare:
			spare[k.Shape]++
			if ok {
				return fmt.Errorf("%s is spare and there", k.Unit)
			}
		case !made[k.Unit] && (!ok || phase >= decision.Reported):
			return fmt.Errorf("%s is kept as %d without a unit on its way", k.Unit, k.Role)
		}
	}
	for _, t := range out.Take {
		if kept[t.Unit] || made[t.Unit] || t.Why == "" {
			return fmt.Errorf("%s is taken back and kept: %q", t.Unit, t.Why)
		}
		kept[t.Unit] = true
	}
	for unit := range known {
		if !kept[unit] {
			return fmt.Errorf("nothing is said of %s", unit)
		}
	}
	for _, w := range out.Withdraw {
		if p := in.Base.Pods[w.Pod]; p.Phase != decision.Pending || in.Base.Now.Sub(p.Created) < in.Base.Policy.Settle || in.Cycle.IsZero() {
			return fmt.Errorf("%+v is withdrawn", p)
		}
	}
	for s, n := range out.New {
		waiting := 0 // matched ones whose turn is next
		for _, k := range out.Keep {
			if k.Role == Spare && k.Shape == s && !k.Matched.IsZero() {
				waiting++
			}
		}
		if n < 0 || spare[s]+n > max(in.Spare, waiting) {
			return fmt.Errorf("the shape %d gets %d spare ones and has %d", s, n, spare[s])
		}
		if out.Refused[s] != "" && n > 0 {
			return fmt.Errorf("the shape %d gets %d although %s", s, n, out.Refused[s])
		}
	}
	return nil
}

func TestProperties(t *testing.T) {
	made, withdrawn := 0, 0
	for seed := range uint64(20_000) {
		in := world(rand.New(rand.NewPCG(seed, 1)))
		out := Decide(in)
		made, withdrawn = made+len(out.Create), withdrawn+len(out.Withdraw)
		if err := check(in, out); err != nil {
			t.Fatalf("seed %d: %v\n%+v\n%+v", seed, err, in, out)
		}
		slices.Reverse(in.Base.Pods)
		again := Decide(in)
		if diff := cmp.Diff(out.Create, again.Create); diff != "" {
			t.Fatalf("seed %d: the order of the pods decides\n%s", seed, diff)
		}
	}
	if made < 800 || withdrawn < 1000 {
		t.Errorf("%d are made and %d withdrawn: that shows little", made, withdrawn)
	}
}

func FuzzDecide(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b uint64) {
		in := world(rand.New(rand.NewPCG(a, b)))
		if err := check(in, Decide(in)); err != nil {
			t.Fatalf("%v\n%+v", err, in)
		}
	})
}

// Offers of a shape that the collector has too many of, as after a limit was made
// smaller, or as somebody forged them.
func TestMany(t *testing.T) {
	in := site()
	in.Spare = 500
	for i := range 5000 {
		in.Offers = append(in.Offers, Offer{Unit: fmt.Sprint(i), Matched: at(i % 7)})
	}
	out := Decide(in)
	if err := check(in, out); err != nil {
		t.Fatal(err)
	}
	if len(out.Create) != 100 || len(out.Take) != 4900 {
		t.Errorf("%d are made and %d taken back, want the allowance of 100", len(out.Create), len(out.Take))
	}
}
