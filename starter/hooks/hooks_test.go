package hooks_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"podstarter/classads"
	"podstarter/condor/config"
	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/sandbox/confine"
	"podstarter/starter/failure"
	"podstarter/starter/hooks"
	"podstarter/starter/hostprog"
	"podstarter/starter/hostprog/hostprogtest"
	"podstarter/starter/orders"
	"podstarter/starter/payloadrun"
	"podstarter/starter/settings"
)

var quiet = slog.New(slog.DiscardHandler)

// payloadUser owns the sandbox where the test may give files away.
const payloadUser = 4719

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func parsed(t *testing.T, text string) *classads.Ad {
	t.Helper()
	ad, err := classads.ParseOld(text)
	must(t, err)
	return ad
}

// hearing is a shadow that writes down what it hears.
type hearing struct {
	err error

	mu     sync.Mutex
	errors []shadow.RemoteError
	events []*classads.Ad
}

func (h *hearing) ReportError(_ context.Context, e shadow.RemoteError) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.errors = append(h.errors, e)
	return h.err
}

func (h *hearing) EventNotification(_ context.Context, ad *classads.Ad) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, ad)
	return 0, h.err
}

// site is a site with these knobs, at which a job with these attributes is to run.
func site(t *testing.T, knobs map[string]string, attributes string) (hooks.Options, *hearing) {
	t.Helper()
	all := map[string]string{"STARTER_JOB_HOOK_KEYWORD": "SITE"}
	maps.Copy(all, knobs)
	set, err := settings.Read(config.FromMap(all))
	must(t, err)
	set.Backend = settings.BackendLocal
	box := hostprogtest.Sandbox(t, payloadUser)
	environ := []string{"PATH=/usr/bin:/bin", "OF_THE_SITE=yes"}
	programs := hostprog.Job{Host: hostprog.New(hostprog.Options{SeparateUsers: true}), Sandbox: box, Name: "activation", Environ: environ, Log: quiet}
	heard := &hearing{}
	return hooks.Options{
		Settings: set, Programs: programs, Shadow: heard, Log: quiet,
		Job: &payloadrun.Job{
			Name: "activation", Slot: "slot1_1", Settings: set, Environ: environ, Log: quiet,
			Ad: parsed(t, attributes), Machine: classads.NewAd(), Info: job.Info{FileTransfer: true}, UID: payloadUser, GID: payloadUser, Sandbox: box,
			Given: func() payloadrun.Given { return payloadrun.Given{} },
		},
	}, heard
}

// written is what a program has left in the sandbox.
func written(t *testing.T, o hooks.Options, name string) string {
	t.Helper()
	text, err := o.Job.Sandbox.ReadFile(name, 1<<20)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(text)
}

// TestPrepare: a hook can change the job, say something, hold it, or give it back.
func TestPrepare(t *testing.T) {
	const hook = job.HookPrepareJob
	for name, tt := range map[string]struct {
		script string
		knobs  map[string]string
		code   int
		sub    int
		words  string
		said   string
		change string
	}{
		"changes the job": {script: `echo 'Changed = 5'`, change: "5"},
		"has to say something": {script: `echo 'HookStatusMessage = "be careful"'`,
			said: string(hook) + " (program) succeeded (exited with status 0): be careful"},
		"fails":            {script: `echo 'Changed = 5'; exit 7`, code: shadow.HoldHookPrepareJobFailure, sub: 7, words: "(program) failed (exited with status 7)"},
		"gives it back":    {script: `echo 'HookStatusCode = 300'; echo 'HookStatusMessage = "not here"'`, code: 0, sub: 300, words: "not here"},
		"dies":             {script: `kill -9 $$`, code: 0, sub: -9, words: "died with signal 9"},
		"takes too long":   {script: `exec sleep 3600`, knobs: map[string]string{"SITE_HOOK_PREPARE_JOB_TIMEOUT": "1"}, code: shadow.HoldUnspecified, words: "failed (it took longer than 1s)"},
		"says odd things":  {script: `echo 'Changed = 5'; echo '(('; echo 'Changed = 6'; echo oh >&2`, change: "5"},
		"with arguments":   {script: `echo "Changed = \"$1-$2\""`, knobs: map[string]string{"SITE_HOOK_PREPARE_JOB_ARGS": "one 'two three'"}, change: `"one-two three"`},
		"of the same user": {script: `touch mine; echo "Changed = $(stat -c %u mine)"`, change: stringOf(userOfPrograms())},
	} {
		t.Run(name, func(t *testing.T) {
			knobs := map[string]string{"SITE_HOOK_" + string(hook): hostprogtest.Script(t, tt.script+"\n")}
			maps.Copy(knobs, tt.knobs)
			o, heard := site(t, knobs, "")
			var h hooks.Hooks
			must(t, h.Open(o))
			if !h.Has(hook) || h.Has(job.HookJobExit) {
				t.Error("the job has other hooks")
			}
			err := h.Prepare(t.Context(), hook)
			if tt.words == "" {
				must(t, err)
			} else if f := failure.Of(err); err == nil || f.Code != tt.code || f.Subcode != tt.sub || !strings.Contains(err.Error(), tt.words) {
				t.Errorf("%v, want %d/%d %q", err, tt.code, tt.sub, tt.words)
			}
			change := ""
			if e, ok := o.Job.Ad.Lookup("Changed"); ok {
				change = e.OldString()
			}
			if change != tt.change {
				t.Errorf("the job is changed to %q, want %q", change, tt.change)
			}
			said := ""
			for _, e := range heard.errors {
				said += e.Message
			}
			if said != tt.said {
				t.Errorf("the shadow hears %q, want %q", said, tt.said)
			}
		})
	}
}

// userOfPrograms is the user as whom hooks run.
func userOfPrograms() int {
	if os.Getuid() != 0 {
		return os.Getuid()
	}
	return payloadUser
}

func stringOf(n int) string { return classads.IntExpr(int64(n)).OldString() }

// TestPrepareCannotRun: a hook that is no program holds the job. A job without that hook
// goes on, and an order ends the wait for one.
func TestPrepareCannotRun(t *testing.T) {
	path := hostprogtest.Script(t, "")
	o, _ := site(t, map[string]string{"SITE_HOOK_PREPARE_JOB": path}, "")
	var h hooks.Hooks
	must(t, h.Open(o))
	must(t, h.Prepare(t.Context(), job.HookBeforeTransfer))
	must(t, os.WriteFile(path, []byte("no program"), 0o755))
	if err := h.Prepare(t.Context(), job.HookPrepareJob); err == nil || failure.Of(err).Code != shadow.HoldHookPrepareJobFailure || !strings.Contains(err.Error(), "failed to execute PREPARE_JOB") {
		t.Errorf("%v", err)
	}
	must(t, os.WriteFile(path, []byte("#!/bin/sh\nexec sleep 3600\n"), 0o755))
	why := errors.New("ended by order")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if err := h.Prepare(ctx, job.HookPrepareJob); !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
}

// TestPrepareIsNotHeard: what a hook says may not reach the shadow; the job goes on.
func TestPrepareIsNotHeard(t *testing.T) {
	o, heard := site(t, map[string]string{"SITE_HOOK_PREPARE_JOB": hostprogtest.Script(t, `echo 'HookStatusMessage = "x"'; echo 'Changed = 5'`)}, "")
	heard.err = shadow.ErrLost
	var h hooks.Hooks
	must(t, h.Open(o))
	must(t, h.Prepare(t.Context(), job.HookPrepareJob))
	if o.Job.Ad.IntOr("Changed", 0) != 5 {
		t.Error("the job is not changed")
	}
}

// TestHooksCannotBeUsed: without its hooks a site takes no job.
func TestHooksCannotBeUsed(t *testing.T) {
	o, _ := site(t, map[string]string{"SITE_HOOK_JOB_EXIT": "/no/such/program"}, "")
	var h hooks.Hooks
	if err := h.Open(o); err == nil || failure.Of(err).Code != shadow.VacateStarterError || !strings.Contains(err.Error(), `the hooks of keyword "SITE" cannot be used`) {
		t.Errorf("%v", err)
	}
	unconfined, _ := site(t, nil, "")
	unconfined.Programs.Host = hostprog.New(hostprog.Options{KernelConfines: func() error { return confine.ErrUnsupported }})
	if err := h.Open(unconfined); err == nil || failure.Of(err).Code != shadow.VacateStarterError || !strings.Contains(err.Error(), "no Landlock") {
		t.Errorf("%v", err)
	}
	// A site without a keyword has no hooks.
	unconfined.Settings.Config = config.FromMap(nil)
	var none hooks.Hooks
	must(t, none.Open(unconfined))
	must(t, none.Prepare(t.Context(), job.HookPrepareJob))
	none.LastUpdate(t.Context(), classads.NewAd())
	none.Exit(t.Context(), classads.NewAd(), "exit")
}

// TestConfinedHook: where hooks run as the pilot's own user, a link in the sandbox leads
// them nowhere, and they leave nothing outside.
func TestConfinedHook(t *testing.T) {
	if !hostprogtest.AsPilot(t) {
		return
	}
	if err := confine.Supported(); err != nil {
		t.Skip(err)
	}
	trap := hostprogtest.NewTrap(t)
	o, _ := site(t, map[string]string{"SITE_HOOK_JOB_EXIT": trap.Program}, "")
	o.Settings.Backend = settings.BackendPod
	o.Job.Sandbox, o.Programs.Sandbox = trap.Sandbox, trap.Sandbox
	o.Programs.Host = hostprog.New(hostprog.Options{})
	var h hooks.Hooks
	must(t, h.Open(o))
	h.Exit(t.Context(), classads.NewAd(), "exit")
	trap.Check(t)
}

// gateOf makes a FIFO in the sandbox, by which a hook and its test wait for each other.
func gateOf(t *testing.T, o hooks.Options) string {
	t.Helper()
	gate := filepath.Join(o.Job.Sandbox.Scratch(), "gate")
	must(t, unix.Mkfifo(gate, 0o666))
	must(t, os.Chmod(gate, 0o666)) //nolint:forbidigo // made here
	return gate
}

// TestUpdateHook: nobody waits for the hook that hears of updates. While one runs, the
// next is left out.
func TestUpdateHook(t *testing.T) {
	o, _ := site(t, map[string]string{"SITE_HOOK_UPDATE_JOB_INFO": hostprogtest.Script(t, `cat >said; grep '^N = ' said >>updates; grep -q '^N = 1' said && read x <gate; cat said >>all`)}, "A = 7\nClaimId = \"secret\"")
	gate := gateOf(t, o)
	var h hooks.Hooks
	must(t, h.Open(o))
	h.Use(o.Programs)
	h.Update(t.Context(), parsed(t, "N = 1"))
	h.Update(t.Context(), parsed(t, "N = 2"))
	must(t, os.WriteFile(gate, []byte("go on\n"), 0)) // once the hook waits
	h.LastUpdate(t.Context(), parsed(t, "N = 3"))     // the first has ended, or is waited for
	h.LastUpdate(t.Context(), parsed(t, "N = 4"))
	got := strings.ReplaceAll(written(t, o, "updates"), "N = 3\n", "")
	if diff := cmp.Diff("N = 1\nN = 4\n", got); diff != "" {
		t.Errorf("updates that the hook heard of (-want +got):\n%s", diff)
	}
	if all := written(t, o, "all"); !strings.Contains(all, "A = 7\n") || strings.Contains(all, "secret") || !strings.Contains(all, "N = 4\n") {
		t.Errorf("the hook is told\n%s", all)
	}
	if o.Job.Ad.Has("N") {
		t.Error("an update changes the job")
	}
}

// TestEndUpdate: when it returns, no process of the hook is left.
func TestEndUpdate(t *testing.T) {
	var none hooks.Hooks
	none.EndUpdate()
	for range 20 {
		o, _ := site(t, map[string]string{"SITE_HOOK_UPDATE_JOB_INFO": hostprogtest.Script(t, `echo $$ >pid; echo >gate; exec sleep 1000`)}, "A = 7")
		gate := gateOf(t, o)
		var h hooks.Hooks
		must(t, h.Open(o))
		h.Use(o.Programs)
		h.Update(t.Context(), classads.NewAd())
		_, err := os.ReadFile(gate) // once the hook runs
		must(t, err)
		h.EndUpdate()
		pid := strings.TrimSpace(written(t, o, "pid"))
		if cmdline, err := os.ReadFile("/proc/" + pid + "/cmdline"); err == nil {
			t.Fatalf("the hook, process %s, is left: %q", pid, cmdline)
		}
		h.EndUpdate()
	}
}

// TestExitHook runs once, with the job as it ended, and with what a job is told.
func TestExitHook(t *testing.T) {
	path := hostprogtest.Script(t, `echo "$1 $OF_THE_SITE $_CONDOR_SLOT $(pwd)" >>exit; cat >>exit; echo oh >&2`)
	o, _ := site(t, map[string]string{"SITE_HOOK_JOB_EXIT": path}, "A = 7\nClaimId = \"secret\"")
	var h hooks.Hooks
	must(t, h.Open(o))
	h.Exit(t.Context(), parsed(t, "ExitCode = 3"), "evict")
	h.Exit(t.Context(), parsed(t, "ExitCode = 4"), "exit")
	want := "evict yes slot1_1 " + o.Job.Sandbox.Scratch() + "\nA = 7\nExitCode = 3\n"
	if diff := cmp.Diff(want, written(t, o, "exit")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// One that cannot be run is the site's trouble, and the job ends all the same.
	must(t, os.WriteFile(path, []byte("no program"), 0o755))
	var other hooks.Hooks
	must(t, other.Open(o))
	other.Exit(t.Context(), classads.NewAd(), "exit")
}

// TestReason is what the exit hook is told.
func TestReason(t *testing.T) {
	for want, e := range map[string]*orders.Demand{"exit": nil, "hold": {Hold: true}, "remove": {Remove: true}, "evict": {}} {
		if got := hooks.Reason(e); got != want {
			t.Errorf("%+v: %q, want %q", e, got, want)
		}
	}
}
