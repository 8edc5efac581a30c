package lives_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"podstarter/condor/condortest"
	"podstarter/condor/shadow"
	"podstarter/condor/startd"
	"podstarter/internal/cedar"
	"podstarter/payload"
)

// haste is how much time an order leaves a job.
type haste int

const (
	soft haste = iota // it is asked to end
	hard              // it is killed
	cut               // and no output is sent
)

// order is an order that the job end, from any goroutine.
type order struct {
	name  string
	give  func(*world)
	haste haste
	// code and subcode are what a job that did not begin is given back with: the last
	// word without "error". Silent orders are no news to the shadow, which has
	// given them itself.
	code   string
	silent bool
	hold   bool
	remove bool
	dies   bool // the startd
	pod    bool // it comes from the backend, once there is a container
}

// vacating is an order of the startd.
func vacating(v startd.Vacate) func(*world) { return func(w *world) { w.vacate(v) } }

// signalling is a signal of the startd.
func signalling(number int) func(*world) { return func(w *world) { w.signal(number) } }

// commanding is a command of an administrator. The field proves that they have the key.
func commanding(number int) func(*world) {
	return func(w *world) {
		if err := w.activation.Command(w.ctx, number, 1); err != nil {
			w.Errorf("command %d: %v", number, err)
		}
	}
}

// softHold is an order to hold a job that lets it end by itself.
var softHold = startd.Vacate{Reason: "Held by the site", Code: 21, Subcode: 5, Soft: true}

var orders = []order{
	{name: "hold", give: vacating(startd.Vacate{Reason: "Held by the site", Code: 21, Subcode: 5}), haste: hard, code: " 21/5", hold: true},
	{name: "hold softly", give: vacating(softHold), code: " 21/5", hold: true},
	{name: "deactivate", give: vacating(condortest.Deactivated), code: " 1009/0", silent: true},
	{name: "deactivate forcibly", give: vacating(condortest.DeactivatedFast), haste: hard, code: " 1009/0", silent: true},
	{name: "preempt", give: vacating(condortest.Preempted), code: " 1011/0"},
	{name: "preempt forcibly", give: vacating(startd.Vacate{Reason: "Claim preempted", Code: 1011}), haste: hard, code: " 1011/0"},
	{name: "remove", give: signalling(cedar.DCSigRemove), remove: true},
	{name: "SIGTERM", give: signalling(int(syscall.SIGTERM))},
	{name: "SIGQUIT", give: signalling(int(syscall.SIGQUIT)), haste: hard},
	{name: "off peacefully", give: commanding(cedar.DCOffPeaceful)},
	{name: "off fast", give: commanding(cedar.DCOffFast), haste: hard},
	{name: "the startd dies", give: func(w *world) { w.startd.Die(w) }, haste: cut, code: " 1007/0", dies: true},
	{name: "the pod is taken down", give: noticing(payload.Notice{Reason: "The node is drained.", Left: time.Hour}), code: " 1013/0", pod: true},
	{name: "the pod is taken down at once", give: noticing(payload.Notice{Reason: "The node is gone."}), haste: cut, code: " 1013/0", pod: true},
}

// stage is what has become of a job when something happens.
type stage int

const (
	waiting stage = iota // it has not begun
	running
	ended // its output is not sent yet
	sent
)

// moment is when something happens.
type moment struct {
	name  string
	at    string // the call at which, or empty: when the job says that it runs
	nth   int
	stage stage
	early bool // no input has come
	bound bool // there is a container, whose end the starter listens to
}

var moments = []moment{
	{name: "register", at: "register_starter_info", nth: 1, early: true},
	{name: "prepare", at: "register_job_info", nth: 1, early: true},
	{name: "set-up guidance", at: "request_guidance", nth: 1, early: true},
	{name: "input", at: condortest.InputItem, nth: 1},
	{name: "the shadow's report of the input", at: condortest.InputAck, nth: 1},
	{name: "environment guidance", at: "request_guidance", nth: 2},
	{name: "start", at: "begin_execution", nth: 1},
	{name: "running", stage: running, bound: true},
	{name: "end", at: "event_notification", nth: 1, stage: ended},
	{name: "update of the end", at: "register_job_info", nth: 3, stage: ended},
	{name: "output", at: condortest.OutputItem, nth: 1, stage: ended, bound: true},
	{name: "the shadow's report of the output", at: condortest.OutputAck, nth: 1, stage: ended},
	{name: "update of the output", at: "register_job_info", nth: 4, stage: sent},
	{name: "last word", at: "job_exit", nth: 1, stage: sent},
}

// does has something happen at this moment.
func (m moment) does(l *life, do func(*world)) {
	if m.at == "" {
		l.live = func(w *world) {
			w.runs()
			do(w)
		}
		return
	}
	l.plan = func(w *world) {
		w.tell("end") // before it asks
		w.shadow.On(m.at, m.nth, condortest.Do(func(condortest.Heard) { do(w) }))
	}
}

// runs waits until the job runs, and the starter knows it: until then, an order of any kind
// keeps it from its beginning.
func (w *world) runs() {
	w.Helper()
	w.hears("runs")
	w.logged("Create_Process succeeded")
}

// waits is a job that says that it runs, and ends when it is told to.
const waits = "echo runs >@/said; read word <@/told; exit 0"

// TestOrders has every order come at every moment of a job.
func TestOrders(t *testing.T) {
	var lives []life
	for _, o := range orders {
		for _, m := range moments {
			if o.pod && !m.bound {
				continue
			}
			lives = append(lives, orderedLife(o, m))
		}
	}
	run(t, lives)
}

// orderedLife is a life with one order. The rules:
// a job that has not begun does not begin, and is given back with the order's code, unless
// the shadow knows already; a job that runs is ended, and its end is told with the reason,
// or the hold instead; and of a job that has ended, the end is told as it was.
func orderedLife(o order, m moment) life {
	l := life{name: o.name + "/" + m.name, script: waits}
	m.does(&l, func(w *world) {
		o.give(w)
		if !w.log.wait(" reason=", patience) {
			w.Error("the order is not heard")
		}
	})
	if o.haste == cut && m.stage == ended {
		// The shadow's report would make the output count; it does not come before the
		// order has worked.
		plan := l.plan
		l.plan = func(w *world) {
			plan(w)
			w.shadow.On(condortest.OutputAck, 1, condortest.Do(func(condortest.Heard) { w.log.wait("The transfer of output is cut short", patience) }))
		}
	}
	if o.dies {
		l.machine = func(so *condortest.StartdOptions) { so.Mortal = true }
	}
	if o.pod {
		l.backend = withNotices
	}
	l.want = want{last: "job_exit 0 100", deaf: o.dies}
	switch {
	case m.stage == waiting && o.silent:
		l.want.last = ""
	case m.stage == waiting, m.stage == running && o.hold:
		l.want.last = "error" + o.code
	case m.stage == running:
		l.want.last = "job_exit " + map[haste]string{soft: "15", hard: "9", cut: "9"}[o.haste] + " " + map[bool]string{false: "107", true: "102"}[o.remove]
	case m.stage == ended && o.haste == cut:
		l.want.last = "job_exit 0 107" // the output has not come
	}
	if m.stage == waiting {
		l.want.check = func(w *world) {
			w.same(false, strings.Contains(w.log.String(), "Create_Process succeeded"))
			if m.early {
				w.same([]string(nil), w.shadow.Story(condortest.InputAck))
			}
		}
	}
	return l
}

// withNotices lets a test say that the container will be ended.
func withNotices(w *world, b payload.Backend) payload.Backend {
	w.notices = make(chan payload.Notice, 1)
	return &double{Backend: b, ending: w.notices}
}

// noticing says so.
func noticing(n payload.Notice) func(*world) { return func(w *world) { w.notices <- n } }

// TestSuspension suspends and continues a job, at every moment.
func TestSuspension(t *testing.T) {
	var lives []life
	for _, m := range moments {
		l := life{name: m.name, script: waits, want: want{last: "job_exit 0 100"}}
		suspend := func(w *world) {
			w.signal(cedar.DCSigSuspend)
			if !w.log.wait("Told to suspend", patience) {
				w.Error("the order is not heard")
			}
		}
		live := func(w *world) {
			state := condortest.Call("register_job_info").With("JobState", "Suspended")
			w.shadow.Wait(w, state)
			w.startd.Wait(w, condortest.Call(condortest.Update).With("JobState", "Suspended"))
			w.signal(cedar.DCSigContinue)
			w.signal(cedar.DCSigContinue) // startds do it twice
			w.logged("Continuing all jobs")
			w.tell("end")
		}
		m.does(&l, suspend)
		switch {
		case m.stage == running:
			l.live = func(w *world) {
				w.runs()
				suspend(w)
				live(w)
			}
		case m.stage == waiting:
			l.plan = func(w *world) {
				w.shadow.On(m.at, m.nth, condortest.Do(func(condortest.Heard) { suspend(w) }))
			}
			l.live = live
		default:
			l.want.check = func(w *world) {
				w.same(0, w.shadow.Count(condortest.Call("register_job_info").With("JobState", "Suspended")))
			}
		}
		lives = append(lives, l)
	}
	// A suspended job is ended like any other.
	for _, o := range orders {
		if o.dies || o.pod {
			continue
		}
		l := orderedLife(o, moment{name: "suspended", stage: running})
		l.live = func(w *world) {
			w.runs()
			w.signal(cedar.DCSigSuspend)
			w.shadow.Wait(w, condortest.Call("register_job_info").With("JobState", "Suspended"))
			o.give(w)
		}
		lives = append(lives, l)
	}
	run(t, lives)
}

// TestEscalation: an order that allows the job some time, and then another.
func TestEscalation(t *testing.T) {
	const stubborn = "trap '' TERM; echo runs >@/said; while :; do sleep 0.05; done"
	soften := func(w *world) {
		w.runs()
		w.vacate(condortest.Preempted)
		w.logged("Sending SIGTERM to the job")
	}
	run(t, []life{
		{
			name: "soft, then hard", script: stubborn, want: want{last: "job_exit 9 107"},
			live: func(w *world) {
				soften(w)
				w.vacate(startd.Vacate{Reason: "Claim preempted", Code: 1011})
			},
		},
		{
			name: "soft, then hold", script: stubborn, want: want{last: "error 21/5", says: "Held"},
			live: func(w *world) {
				soften(w)
				w.vacate(startd.Vacate{Reason: "Held", Code: 21, Subcode: 5})
			},
		},
		{
			// The startd goes by its own times; the pod has less.
			name: "soft, and the pod ends", script: stubborn, want: want{last: "job_exit 9 107", log: []string{"The job's container is being ended"}}, live: soften,
			backend: func(_ *world, b payload.Backend) payload.Backend {
				notices := make(chan payload.Notice, 1)
				return &double{Backend: b, ending: notices, suspect: func() { notices <- payload.Notice{Reason: "The pod is being deleted.", Left: 2 * time.Second} }}
			},
		},
		doomedLife("the startd shuts down, as the pod ends", startdShutdown, podIsDeleted),
		doomedLife("SIGTERM, as the pod ends", startd.Vacate{Soft: true}, podIsDeleted),
		doomedLife("the claim is preempted, as the pod ends", condortest.Preempted, condortest.Preempted.Reason),
		{
			name: "SIGTERM takes too long", script: stubborn, knobs: map[string]string{"SHUTDOWN_GRACEFUL_TIMEOUT": "1"}, want: want{last: "job_exit 9 107"},
			live: func(w *world) {
				w.runs()
				w.signal(int(syscall.SIGTERM))
			},
		},
		{
			name: "it ends in its own way", script: "trap 'exit 4' TERM; echo runs >@/said; while :; do sleep 0.05; done", want: want{last: "job_exit 1024 107"},
			live: soften,
		},
		{
			name: "a held job leaves children", script: "sleep 1000 & echo $! >@/child; " + waits, want: want{last: "error 21/5", check: func(w *world) { w.sameFile("noted", "job_exit hold\n") }},
			knobs:    map[string]string{"STARTER_JOB_HOOK_KEYWORD": "SITE", "SITE_HOOK_JOB_EXIT": "@/site/job_exit"},
			programs: map[string]string{"job_exit": note + `kill -0 "$(cat @/child)" && echo alive >>@/noted`},
			live: func(w *world) {
				w.runs()
				w.vacate(softHold)
			},
		},
		{
			name: "an older pool", script: waits, want: want{last: "job_exit 15 107"}, live: soften,
			submit:  func(o *condortest.ShadowOptions) { o.Recording = "23.9/plain" },
			machine: func(o *condortest.StartdOptions) { o.Recording = "23.9/plain" },
		},
		{
			name: "it has signals of its own", job: `KillSig = "SIGUSR1"`, script: "trap 'exit 4' USR1; echo runs >@/said; while :; do sleep 0.05; done", want: want{last: "job_exit 1024 107"},
			live: func(w *world) {
				w.runs()
				w.vacate(condortest.Preempted)
			},
		},
		{
			// Its child is asked whether it heard of the end before its parent did. A shell
			// handles the lower signal first.
			name: "the signal is for its main process only", job: `KillSig = "SIGHUP"`, want: want{last: "job_exit 1024 107"},
			script: `trap 'kill -USR1 $child; wait $child; exit 4' HUP
(trap 'heard=yes' HUP; trap 'echo "heard: ${heard-no}" >@/said; exit' USR1; echo runs >@/said; while :; do sleep 0.05; done) & child=$!
while :; do sleep 0.05; done`,
			live: func(w *world) {
				w.runs()
				w.vacate(condortest.Preempted)
				w.hears("heard: no")
			},
		},
		{
			name: "output of an evicted job", job: `WhenToTransferOutput = "ON_EXIT_OR_EVICT"`, script: "echo half >made; echo runs >@/said; while :; do sleep 0.05; done",
			want: want{last: "job_exit 15 107", output: map[string]string{"_condor_stdout": "", "_condor_stderr": "", "made": "half\n"}}, live: soften,
		},
		{
			name: "the pod is taken down, and the job takes too long", script: stubborn, backend: withNotices, want: want{last: "job_exit 9 107"},
			live: func(w *world) {
				w.runs()
				w.notices <- payload.Notice{Reason: "The node is drained.", Left: 2 * time.Second}
			},
		},
	})
}

var startdShutdown = startd.Vacate{Reason: "Startd was shutdown", Code: shadow.VacateStartdShutdown, Soft: true}

const podIsDeleted = "The pod is being deleted."

// doomedLife is a job that ends as soon as it is told to, before the notice of its pod's end has come. Its user reads a reason.
func doomedLife(name string, v startd.Vacate, reason string) life {
	return life{
		name: name, script: waits,
		live: func(w *world) {
			w.runs()
			w.vacate(v)
		},
		backend: func(_ *world, b payload.Backend) payload.Backend { return &double{Backend: b, doom: podIsDeleted} },
		want:    want{last: "job_exit 15 107", check: updated("VacateReason", reason)},
	}
}

// TestSignalsOfAnOldStartd: a startd without reasons only signals. The shadow hears of it,
// unless it has deactivated the claim itself.
func TestSignalsOfAnOldStartd(t *testing.T) {
	old := func(name string, asked int, answer condortest.Action, w want) life {
		w.check = func(w *world) {
			w.neverBegan()
			w.same(asked, w.startd.Count(condortest.Call(condortest.Slot)))
		}
		return life{
			name: name, want: w,
			submit:  func(o *condortest.ShadowOptions) { o.Recording = "23.9/plain" },
			machine: func(o *condortest.StartdOptions) { o.Recording = "23.9/plain" },
			plan: func(w *world) {
				if answer != nil {
					w.startd.On(condortest.Slot, 1, answer)
				}
				w.shadow.On(condortest.InputItem, 1, condortest.Do(func(condortest.Heard) {
					w.signal(cedar.DCSigSoftKill)
					w.log.wait(" reason=", patience)
				}))
			},
		}
	}
	newer := old("a newer startd", 0, nil, want{last: "error"})
	newer.submit, newer.machine = nil, nil
	run(t, []life{
		old("deactivated", 1, nil, want{}),
		old("preempted", 1, condortest.AnswerText(`State = "Preempting"`), want{last: "error"}),
		old("no answer", 1, condortest.HangUp(), want{last: "error"}),
		old("no state", 1, condortest.AnswerText(`Other = 1`), want{last: "error"}),
		newer,
	})
}
