package lives_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"podstarter/condor/condortest"
	"podstarter/payload"
)

// TestBackend are backends that fail as pods do.
func TestBackend(t *testing.T) {
	verdict := func(blame payload.Blame) error {
		return &payload.Verdict{Blame: blame, Subcode: 3, Reason: "ErrImagePull", Message: "there is no such image"}
	}
	fails := func(err error) func(*world, payload.Backend) payload.Backend {
		return func(_ *world, b payload.Backend) payload.Backend {
			return &double{Backend: b, bind: func() error { return err }}
		}
	}
	// health is what is known of the pod afterwards: the attributes that it is advertised with.
	sick := func(want bool) func(*world) {
		return func(w *world) {
			w.neverBegan()
			h, err := w.options.Pod.Health()
			w.must(err)
			w.same(want, h.Sick != nil)
		}
	}
	loses := func(err error) (func(*world, payload.Backend) payload.Backend, func(*world)) {
		lost := make(chan error, 1)
		return func(_ *world, b payload.Backend) payload.Backend { return &double{Backend: b, lost: lost} }, func(w *world) {
			w.runs()
			lost <- err
		}
	}
	evicted, evict := loses(&payload.Verdict{Blame: payload.Site, Reason: "Evicted", Message: "the pod was evicted"})
	exhausted, exhaust := loses(&payload.Verdict{Reason: payload.ReasonOutOfMemory, Message: "the container was killed"})
	run(t, []life{
		{name: "the user's image", backend: fails(verdict(payload.User)), want: want{last: "error 35/3", says: "no such image", check: sick(false)}},
		{name: "the site's trouble", backend: fails(verdict(payload.Site)), want: want{last: "error 1021/0", says: "ErrImagePull", check: sick(false)}},
		{name: "nobody's trouble", backend: fails(verdict(payload.Unknown)), want: want{last: "error 1021/0", check: sick(false)}},
		{name: "the pod's trouble", backend: fails(verdict(payload.Pilot)), want: want{last: "error 1021/0", check: sick(true)}},
		{name: "something else", backend: fails(errors.New("no idea")), want: want{last: "error 1021/0", says: "no idea", check: sick(false)}},
		{
			name: "no lease", want: want{last: "error 1021/0", says: "all taken", check: (*world).neverBegan},
			backend: func(_ *world, b payload.Backend) payload.Backend {
				return &double{Backend: b, lease: func() error { return errors.New("all taken") }}
			},
		},
		{name: "the container is lost", script: waits, backend: evicted, live: evict, want: want{last: "error 1021/0", says: "the pod was evicted"}},
		{name: "the container is lost for want of memory", script: waits, backend: exhausted, live: exhaust, want: want{last: "error 34/102", says: "the container was killed"}},
		{
			name: "the wrapper is killed", script: waits, live: func(w *world) {
				w.runs()
				w.killWrapper()
			},
			want: want{last: "error 1021/0", says: "ended under the running job"},
		},
		{
			name: "the wrapper is killed under a job that is made to end", script: "trap '' TERM; " + waits, live: func(w *world) {
				w.runs()
				w.vacate(condortest.Preempted)
				w.logged("Sending SIGTERM to the job")
				w.killWrapper()
			},
			want: want{last: "error 1011/0"},
		},
		{
			name: "the wrapper is killed while the job prepares itself", knobs: map[string]string{"STARTER_ALLOW_JOB_PRE_AND_POST_CMD": "true"},
			job: "PreCmd = \"pre\"\nTransferInput = \"pre\"", files: map[string]string{"pre": "#!/bin/sh\necho runs >@/said; read word <@/told\n"}, live: func(w *world) {
				w.hears("runs")
				w.killWrapper()
			},
			want: want{last: "error 1021/0", says: "ended under the running job", check: (*world).neverBegan},
		},
		{
			name: "the sandbox cannot be made", knobs: map[string]string{"EXECUTE": "@/nowhere"}, plan: func(w *world) {
				w.must(os.WriteFile(filepath.Join(w.dir, "nowhere"), nil, 0o600))
			},
			want: want{last: "error 1024/0", check: (*world).neverBegan},
		},
	})
}

// TestMemory are jobs that use more memory than they may, where the kernel says so.
func TestMemory(t *testing.T) {
	oom := func(w *world, b payload.Backend) payload.Backend { return &double{Backend: b, exit: outOfMemory} }
	// watched is a job whose container ends when the kernel has killed everything in it. kills are
	// those before and after its start.
	watched := func(reason string, kills [2]int) (func(*world, payload.Backend) payload.Backend, func(*world)) {
		lost := make(chan error, 1)
		return func(w *world, b payload.Backend) payload.Backend {
				w.uses(6, 10, 0)
				d := &double{Backend: b, lost: lost, memory: w.group()}
				w.uses(6, 10, kills[0]) // by what ran in the container first
				return d
			}, func(w *world) {
				w.runs()
				w.uses(250, 256, kills[1])
				lost <- &payload.Verdict{Reason: reason, Message: "the container ended", MemoryLimit: 1 << 30}
			}
	}
	killed, kill := watched(payload.ReasonContainerEnd, [2]int{0, 3})
	earlier, end := watched(payload.ReasonContainerEnd, [2]int{3, 3})
	evicted, evict := watched("Evicted", [2]int{0, 3})
	const says = "memory limit of 256 megabytes. Last measured usage: 256 megabytes.  Consider resubmitting with a higher request_memory. (244 megabytes of it were the job's own"
	run(t, []life{
		{name: "only the control group tells", script: waits, backend: killed, live: kill, want: want{last: "error 34/102", says: says}},
		{name: "the control group tells of an earlier job", script: waits, backend: earlier, live: end, want: want{last: "error 1021/0", says: "the container ended"}},
		{name: "the pod's status knows better", script: waits, backend: evicted, live: evict, want: want{last: "error 1021/0", says: "the container ended"}},
		{name: "held", script: "kill -9 $$", backend: oom, want: want{last: "error 34/102", says: "memory"}},
		{name: "ordered to end", script: waits, backend: oom, want: want{last: "job_exit 15 107"}, live: func(w *world) {
			w.runs()
			w.vacate(condortest.Preempted)
		}},
	})
}

// TestPanics: whatever panics, the job goes back to the queue, and all is tidied up. Panics
// are told to the one activation of a process, so that one life follows the other.
func TestPanics(t *testing.T) {
	foolish := func() { panic("a bug that nobody has found yet") }
	with := func(change func(*double)) func(*world, payload.Backend) payload.Backend {
		return func(_ *world, b payload.Backend) payload.Backend {
			d := &double{Backend: b}
			change(d)
			return d
		}
	}
	gone := want{code: 3, last: "error 1007/0", says: "a bug that nobody has found yet", log: []string{"Internal error, please report it"}}
	for _, l := range []life{
		{name: "lease", backend: with(func(d *double) {
			d.lease = func() error {
				foolish()
				return nil
			}
		}), want: gone},
		{name: "bind", backend: with(func(d *double) {
			d.bind = func() error {
				foolish()
				return nil
			}
		}), want: gone},
		{name: "start", backend: with(func(d *double) { d.start = foolish }), want: gone},
		{name: "signal", script: waits, backend: with(func(d *double) { d.signal = foolish }), want: gone, live: func(w *world) {
			w.runs()
			w.vacate(condortest.Preempted)
		}},
		{name: "usage", script: waits, backend: with(func(d *double) { d.usage = foolish }), want: want{code: 3, last: "error 1007/0"}},
	} {
		before := possessions()
		t.Run(l.name, l.run)
		if left := before.left(); len(left) > 0 {
			t.Errorf("left in this process:\n%s", strings.Join(left, "\n"))
		}
	}
}

// killWrapper kills the wrapper. The kernel ends the others then, when it comes to it.
func (w *world) killWrapper() {
	w.Helper()
	wrapper := 0
	for _, name := range processesOf(w.dir) {
		pid, err := strconv.Atoi(name)
		w.must(err)
		if strings.HasPrefix(processText(name, "cmdline"), "condor_pod_wrapper ") {
			wrapper = pid
		}
		fd, err := unix.PidfdOpen(pid, 0)
		if errors.Is(err, unix.ESRCH) {
			continue
		}
		w.must(err)
		w.Cleanup(func() { unix.Close(fd) })
		w.orphans = append(w.orphans, fd)
	}
	if wrapper == 0 {
		w.Fatal("there is no wrapper")
	}
	w.must(unix.Kill(wrapper, unix.SIGKILL))
}
