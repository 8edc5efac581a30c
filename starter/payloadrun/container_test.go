package payloadrun_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/condor/shadow"
	"podstarter/payload"
	"podstarter/payload/memcg"
	"podstarter/rescue"
	"podstarter/starter/failure"
	"podstarter/starter/orders"
	"podstarter/starter/payloadrun"
)

var quiet = slog.New(slog.DiscardHandler)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wrapper is one that does what a test says.
type wrapper struct {
	payload.Wrapper // nothing else is asked of it
	shares          bool
	pid             int
	startErr        error
	waitErr         error
	sweepErr        error
	exit            payload.Exit
	hang            bool // what was started does not end by itself
	mounts          bool // it has mounts of its own
	oom             bool // its control group shows a kill for want of memory

	mu     sync.Mutex
	sweeps int
	specs  []payload.Spec
}

func (w *wrapper) Hello() payload.Hello { return payload.Hello{PID: w.pid, OwnMounts: w.mounts} }
func (w *wrapper) SeenPID() int {
	if !w.shares {
		return 0
	}
	return w.pid
}

func (w *wrapper) Start(_ context.Context, s payload.Spec, _ ...*os.File) (payload.Started, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.specs = append(w.specs, s)
	return payload.Started{PID: 4711}, w.startErr
}

func (w *wrapper) Wait(ctx context.Context) (payload.Exit, error) {
	if w.hang {
		<-ctx.Done()
		return payload.Exit{}, ctx.Err()
	}
	return w.exit, w.waitErr
}

func (w *wrapper) Memory() *memcg.Files { return nil }

func (w *wrapper) Sweep(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err() // nothing is asked of a wrapper then
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sweeps++
	return w.sweepErr
}

func (w *wrapper) swept() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sweeps
}

// bound is a container with that wrapper.
type bound struct {
	payload.Container
	w    *wrapper
	lost chan error
}

func (b bound) Client() payload.Wrapper { return b.w }
func (b bound) Lost() <-chan error      { return b.lost }
func (b bound) PlatformEnv() []string   { return []string{"POD_*"} }
func (b bound) Command(context.Context) (payload.ImageCommand, error) {
	return payload.ImageCommand{}, nil
}

// container is the payload container of a test, and how often something was started.
func container(t *testing.T, w *wrapper) (*payloadrun.Container, *orders.Orders, chan error, *int) {
	t.Helper()
	o, lost, started := orders.New(quiet), make(chan error, 1), new(int)
	c := payloadrun.NewContainer(bound{w: w, lost: lost}, payloadrun.Options{
		UID: nobodys, GID: nobodys, MaxTasks: 5, Orders: o, Started: func() { *started++ }, Log: quiet,
		OutOfMemory: func(_ int64, cause error) error {
			return failure.New(shadow.HoldJobOutOfResources, shadow.OutOfMemory, fmt.Errorf("it had 1 MB. %w", cause))
		},
		KernelKilled: func() bool { return w.oom },
	})
	t.Cleanup(c.Close)
	return c, o, lost, started
}

// TestSweep: a sweep counts when it has proven that nothing is left, once, until
// something is started again.
func TestSweep(t *testing.T) {
	w := &wrapper{sweepErr: errors.New("no answer")}
	c, _, _, _ := container(t, w)
	if err := c.Sweep(t.Context()); !errors.Is(err, w.sweepErr) || c.Vacant() {
		t.Errorf("%v, vacant: %v", err, c.Vacant())
	}
	w.sweepErr = payload.ErrLost
	if err := c.Sweep(t.Context()); !errors.Is(err, payload.ErrLost) || c.Vacant() {
		t.Errorf("the wrapper is gone, and nobody else can look: %v, vacant: %v", err, c.Vacant())
	}
	w.sweepErr = nil
	for range 2 {
		if err := c.Sweep(t.Context()); err != nil || !c.Vacant() {
			t.Errorf("%v, vacant: %v", err, c.Vacant())
		}
	}
	if w.swept() != 3 {
		t.Errorf("%d sweeps, want 3", w.swept())
	}
	if _, err := c.Start(t.Context(), payload.Spec{}); err != nil || c.Vacant() {
		t.Errorf("after a start: %v, vacant: %v", err, c.Vacant())
	}
	must(t, c.Sweep(t.Context()))
	if w.swept() != 4 {
		t.Errorf("%d sweeps, want 4", w.swept())
	}
	var none *payloadrun.Container
	if err := none.Sweep(t.Context()); err != nil || none.Vacant() || none.Table() != nil {
		t.Errorf("without a container: %v", err)
	}
	none.Close()
}

// nobodys is a user that no other test has, however many run at a time.
var nobodys = 77_000_000 + os.Getpid()

// child is a process of that user, which hangs.
func child(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/bin/sleep", "3600")
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(nobodys), Gid: uint32(nobodys)}}
	}
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd
}

// TestSweepWithATable: where the starter sees the processes, its own look is the last
// word: a wrapper that is gone is forgiven if nothing is left, and no other error is.
func TestSweepWithATable(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("processes of another user need root")
	}
	for name, tt := range map[string]struct {
		err    error
		vacant bool
	}{
		"the wrapper has swept": {nil, true},
		"the wrapper is gone":   {payload.ErrLost, true},
		"the wrapper fails":     {errors.New("not swept"), false},
	} {
		t.Run(name, func(t *testing.T) {
			w := &wrapper{shares: true, pid: os.Getpid(), sweepErr: tt.err}
			c, _, _, _ := container(t, w)
			if c.Table() == nil {
				t.Fatal("the starter does not see the processes")
			}
			left := child(t)
			if err := c.Sweep(t.Context()); (err == nil) != tt.vacant || c.Vacant() != tt.vacant {
				t.Errorf("%v, vacant: %v", err, c.Vacant())
			}
			if err := left.Wait(); err == nil {
				t.Error("what was left ended by itself")
			}
			before := c.Table()
			c.NextRun()
			if c.Table() == before || c.Table() == nil {
				t.Error("another run has the table of the one before")
			}
		})
	}
}

// TestKill: wrapper and starter kill the payload, each without waiting for the other.
func TestKill(t *testing.T) {
	var group rescue.Group
	w := &wrapper{sweepErr: errors.New("no answer")}
	c, _, _, _ := container(t, w)
	c.Kill(t.Context(), &group)
	group.Wait()
	if w.swept() != 1 {
		t.Error("the wrapper is not asked")
	}
	if os.Getuid() != 0 {
		return // processes of another user need root
	}
	seen, _, _, _ := container(t, &wrapper{shares: true, pid: os.Getpid(), sweepErr: errors.New("no CPU time")})
	left := child(t)
	seen.Kill(t.Context(), &group)
	if err := left.Wait(); err == nil {
		t.Error("it ended by itself")
	}
	group.Wait()
}

// TestRun: a program that runs in the container ends with an exit, or with what that
// means to the job.
func TestRun(t *testing.T) {
	notThere := &payload.StartError{Stage: payload.StageExec, Path: "/x", Errno: syscall.ENOENT}
	for name, tt := range map[string]struct {
		w       *wrapper
		code    int
		subcode int
		words   string
		sweeps  int
		began   int
	}{
		"well":          {w: &wrapper{exit: payload.Exit{WaitStatus: 7 << 8}}, began: 1},
		"not there":     {w: &wrapper{startErr: notThere}, code: shadow.VacateStarterError, words: "/x", began: 1},
		"refused":       {w: &wrapper{startErr: &payload.RequestError{Op: payload.OpStart, Code: payload.CodeNotEmpty}}, code: shadow.VacateContainerError, words: "failed to start a program"},
		"lost":          {w: &wrapper{waitErr: payload.ErrLost}, code: shadow.VacateContainerError, words: "ended under the running job: the node died", sweeps: 1, began: 1},
		"lost at start": {w: &wrapper{startErr: payload.ErrLost}, code: shadow.VacateContainerError, words: "ended under the running job: the node died"},
		"too many":      {w: &wrapper{exit: payload.Exit{Killed: payload.KilledTasks}}, code: shadow.HoldJobOutOfResources, subcode: int(syscall.EAGAIN), words: "more than 5 processes", began: 1},
		"killed":        {w: &wrapper{exit: payload.Exit{Killed: payload.KilledSweep}}, code: shadow.VacateContainerError, words: "the wrapper killed it", began: 1},
	} {
		t.Run(name, func(t *testing.T) {
			c, _, lost, started := container(t, tt.w)
			lost <- errors.New("the node died")
			exit, pid, err := c.Run(t.Context(), payload.Spec{Path: "/x"})
			if *started != tt.began || tt.w.swept() != tt.sweeps {
				t.Errorf("%d starts, %d sweeps, want %d, %d", *started, tt.w.swept(), tt.began, tt.sweeps)
			}
			if tt.code == 0 {
				if err != nil || pid != 4711 || exit.WaitStatus != 7<<8 {
					t.Errorf("%v, %d, %v", exit, pid, err)
				}
				return
			}
			if f := failure.Of(err); f.Code != tt.code || f.Subcode != tt.subcode || !strings.Contains(err.Error(), tt.words) {
				t.Errorf("%d/%d %v, want %d/%d %q", f.Code, f.Subcode, err, tt.code, tt.subcode, tt.words)
			}
		})
	}
}

// TestRunIsCut: a program whose time is over is killed, and the reason is that of the
// end.
func TestRunIsCut(t *testing.T) {
	why := errors.New("ended by order")
	for _, sweepErr := range []error{nil, errors.New("no answer")} {
		w := &wrapper{hang: true, sweepErr: sweepErr}
		c, _, _, _ := container(t, w)
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		if _, _, err := c.Run(ctx, payload.Spec{}); !errors.Is(err, why) || w.swept() != 1 {
			t.Errorf("%v, %d sweeps", err, w.swept())
		}
	}
}

// TestUnknownIsNeverSuccess: whatever ended a payload container under its job, the job is
// given back or held, unless an order to end came before.
func TestUnknownIsNeverSuccess(t *testing.T) {
	causes := []error{payload.ErrLost, errors.New("anything"), fmt.Errorf("wrapped: %w", payload.ErrNoRecord), errors.New("")}
	for _, blame := range []payload.Blame{payload.Unknown, payload.User, payload.Site, payload.Pilot, payload.Blame(77)} {
		for _, reason := range []string{"", "Completed", "Evicted", "ContainerEnded", payload.ReasonOutOfMemory} {
			for subcode := range 3 {
				causes = append(causes, &payload.Verdict{Blame: blame, Reason: reason, Subcode: subcode, Message: "it is gone"})
			}
		}
	}
	for _, cause := range causes {
		c, o, _, _ := container(t, &wrapper{})
		v := (*payload.Verdict)(nil)
		held := errors.As(cause, &v) && v.Reason == payload.ReasonOutOfMemory
		err := c.LostUnder(cause)
		f := failure.Of(err)
		if err == nil || f.Code == 0 || held == shadow.ShouldVacate(f.Code, f.Subcode) || held != strings.Contains(err.Error(), "it had 1 MB.") {
			t.Errorf("%v leads to %d/%d %q, held must be %v", cause, f.Code, f.Subcode, f, held)
		}
		o.End(orders.Demand{Reason: "vacated", Code: shadow.VacateStartdVacateCommand})
		if err := c.LostUnder(cause); !errors.Is(err, orders.ErrEnded) {
			t.Errorf("%v after an order: %v", cause, err)
		}
	}
}

// TestLostForMemory: the container's own figures count where the pod's status says nothing
// else, and the limit that the backend knows is passed on.
func TestLostForMemory(t *testing.T) {
	ended := &payload.Verdict{Reason: payload.ReasonContainerEnd, MemoryLimit: 5}
	for name, tt := range map[string]struct {
		cause error
		oom   bool
		held  bool
		limit int64
	}{
		"the status says so":              {cause: &payload.Verdict{Reason: payload.ReasonOutOfMemory, MemoryLimit: 7}, held: true, limit: 7},
		"both":                            {cause: fmt.Errorf("lost: %w", &payload.Verdict{Reason: payload.ReasonOutOfMemory, MemoryLimit: 7}), oom: true, held: true, limit: 7},
		"only the control group":          {cause: ended, oom: true, held: true, limit: 5},
		"the status cannot be read":       {cause: fmt.Errorf("wait: %w", payload.ErrLost), oom: true, held: true},
		"nobody":                          {cause: ended},
		"the status knows another reason": {cause: &payload.Verdict{Reason: "Evicted"}, oom: true},
		"the wrapper left":                {cause: errors.New("the wrapper killed the job: leaving"), oom: true},
	} {
		t.Run(name, func(t *testing.T) {
			c, _, _, _ := container(t, &wrapper{oom: tt.oom})
			limit := int64(0)
			held := c.OutOfMemory
			c.OutOfMemory = func(l int64, cause error) error {
				limit = l
				return held(l, cause)
			}
			f := failure.Of(c.LostUnder(tt.cause))
			if is := f.Code == shadow.HoldJobOutOfResources; is != tt.held || limit != tt.limit || !errors.Is(f, tt.cause) {
				t.Errorf("%d/%d %q with a limit of %d", f.Code, f.Subcode, f, limit)
			}
		})
	}
}

// TestWhyLost: the reason of a container's end comes after the end of its connection. It
// is waited for, but not for long, and not after an order that allows no delay.
func TestWhyLost(t *testing.T) {
	verdict := &payload.Verdict{Blame: payload.User, Reason: payload.ReasonOutOfMemory}
	for name, tt := range map[string]struct {
		say  time.Duration // when the backend knows; 0: never
		end  time.Duration // when the order comes; 0: never
		want time.Duration
		err  error
	}{
		"soon":           {say: time.Second, want: time.Second, err: verdict},
		"never":          {want: 20 * time.Second, err: payload.ErrLost},
		"there is haste": {say: 3 * time.Second, end: 2 * time.Second, want: 2 * time.Second, err: payload.ErrLost},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, o, lost, _ := container(t, &wrapper{})
				began := time.Now()
				if tt.say > 0 {
					time.AfterFunc(tt.say, func() { lost <- verdict })
				}
				if tt.end > 0 {
					time.AfterFunc(tt.end, func() { o.End(orders.Demand{Reason: "at once"}) })
				}
				if err := c.WhyLost(t.Context(), payload.ErrLost); !errors.Is(err, tt.err) || time.Since(began) != tt.want {
					t.Errorf("%v after %s, want %v after %s", err, time.Since(began), tt.err, tt.want)
				}
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				if err := c.WhyLost(ctx, payload.ErrLost); name == "never" && !errors.Is(err, payload.ErrLost) {
					t.Error(err)
				}
			})
		})
	}
}

// TestRefusedSlot: if the wrapper refuses to start a program because an earlier job left
// something in the container, the slot rests.
func TestRefusedSlot(t *testing.T) {
	c, _, _, _ := container(t, &wrapper{startErr: &payload.RequestError{Op: payload.OpStart, Code: payload.CodeNotEmpty, Message: "m"}})
	_, _, err := c.Run(t.Context(), payload.Spec{})
	if blame, _ := failure.Blame(err, false); blame != payload.Site {
		t.Errorf("blame %v of %v, want the site", blame, err)
	}
}

// TestCourse of a run: an order counts for more than what the job did.
func TestCourse(t *testing.T) {
	for name, tt := range map[string]struct {
		becomes []payloadrun.Course
		killed  string
		crowded bool
		ordered bool
	}{
		"by the wrapper":            {nil, payload.KilledTasks, true, false},
		"by the starter":            {[]payloadrun.Course{payloadrun.Crowded}, payload.KilledSweep, true, false},
		"by the starter's own hand": {[]payloadrun.Course{payloadrun.Saving, payloadrun.Crowded, payloadrun.Saving}, "", true, false},
		"by an order":               {nil, payload.KilledSweep, false, false},
		"after an order":            {[]payloadrun.Course{payloadrun.Ordered, payloadrun.Crowded}, payload.KilledTasks, false, true},
	} {
		r := &payloadrun.Run{Exit: &payload.Exit{WaitStatus: 3 << 8}}
		for _, c := range tt.becomes {
			r.Becomes(c)
		}
		if r.Crowded(payload.Exit{Killed: tt.killed}) != tt.crowded || r.Ordered() != tt.ordered {
			t.Errorf("%s: crowded %v, ordered %v", name, r.Crowded(payload.Exit{Killed: tt.killed}), r.Ordered())
		}
		if r.Status().ExitStatus() != 3 {
			t.Errorf("%s: status %v", name, r.Status())
		}
	}
	if (*payloadrun.Run)(nil).Ordered() {
		t.Error("nothing was made to end before it began")
	}
}

// TestAccounts: users that the pilot's image does not know have no name, no home, and no
// group but their own.
func TestAccounts(t *testing.T) {
	if name, home := payloadrun.AccountOf(nobodys); name+home != "" {
		t.Errorf("%q, %q", name, home)
	}
	if name, home := payloadrun.AccountOf(0); name != "root" || home == "" {
		t.Errorf("%q, %q", name, home)
	}
	j := aJob(t, "", nil)
	for _, uid := range []int{nobodys, 1} {
		j.UID, j.GID = uid, uid
		_, spec, err := j.Main("a", "", nil)
		must(t, err)
		if !slices.Contains(spec.Groups, uid) || slices.Contains(spec.Groups, 0) {
			t.Errorf("groups of %d: %v", uid, spec.Groups)
		}
		if uid > 1 && !cmp.Equal(spec.Groups, []int{uid}) {
			t.Errorf("groups of %d: %v", uid, spec.Groups)
		}
	}
}
