package lives_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"podstarter/condor/condortest"
	"podstarter/internal/cedar"
)

// call is a call that a shadow hears of every job, the n-th of its name.
type call struct {
	name  string
	nth   int
	begun bool // the job has begun
}

// calls are those of a plain life; see TestPlainLife.
var calls = []call{
	{name: "get_job_info", nth: 1},
	{name: "register_starter_info", nth: 1},
	{name: "get_sec_session_info", nth: 1},
	{name: "register_job_info", nth: 1},
	{name: "request_guidance", nth: 1},
	{name: "request_guidance", nth: 2},
	{name: "begin_execution", nth: 1},
	{name: "register_job_info", nth: 2, begun: true}, // the first that says Running
	{name: "event_notification", nth: 1, begun: true},
	{name: "register_job_info", nth: 3, begun: true}, // the job has ended
	{name: "register_job_info", nth: 4, begun: true}, // its output was sent
	{name: "get_job_info", nth: 2, begun: true},
	{name: "job_exit", nth: 1, begun: true},
}

// firstUpdate is the call that says first that the job runs, unless it ends before.
const firstUpdate = "register_job_info 2"

// soon has it made at once.
func soon() map[string]string { return map[string]string{"STARTER_INITIAL_UPDATE_INTERVAL": "0"} }

func (c call) String() string { return fmt.Sprintf("%s %d", c.name, c.nth) }

type breach struct {
	name   string
	action condortest.Action
}

// cuts are ways in which a connection for calls ends.
var cuts = []breach{
	{"unread", condortest.HangUpUnread()},
	{"unanswered", condortest.HangUp()},
	{"within the answer", condortest.HangUpWithin(7)},
	{"garbage", condortest.Garbage([]byte("\x01\x00\x00\x00\x20no packet that was encrypted with any key"))},
	{"a lie", condortest.Say(func(s *cedar.Stream) { s.PutString("no number") })},
	{"too long", condortest.Say(func(s *cedar.Stream) {
		s.PutInt(0)
		s.PutBytes(make([]byte, 1<<20))
	})},
}

// cutsOf are two of these ways, other ones for each call.
func cutsOf(n int) []breach { return []breach{cuts[n%len(cuts)], cuts[(n+1)%len(cuts)]} }

// TestRefusals has the shadow refuse each call. Most are only to be told to it.
func TestRefusals(t *testing.T) {
	var lives []life
	for _, c := range calls {
		l := life{name: c.String(), script: "exit 0", want: want{last: "job_exit 0 100"}}
		switch {
		case c.name == "register_starter_info", c.name == "get_sec_session_info", c.name == "get_job_info" && c.nth == 1:
			l.want.code, l.want.last = 1, "error 1007/0" // there can be no job
		case c.name == "job_exit":
			l.want.code = 1
		}
		l.plan = func(w *world) { w.shadow.On(c.name, c.nth, condortest.Refuse(syscall.EPERM)) }
		lives = append(lives, l)
	}
	run(t, lives)
}

// TestShadowIsLost ends the connection for calls at each call, and nobody comes back. A job that has begun is killed.
func TestShadowIsLost(t *testing.T) {
	var lives []life
	for n, c := range calls {
		for _, cut := range cutsOf(n) {
			l := life{name: c.String() + "/" + cut.name, script: waits, job: "JobLeaseDuration = 0"}
			l.want = want{code: 2}
			if !c.begun {
				// Two notice the loss: who makes the call, for whom that is an error like
				// any other, and who watches the lease. Either may be the first.
				l.want.orCode = 1
			}
			if c.name == "job_exit" && cut.name != "unread" {
				l.want.last = "job_exit 0 100"
			}
			if c.name == "job_exit" && cut.name == "unread" {
				l.want.last = "job_exit"
			}
			if c.String() == firstUpdate {
				l.knobs = soon()
			}
			l.plan = func(w *world) {
				if c.begun && c.String() != firstUpdate {
					w.tell("end")
				}
				w.shadow.On(c.name, c.nth, cut.action)
			}
			lives = append(lives, l)
		}
	}
	run(t, lives)
}

// TestShadowComesBack ends the connection for calls at each call of a job that has begun,
// and the shadow comes back: the job's exit is answered once.
func TestShadowComesBack(t *testing.T) {
	var lives []life
	for n, c := range calls {
		if !c.begun && c.name != "begin_execution" {
			continue
		}
		for _, cut := range cutsOf(n + 3) {
			l := life{name: c.String() + "/" + cut.name, script: "exit 3", want: want{last: "job_exit 768 100"}}
			l.plan = func(w *world) { w.shadow.On(c.name, c.nth, cut.action) }
			l.live = func(w *world) {
				w.logged("Lost connection to shadow")
				reply, err := w.shadow.Reconnect(w.ctx)
				if err != nil || reply.Text("Result") != "Success" {
					w.Errorf("%v, %v", reply, err)
				}
			}
			if c.name == "job_exit" {
				l.want.again = true
			}
			lives = append(lives, l)
		}
	}
	run(t, lives)
}

// TestReconnect are shadows that come back, and others that may not.
func TestReconnect(t *testing.T) {
	lost := func(w *world) {
		w.runs()
		w.shadow.Disconnect()
		w.logged("Lost connection to shadow")
	}
	back := func(w *world, want string) {
		w.Helper()
		reply, err := w.shadow.Reconnect(w.ctx)
		if err != nil || reply.Text("Result") != want {
			w.Errorf("%v, %v", reply, err)
		}
	}
	run(t, []life{
		{
			name: "a running job", script: waits, knobs: soon(), want: want{last: "job_exit 0 100", log: []string{"Recovered connection to shadow"}},
			live: func(w *world) {
				lost(w)
				back(w, "Success")
				w.startd.WaitN(w, condortest.Call(condortest.Update).With("JobState", "Running"), 2)
				w.tell("end")
			},
		},
		{
			name: "a job that ends meanwhile", script: waits, want: want{last: "job_exit 0 100", log: []string{"the shadow is away"}},
			live: func(w *world) {
				lost(w)
				w.tell("end")
				w.logged("the shadow is away")
				back(w, "Success")
			},
		},
		{
			name: "twice", script: waits, want: want{last: "job_exit 0 100"},
			live: func(w *world) {
				lost(w)
				back(w, "Success")
				w.logged("Recovered connection to shadow")
				w.shadow.Disconnect()
				w.loggedTimes("Lost connection to shadow", 2)
				back(w, "Success")
				w.loggedTimes("Recovered connection to shadow", 2)
				w.tell("end")
			},
		},
		{
			name: "while it is there", script: waits, want: want{last: "job_exit 0 100"},
			live: func(w *world) {
				w.runs()
				back(w, "Success")
				w.tell("end")
			},
		},
		{
			name: "a job that was vacated meanwhile", script: waits, want: want{last: "job_exit 15 107"},
			live: func(w *world) {
				lost(w)
				w.vacate(condortest.Preempted)
				w.logged("the shadow is away")
				back(w, "Success")
			},
		},
		{
			// The hold cannot be told, and is not told again.
			name: "a job that was held meanwhile", script: waits, want: want{last: "job_exit 15 107"},
			live: func(w *world) {
				lost(w)
				w.vacate(softHold)
				w.logged("Failed to ask the shadow to hold the job")
				w.logged("the shadow is away")
				back(w, "Success")
			},
		},
		{
			name: "its lease is over", job: "JobLeaseDuration = 1", script: waits, want: want{code: 2, log: []string{"aborting job execution"}}, live: lost,
		},
		{
			name: "the output breaks again and again", script: "exit 3", want: want{last: "error 12/-1000"},
			plan: func(w *world) {
				w.shadow.On(condortest.OutputAck, 0, condortest.Answer(condortest.Failure(12, 28, "not now", true)))
			},
			live: func(w *world) {
				for n := 1; n <= 4; n++ {
					w.loggedTimes("Lost connection to shadow", n)
					back(w, "Success")
				}
			},
		},
	})
}

// TestTransfersBreak ends the connections for files at each word.
func TestTransfersBreak(t *testing.T) {
	var lives []life
	for _, name := range []string{condortest.Input, condortest.InputItem, condortest.InputAck, condortest.Output, condortest.OutputInfo, condortest.OutputItem, condortest.OutputAck} {
		for _, cut := range cuts[1:4] {
			if cut.name == "within the answer" || name == condortest.OutputItem && cut.name == "garbage" {
				continue // which the double does not do
			}
			l := life{name: name + "/" + cut.name, script: "exit 3"}
			l.plan = func(w *world) { w.shadow.On(name, 1, cut.action) }
			if strings.HasPrefix(name, "input") {
				l.want = want{last: "error 12/-1000", check: (*world).neverBegan}
			} else {
				// Without a lease, no shadow is waited for.
				l.job = "JobLeaseDuration = 0"
				l.want = want{last: "error 13/-1000", check: func(w *world) { w.same(1, w.shadow.Count(condortest.Call("job_termination"))) }}
			}
			lives = append(lives, l)
		}
	}
	run(t, lives)
}

// TestStartd are startds that fail.
func TestStartd(t *testing.T) {
	run(t, []life{
		{
			name: "its socket is closed at once", script: "exit 0", plan: func(w *world) { w.startd.On(condortest.Update, 1, condortest.HangUp()) },
			want: want{last: "job_exit 0 100", deaf: true},
		},
		{
			name: "its socket is closed while the job runs", script: waits, live: func(w *world) {
				w.runs()
				w.activation.CloseUpdates()
				w.tell("end")
			},
			want: want{last: "job_exit 0 100", deaf: true},
		},
		{name: "no sessions", script: "exit 0", machine: func(o *condortest.StartdOptions) { o.NoSessions = true }, want: want{last: "job_exit 0 100"}},
		{name: "an older one", script: "exit 0", machine: func(o *condortest.StartdOptions) { o.Recording = "23.9/plain" }, want: want{last: "job_exit 0 100"}},
		{name: "a slot that says little", script: "exit 0", machine: func(o *condortest.StartdOptions) {
			o.Without = []string{"CondorVersion", "Cpus", "Memory", "Disk", "Machine"}
		}, want: want{last: "job_exit 0 100"}},
	})
}

// TestStall: orders get through to a job while its shadow does not answer.
func TestStall(t *testing.T) {
	released := make(chan struct{})
	run(t, []life{{
		name: "an update", script: waits, knobs: soon(), want: want{last: "job_exit 9 107"},
		plan: func(w *world) { w.shadow.On("register_job_info", 2, condortest.Stall(released)) },
		live: func(w *world) {
			w.runs()
			w.shadow.WaitN(w, condortest.Call("register_job_info"), 2)
			w.vacate(condortest.DeactivatedFast)
			w.logged("Killing the job")
			close(released)
		},
	}})
}
