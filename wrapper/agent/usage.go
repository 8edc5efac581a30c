package agent

import (
	"context"
	"errors"
	"os"
	"time"

	"podstarter/payload"
	"podstarter/payload/procfamily"
)

// tick is the unit of CPU time in /proc, USER_HZ, which is 100 on every
// architecture Go runs on (times(2), sysconf(_SC_CLK_TCK)).
const tick = time.Second / 100

const (
	// lookTime bounds a look at the payload's processes. The payload decides how many there
	// are; the answer covers those seen by then.
	lookTime = 2 * time.Second
	// maxAskers bounds the requests that one look answers. The starter sends one at a time.
	maxAskers = 16
)

// look is a look at the payload in a goroutine beside the loop, one at a time: a payload of
// thousands of processes must not keep the loop from killing it.
type look struct {
	asked []int64 // requests to answer
	run   *run    // the latest run when the look began
	usage payload.ContainerUsage
	stop  context.CancelFunc
	// The goroutine owns these until it is done.
	members []procfamily.Process
	err     error
}

// ask serves a usage request. A request that comes during a look gets the answer of that
// look.
func (a *agent) ask(id int64) {
	switch {
	case a.sweep != nil:
		a.refuse(id, payload.CodeFailed, "a sweep is in progress and comes first")
		return
	case a.look == nil:
		a.beginLook()
	case len(a.look.asked) >= maxAskers:
		a.refuse(id, payload.CodeFailed, "too many usage requests wait for an answer")
		return
	}
	if a.look == nil {
		a.reply(payload.Message{ID: id, Usage: &payload.ContainerUsage{Time: time.Now().UTC()}})
		return
	}
	a.look.asked = append(a.look.asked, id)
}

// beginLook starts a look if there is something to look at. It first notes the usage of
// reaped children: a process that ends meanwhile is missed rather than counted twice.
func (a *agent) beginLook() {
	f := a.target.Load()
	if f == nil {
		return
	}
	l := &look{run: a.run, usage: payload.ContainerUsage{Time: time.Now().UTC()}}
	if r := a.run; r != nil {
		u := &l.usage
		u.UserCPU, u.SystemCPU, u.MaxRSS = r.userCPU, r.systemCPU, r.largestResident()
		u.Cgroup = a.cgroupUsage(r)
	}
	var ctx context.Context
	ctx, l.stop = context.WithTimeout(context.Background(), lookTime)
	a.look = l
	go func() {
		l.members, l.err = f.Look(ctx)
		a.events <- event{looked: l}
	}()
}

// looked answers those who asked.
func (a *agent) looked(l *look) {
	l.stop()
	if l != a.look {
		return // nobody waits for this look any more
	}
	a.look = nil
	if l.err != nil && !errors.Is(l.err, context.DeadlineExceeded) {
		a.log.print("look at the payload: %v", l.err)
	}
	u := &l.usage
	for _, p := range l.members {
		if !p.Dead() {
			u.Processes++
			u.Threads += p.Threads
		}
		u.RSS += p.ResidentPages * int64(os.Getpagesize())
		u.ImageSize += int64(p.VirtualBytes)
		u.UserCPU += time.Duration(p.UserTicks+p.WaitedUserTicks) * tick
		u.SystemCPU += time.Duration(p.SystemTicks+p.WaitedSystemTicks) * tick
	}
	if r := a.run; r != nil && r == l.run {
		if l.err != nil { // the look was incomplete: unseen processes may live
			u.Processes, u.Threads = max(u.Processes, r.processes), max(u.Threads, r.threads)
		}
		r.processes, r.threads = u.Processes, u.Threads
	}
	for _, id := range l.asked {
		a.reply(payload.Message{ID: id, Usage: u})
	}
	if r := a.run; r != nil && r.spec.MaxTasks > 0 && u.Threads > r.spec.MaxTasks {
		a.tooManyTasks(int64(u.Threads)) // for machines without a control group to watch
	}
}

// stopLook cancels a look for something more urgent.
func (a *agent) stopLook(why string) {
	l := a.look
	if l == nil {
		return
	}
	a.look = nil
	l.stop()
	for _, id := range l.asked {
		a.refuse(id, payload.CodeFailed, why)
	}
}
