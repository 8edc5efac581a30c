package decision

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/provisioner/backoff"
	"podstarter/provisioner/resources"
)

var (
	start  = time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC)
	one    = resources.Amount{CPUs: 1, Memory: 2048, Disk: 1 << 20}
	four   = resources.Amount{CPUs: 4, Memory: 8192, Disk: 4 << 20}
	gpu    = resources.Amount{CPUs: 4, Memory: 8192, Disk: 4 << 20, GPUs: 1}
	policy = Policy{Patience: 20 * time.Minute, Horizon: 20 * time.Minute, Start: 2 * time.Minute, Settle: 3 * time.Minute}
)

// shapes of two templates, the second of which has GPUs.
const (
	small = iota
	large
	graphics
)

// site is a provisioner with nothing to do; tests add to it.
func site() Input {
	return Input{
		Now: start,
		Templates: []Template{
			{Name: "plain", Allowance: backoff.Unlimited},
			{Name: "gpu", Allowance: backoff.Unlimited},
		},
		Shapes: []Shape{
			small:    {Template: 0, Name: "small", Size: one},
			large:    {Template: 0, Name: "large", Size: four},
			graphics: {Template: 1, Name: "one", Size: gpu},
		},
		Policy: policy,
	}
}

// demand adds a group of jobs that fit the shapes.
func (in *Input) demand(runtime time.Duration, request resources.Amount, shapes []int, users ...Submitter) {
	in.Groups = append(in.Groups, Group{ID: fmt.Sprint(len(in.Groups)), Submitters: users, Runtime: runtime})
	var fits []Fit
	for _, s := range shapes {
		fits = append(fits, Fit{Shape: s, Request: request})
	}
	in.Fits = append(in.Fits, fits)
}

func alice(idle int) Submitter { return Submitter{User: "alice", Idle: idle} }
func bob(idle int) Submitter   { return Submitter{User: "bob", Idle: idle} }

func TestDecide(t *testing.T) {
	all := []int{small, large, graphics}
	for _, c := range []struct {
		name     string
		set      func(in *Input)
		create   []Creation
		withdraw []int
		outcomes []Outcome
	}{
		{
			name: "nothing is wanted",
			set:  func(*Input) {},
		},
		{
			name:     "one job has the pod that it fills",
			set:      func(in *Input) { in.demand(0, one, all, alice(1)) },
			create:   []Creation{{Shape: small, Count: 1, User: "alice"}},
			outcomes: []Outcome{{Idle: 1, New: 1}},
		},
		{
			name:     "many jobs have small pods, each of which ends with its job",
			set:      func(in *Input) { in.demand(0, one, all, alice(9)) },
			create:   []Creation{{Shape: small, Count: 9, User: "alice"}},
			outcomes: []Outcome{{Idle: 9, New: 9}},
		},
		{
			name: "a GPU is for those who need one",
			set: func(in *Input) {
				in.demand(0, gpu, []int{graphics}, alice(2))
				in.demand(0, four, all, alice(1))
			},
			create:   []Creation{{Shape: large, Count: 1, User: "alice", Group: 1}, {Shape: graphics, Count: 2, User: "alice"}},
			outcomes: []Outcome{{Idle: 2, New: 2}, {Idle: 1, New: 1}},
		},
		{
			name: "no GPU for those who need none, whoever else has no room, and none that is on its way for others",
			set: func(in *Input) {
				in.demand(0, one, []int{small, graphics}, alice(3))
				in.demand(0, gpu, []int{graphics}, bob(1))
				in.Fits[0][1] = Fit{Shape: graphics, Request: gpu, NotFor: "it has GPUs"}
				in.Templates[0].MaxPods = 1
				in.Pods = []Pod{{ID: "coming", Shape: graphics, Phase: Pending, Created: start, Free: gpu}}
			},
			create: []Creation{{Shape: small, Count: 1, User: "alice"}},
			outcomes: []Outcome{
				{Idle: 3, New: 1, Waiting: []Reason{{2, "the limit of 1 pods of plain is reached", TemplateLimit}}},
				{Idle: 1, Coming: 1},
			},
		},
		{
			name: "a job that needs no GPU takes one that is free, and waits if there is nothing else",
			set: func(in *Input) {
				in.demand(0, one, []int{graphics}, alice(2))
				in.Fits[0][0] = Fit{Shape: graphics, Request: gpu, NotFor: "it has GPUs"}
				in.Pods = []Pod{{ID: "free", Shape: graphics, Phase: Reported, Free: gpu}, {ID: "stuck", Shape: graphics, Phase: Pending, Stuck: true, Created: start, Free: gpu}}
			},
			outcomes: []Outcome{{Idle: 2, Free: 1, Waiting: []Reason{{1, "it has GPUs", NeedsNoGPU}}}},
		},
		{
			name: "a job that needs no GPU takes what one that needs it leaves",
			set: func(in *Input) {
				in.demand(0, resources.Amount{CPUs: 1, GPUs: 1}, []int{graphics}, alice(1))
				in.demand(0, resources.Amount{CPUs: 1}, []int{graphics}, bob(2))
				in.Fits[1][0].NotFor = "it has GPUs"
			},
			create:   []Creation{{Shape: graphics, Count: 1, User: "alice"}},
			outcomes: []Outcome{{Idle: 1, New: 1}, {Idle: 2, New: 2}},
		},
		{
			name:     "jobs that match nothing get no pod",
			set:      func(in *Input) { in.demand(0, one, nil, alice(1000)) },
			outcomes: []Outcome{{Idle: 1000, Waiting: []Reason{{1000, "no template has slots that match", NoMatch}}}},
		},
		{
			name: "a request that is larger than the shape",
			set: func(in *Input) {
				in.demand(0, gpu, []int{small}, alice(1))
			},
			outcomes: []Outcome{{Idle: 1, Waiting: []Reason{{1, "all shapes that match are smaller than the request", TooLarge}}}},
		},
		{
			name: "free room, then room that comes, then a new pod",
			set: func(in *Input) {
				in.demand(time.Hour, one, []int{small}, alice(4))
				in.Pods = []Pod{
					{ID: "coming", Shape: small, Phase: Pending, Created: start, Free: one},
					{ID: "free", Shape: small, Phase: Reported, Free: one},
					{ID: "busy", Shape: small, Phase: Reported, Claims: []Claim{{Amount: one, Until: start.Add(5 * time.Minute)}}},
					{ID: "long", Shape: small, Phase: Reported, Claims: []Claim{{Amount: one, Until: start.Add(time.Hour)}}},
					{ID: "ending", Shape: small, Phase: Ending, Free: one},
				}
			},
			create:   []Creation{{Shape: small, Count: 1, User: "alice"}},
			outcomes: []Outcome{{Idle: 4, Free: 1, Soon: 1, Coming: 1, New: 1}},
		},
		{
			name: "short jobs share a pod, one after another",
			set: func(in *Input) {
				in.demand(3*time.Minute, one, []int{small}, alice(12)) // 18 minutes after the pod's start: 6 each
			},
			create:   []Creation{{Shape: small, Count: 2, User: "alice"}},
			outcomes: []Outcome{{Idle: 12, New: 12}},
		},
		{
			name: "a job that is a little late leaves room soon",
			set: func(in *Input) {
				in.demand(0, one, []int{small}, alice(1))
				in.Pods = []Pod{{ID: "p", Shape: small, Phase: Reported, Claims: []Claim{{Amount: one, Until: start.Add(-time.Minute)}}}}
			},
			outcomes: []Outcome{{Idle: 1, Soon: 1}},
		},
		{
			name: "nobody waits for a job that is very late",
			set: func(in *Input) {
				in.demand(0, one, []int{small}, alice(1))
				in.Pods = []Pod{{ID: "p", Shape: small, Phase: Reported, Claims: []Claim{{Amount: one, Until: start.Add(-time.Hour)}}}}
			},
			create:   []Creation{{Shape: small, Count: 1, User: "alice"}},
			outcomes: []Outcome{{Idle: 1, New: 1}},
		},
		{
			name: "nobody waits longer than the policy has patience",
			set: func(in *Input) {
				in.Policy.Patience = 4 * time.Minute
				in.demand(0, one, []int{small}, alice(1))
				in.Pods = []Pod{{ID: "p", Shape: small, Phase: Reported, Claims: []Claim{{Amount: one, Until: start.Add(5 * time.Minute)}}}}
			},
			create:   []Creation{{Shape: small, Count: 1, User: "alice"}},
			outcomes: []Outcome{{Idle: 1, New: 1}},
		},
		{
			name: "a pod that is stuck serves nobody who can have another one",
			set: func(in *Input) {
				in.demand(0, one, []int{small, graphics}, alice(1))
				in.Templates[0].Allowance, in.Templates[0].AllowanceWhy = 0, "it waits"
				in.Pods = []Pod{{ID: "p", Shape: small, Phase: Pending, Stuck: true, Created: start, Free: one}}
			},
			create:   []Creation{{Shape: graphics, Count: 1, User: "alice"}},
			outcomes: []Outcome{{Idle: 1, New: 1}},
		},
		{
			name: "a large pod that is stuck does not close smaller shapes",
			set: func(in *Input) {
				in.demand(0, four, []int{large}, alice(2))
				in.demand(0, one, []int{small}, bob(2))
				in.Templates[0].Allowance, in.Templates[0].AllowanceWhy = 1, "one is tried"
				in.Pods = []Pod{{ID: "p", Shape: large, Phase: Pending, Stuck: true, Created: start, Free: four}}
			},
			create: []Creation{{Shape: small, Count: 1, User: "bob", Group: 1}},
			outcomes: []Outcome{
				{Idle: 2, Coming: 1, Waiting: []Reason{{1, "plain: one is tried", BackOff}}},
				{Idle: 2, New: 1, Waiting: []Reason{{1, "plain: one is tried", BackOff}}},
			},
		},
		{
			name: "a pod that is stuck keeps its place where there is no other",
			set: func(in *Input) {
				in.demand(0, one, []int{small}, alice(2))
				in.Pods = []Pod{{ID: "p", Shape: small, Phase: Pending, Stuck: true, Created: start.Add(-time.Hour), Free: one}}
				in.Memory.Surplus = map[string]time.Time{"p": start.Add(-time.Hour)}
			},
			outcomes: []Outcome{{Idle: 2, Coming: 1, Waiting: []Reason{{1, "1 pods of the shape small of plain wait for a node with room", NoNode}}}},
		},
		{
			name: "a pod that its node does not begin closes no shape: another node may be better",
			set: func(in *Input) {
				in.demand(0, one, []int{small}, alice(1))
				in.Templates[0].Allowance, in.Templates[0].AllowanceWhy = 1, "one is tried"
				in.Pods = []Pod{{ID: "p", Shape: small, Phase: Pending, Stuck: true, Placed: true, Created: start.Add(-time.Hour), Free: one}}
			},
			create:   []Creation{{Shape: small, Count: 1, User: "alice"}},
			outcomes: []Outcome{{Idle: 1, New: 1}},
		},
		{
			name: "small jobs leave large pods on their way to the jobs that they were made for",
			set: func(in *Input) {
				in.demand(0, one, []int{large, small}, alice(2))
				in.demand(0, four, []int{large}, alice(2))
				for i, s := range []int{large, large, small, small} {
					in.Pods = append(in.Pods, Pod{ID: fmt.Sprint(i), Shape: s, Phase: Pending, Created: start, Free: in.Shapes[s].Size})
				}
			},
			outcomes: []Outcome{{Idle: 2, Coming: 2}, {Idle: 2, Coming: 2}},
		},
		{
			name: "a pod that soon ends takes nothing that comes later",
			set: func(in *Input) {
				in.demand(0, one, []int{small}, alice(1))
				in.Pods = []Pod{{ID: "p", Shape: small, Phase: Reported, Until: start.Add(time.Minute), Claims: []Claim{{Amount: one, Until: start.Add(5 * time.Minute)}}}}
			},
			create:   []Creation{{Shape: small, Count: 1, User: "alice"}},
			outcomes: []Outcome{{Idle: 1, New: 1}},
		},
		{
			name: "the limit of pods is shared by priority",
			set: func(in *Input) {
				in.demand(0, one, []int{small}, alice(10), bob(10))
				in.Limits.Pods = 6
				in.Users = map[string]User{"alice": {Priority: 500}, "bob": {Priority: 1000}}
			},
			create: []Creation{{Shape: small, Count: 4, User: "alice"}, {Shape: small, Count: 2, User: "bob"}},
			outcomes: []Outcome{{Idle: 20, New: 6, Waiting: []Reason{
				{14, "the limit of 6 pods is reached", PodLimit},
			}}},
		},
		{
			name: "usage counts as share",
			set: func(in *Input) {
				in.demand(0, one, []int{small}, alice(10), bob(10))
				in.Limits.Pods = 6
				in.Users = map[string]User{"alice": {Priority: 500, Usage: 4}, "bob": {Priority: 500}}
			},
			create:   []Creation{{Shape: small, Count: 1, User: "alice"}, {Shape: small, Count: 5, User: "bob"}},
			outcomes: []Outcome{{Idle: 20, New: 6, Waiting: []Reason{{14, "the limit of 6 pods is reached", PodLimit}}}},
		},
		{
			name: "a user's own limit leaves the others theirs",
			set: func(in *Input) {
				in.demand(0, one, []int{small}, alice(10), bob(3))
				in.Limits.PerUser = 2
				in.Users = map[string]User{"alice": {Pods: 1}}
			},
			create:   []Creation{{Shape: small, Count: 1, User: "alice"}, {Shape: small, Count: 2, User: "bob"}},
			outcomes: []Outcome{{Idle: 13, New: 3, Waiting: []Reason{{10, "the user's limit of 2 pods is reached", UserLimit}}}},
		},
		{
			name: "limits of shape and template",
			set: func(in *Input) {
				in.demand(0, one, []int{small, large}, alice(30))
				in.Shapes[small].MaxPods = 1
				in.Templates[0].MaxComing = 3
			},
			create:   []Creation{{Shape: small, Count: 1, User: "alice"}, {Shape: large, Count: 2, User: "alice"}},
			outcomes: []Outcome{{Idle: 30, New: 9, Waiting: []Reason{{21, "the limit of 1 pods of the shape small of plain is reached; 3 pods of plain have not reported yet, which is its limit", ShapeLimit}}}},
		},
		{
			name: "a template that failed waits, and another one serves",
			set: func(in *Input) {
				in.demand(0, four, []int{large, graphics}, alice(1))
				in.Templates[0].Allowance, in.Templates[0].AllowanceWhy = 0, "it waits"
			},
			create:   []Creation{{Shape: graphics, Count: 1, User: "alice"}},
			outcomes: []Outcome{{Idle: 1, New: 1}},
		},
		{
			name: "a new template is tried with few",
			set: func(in *Input) {
				in.demand(0, one, []int{small}, alice(50))
				in.Templates[0].Allowance, in.Templates[0].AllowanceWhy = 3, "it is new"
				in.Pods = []Pod{{ID: "p", Shape: small, Phase: Starting, Created: start, Free: one}}
			},
			create:   []Creation{{Shape: small, Count: 2, User: "alice"}},
			outcomes: []Outcome{{Idle: 50, Coming: 1, New: 2, Waiting: []Reason{{47, "plain: it is new", BackOff}}}},
		},
		{
			name: "the ramp",
			set: func(in *Input) {
				in.demand(0, one, []int{small}, alice(41))
				in.Policy.Ramp = Ramp{First: 1, Part: 0.25}
				in.Pods = []Pod{{ID: "p", Shape: small, Phase: Pending, Created: start, Free: one}}
			},
			create:   []Creation{{Shape: small, Count: 10, User: "alice"}},
			outcomes: []Outcome{{Idle: 41, Coming: 1, New: 10, Waiting: []Reason{{30, "11 pods are on their way for 41 such jobs, more follow when they have come", Ramping}}}},
		},
		{
			name: "what ranks higher is taken first",
			set: func(in *Input) {
				in.demand(0, one, []int{small, large}, alice(1))
				in.Fits[0][1].Rank = 1
			},
			create:   []Creation{{Shape: large, Count: 1, User: "alice"}},
			outcomes: []Outcome{{Idle: 1, New: 1}},
		},
		{
			name: "surplus that has lasted goes, the youngest first, and closes its shape for a while",
			set: func(in *Input) {
				in.demand(0, one, []int{small}, alice(1))
				for i := range 3 {
					id := fmt.Sprint(i)
					in.Pods = append(in.Pods, Pod{ID: id, Shape: small, Phase: Pending, Created: start.Add(time.Duration(i-20) * time.Minute), Free: one})
				}
				in.Memory.Surplus = map[string]time.Time{"0": start.Add(-time.Hour), "1": start.Add(-time.Minute), "2": start.Add(-4 * time.Minute)}
			},
			withdraw: []int{2},
			outcomes: []Outcome{{Idle: 1, Coming: 1}},
		},
		{
			name: "nothing is withdrawn while an access point does not answer",
			set: func(in *Input) {
				in.Pods = []Pod{{ID: "p", Shape: small, Phase: Pending, Created: start.Add(-time.Hour), Free: one}}
				in.Memory.Surplus = map[string]time.Time{"p": start.Add(-time.Hour)}
				in.Partial = true
			},
		},
		{
			name: "pods that run are left alone",
			set: func(in *Input) {
				in.Pods = []Pod{
					{ID: "a", Shape: small, Phase: Starting, Created: start.Add(-time.Hour), Free: one},
					{ID: "b", Shape: small, Phase: Reported, Created: start.Add(-time.Hour), Free: one},
				}
				in.Memory.Surplus = map[string]time.Time{"a": start.Add(-time.Hour), "b": start.Add(-time.Hour)}
			},
		},
		{
			name: "a shape from which a pod was just withdrawn is closed",
			set: func(in *Input) {
				in.demand(0, one, []int{small}, alice(1))
				in.Memory.Withdrawn = map[string]time.Time{"plain/small": start.Add(-time.Minute)}
			},
			outcomes: []Outcome{{Idle: 1, Waiting: []Reason{{1, "a pod of the shape small of plain was withdrawn less than 3m0s ago", JustWithdrawn}}}},
		},
		{
			name: "a pod of a shape that is no longer configured counts, and goes if it is pending",
			set: func(in *Input) {
				in.demand(0, one, []int{small}, alice(1))
				in.Limits.Pods = 1
				in.Pods = []Pod{{ID: "p", Shape: -1, Phase: Pending, Created: start.Add(-time.Hour)}}
				in.Memory.Surplus = map[string]time.Time{"p": start.Add(-time.Hour)}
			},
			withdraw: []int{0},
			outcomes: []Outcome{{Idle: 1, Waiting: []Reason{{1, "the limit of 1 pods is reached", PodLimit}}}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := site()
			c.set(&in)
			out := Decide(in)
			if diff := cmp.Diff(c.create, out.Create); diff != "" {
				t.Errorf("created: -want +got\n%s", diff)
			}
			var gone []int
			for _, w := range out.Withdraw {
				gone = append(gone, w.Pod)
			}
			if diff := cmp.Diff(c.withdraw, gone); diff != "" {
				t.Errorf("withdrawn: -want +got\n%s", diff)
			}
			if len(c.outcomes) > 0 || len(out.Groups) > 0 {
				if diff := cmp.Diff(c.outcomes, out.Groups); diff != "" {
					t.Errorf("outcomes: -want +got\n%s", diff)
				}
			}
		})
	}
}

// What is remembered makes a pod go when its time has come, and is forgotten with
// the pod.
func TestMemory(t *testing.T) {
	in := site()
	in.Pods = []Pod{{ID: "p", Shape: small, Phase: Pending, Created: start, Free: one}}
	for minute := range 5 {
		in.Now = start.Add(time.Duration(minute) * time.Minute)
		out := Decide(in)
		if want := minute == 3; want != (len(out.Withdraw) == 1) {
			t.Fatalf("minute %d: %d pods are withdrawn", minute, len(out.Withdraw))
		}
		in.Memory = out.Memory
		if len(out.Withdraw) == 1 {
			if !strings.Contains(out.Withdraw[0].Why, "3m0s") {
				t.Errorf("the reason is %q", out.Withdraw[0].Why)
			}
			in.Pods = nil
			if diff := cmp.Diff(map[string]time.Time{}, in.Memory.Surplus); diff != "" {
				t.Errorf("the pod is still remembered: %s", diff)
			}
			break
		}
	}
	in.Now = in.Now.Add(policy.Settle)
	if diff := cmp.Diff(map[string]time.Time{}, Decide(in).Memory.Withdrawn); diff != "" {
		t.Errorf("the shape is still remembered: %s", diff)
	}
}

// A clock that was set back by a day must not keep pods or shapes for a day.
func TestClockSetBack(t *testing.T) {
	in := site()
	in.demand(0, one, []int{small}, alice(1))
	in.Pods = []Pod{{ID: "p", Shape: large, Phase: Pending, Created: start.Add(-time.Hour), Free: four}}
	in.Memory = Memory{
		Surplus:   map[string]time.Time{"p": start.Add(24 * time.Hour)},
		Withdrawn: map[string]time.Time{"plain/small": start.Add(24 * time.Hour)},
	}
	out := Decide(in)
	if len(out.Create) != 1 {
		t.Errorf("the shape is closed by a time that lies ahead: %v", out.Groups)
	}
	if got := out.Memory.Surplus["p"]; !got.Equal(start) {
		t.Errorf("the pod counts as surplus since %s, want %s", got, start)
	}
}
