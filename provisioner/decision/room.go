package decision

import (
	"cmp"
	"slices"
	"time"

	"podstarter/provisioner/resources"
)

// kind is where room comes from, in the order in which jobs take it.
type kind int

const (
	free kind = iota
	soon
	coming
	made
)

// room is a part of a pod in which jobs can run.
type room struct {
	kind kind
	pod  int // index in Input.Pods, or -1 for a pod that is made now
	left resources.Amount
	// time is how long of the horizon it is there.
	time time.Duration
	// group is the first group that took a part of it, or -1.
	group int
	// stuck rooms are those of pods that are stuck.
	stuck bool
}

// takes reports whether a job may count on the room: it is large enough, and what is not
// free already keeps its GPUs for jobs that need them.
func (r *room) takes(fit Fit) bool {
	if fit.NotFor != "" && r.kind >= coming && r.left.GPUs > 0 {
		return false
	}
	return r.left.Fits(fit.Request) && r.left != (resources.Amount{})
}

// rooms has the room of all pods, by shape, in the order in which jobs take it.
type rooms [][]room

// survey finds the room that there is without a new pod, and, apart from it, the
// room of pods that are stuck.
func survey(in *Input) (all, stuck rooms) {
	all, stuck = make(rooms, len(in.Shapes)), make(rooms, len(in.Shapes))
	horizon := in.Now.Add(in.Policy.Horizon)
	for i, p := range in.Pods {
		if p.Shape < 0 || p.Phase == Ending {
			continue
		}
		// A pod that is about to end takes no job that would begin later.
		last := horizon
		if !p.Until.IsZero() && p.Until.Before(last) {
			last = p.Until
		}
		if !p.Until.IsZero() && !p.Until.After(in.Now) {
			continue
		}
		add := func(r room) {
			r.pod, r.group = i, -1
			if r.stuck {
				stuck[p.Shape] = append(stuck[p.Shape], r)
				return
			}
			all[p.Shape] = append(all[p.Shape], r)
		}
		if p.Phase != Reported {
			add(room{kind: coming, stuck: p.Stuck, left: p.Free, time: max(last.Sub(in.Now)-in.Policy.Start, 0)})
			continue
		}
		if p.Free != (resources.Amount{}) {
			add(room{kind: free, left: p.Free, time: last.Sub(in.Now)})
		}
		for _, c := range p.Claims {
			from := c.Until
			if late := in.Now.Sub(from); late > 0 {
				from = in.Now.Add(late) // as much again: the later it is, the less is known of its end
			}
			if c.Until.IsZero() || !from.Before(last) || from.Sub(in.Now) > in.Policy.Patience {
				continue
			}
			add(room{kind: soon, left: c.Amount, time: last.Sub(from)})
		}
	}
	for s := range all {
		// Among pods on their way the older ones first: the younger ones are withdrawn
		// if there are too many.
		slices.SortStableFunc(all[s], func(a, b room) int {
			if c := cmp.Compare(a.kind, b.kind); c != 0 || a.kind != coming {
				return c
			}
			x, y := in.Pods[a.pod], in.Pods[b.pod]
			return cmp.Or(-cmp.Compare(x.Phase, y.Phase), x.Created.Compare(y.Created), cmp.Compare(x.ID, y.ID))
		})
	}
	return all, stuck
}

// turns returns how many jobs one after another a place serves that is there for
// so long. One can always begin.
func turns(there, runtime time.Duration) int {
	if runtime <= 0 {
		return 1
	}
	return max(int(there/runtime), 1)
}
