package lives_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podstarter/condor/condortest"
	"podstarter/condor/startd"
	"podstarter/payload"
	"podstarter/sandbox"
	"podstarter/sandbox/commonfiles"
	"podstarter/starter/activation"
	"podstarter/starter/settings"
)

// nested are the knobs with which common files are offered.
var nested = map[string]string{"STARTER_NESTED_SCRATCH": "true"}

// offered has common files offered, as if the user of these tests were root.
func offered(o *activation.Options) {
	o.Settings.CommonFiles = settings.CommonFiles{Offered: true, Links: true, Copies: true}
}

// withDigests has common files offered as to an ordinary user.
func withDigests(o *activation.Options) {
	o.Settings.CommonFiles = settings.CommonFiles{Offered: true, Copies: true, Digests: true}
}

// say has the shadow give this guidance as its n-th.
func (w *world) say(n int, format string, args ...any) {
	w.shadow.On("request_guidance", n, condortest.AnswerText(fmt.Sprintf(format, args...)))
}

// asked is the context of the n-th question for guidance.
func (w *world) asked(n int) string {
	w.Helper()
	var all []string
	for _, h := range w.shadow.Heard() {
		if h.Call == "request_guidance" {
			all = append(all, h.Ad["ContextAd"])
			if h.Ad.Text("RequestType") == "JobSetup" && h.Ad["HasCommonFilesTransfer"] != "2" {
				w.Errorf("question %d offers common files as %q", len(all), h.Ad["HasCommonFilesTransfer"])
			}
		}
	}
	if len(all) < n {
		w.Fatalf("the shadow was asked %d times, not %d", len(all), n)
	}
	return all[n-1]
}

func (w *world) has(text string, parts ...string) {
	w.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			w.Errorf("%q has no %q", text, part)
		}
	}
}

const catalogs = `ColorAd = [ CommonCatalogsAd = [ CondorVersion = %d; CommonCatalogsList = { %s } ] ]`

// stages plans what the shadow of a data slot does first.
func (w *world) stages() {
	w.say(1, "Command = \"StageCommonFiles\"\nName = \"../../c\"\nCommonInputFiles = \"job.sh\"\nTransferSocket = \"%s\"\nTransferKey = \"%s\"",
		w.shadow.Address(), w.shadow.Key())
}

// TestDataSlot are activations that run no job and keep common files for others.
func TestDataSlot(t *testing.T) {
	waits := "Command = \"RetryReqest\"\nRetryDelay = 300\nContextAd = []"
	leave := func(w *world) { w.vacate(startd.Vacate{Reason: "Schedd released the claim", Code: 1017}) }
	asked := func(n int, parts ...string) func(*world) {
		return func(w *world) { w.neverBegan(); w.has(w.asked(n), parts...) }
	}
	var lives []life
	add := func(l life) {
		l.job += "ProcId = -1000"
		l.knobs, l.options = nested, offered
		l.backend = func(w *world, b payload.Backend) payload.Backend { return takesNoSlot{b, w} }
		l.machine = func(o *condortest.StartdOptions) { o.Split = true }
		lives = append(lives, l)
	}
	key := func(w *world) string {
		return string(commonfiles.KeyOf(w.shadow.Job().StringOr("User", ""), "submit.invalid", "../../c"))
	}
	add(life{
		name: "kept", plan: func(w *world) {
			w.stages()
			w.say(2, "Command = \"ColorSlot\"\n"+catalogs, 2, `[ Name = "c" ], [ Name = "d" ]`)
			w.say(3, "%s", waits)
		},
		live: func(w *world) {
			w.startd.Wait(w, condortest.Call(condortest.Announce).With("Name", "d"))
			w.shadow.Wait(w, condortest.Call("request_guidance").With("RequestType", "JobSetup"))
			w.logged("'RetryReqest'")
			kept, err := filepath.Glob(filepath.Join(w.execute(), "dir_*", "catalogs", key(w)+".1.*", "job.sh"))
			if err != nil || len(kept) != 1 {
				w.Errorf("kept: %v, %v", kept, err)
			}
			leave(w)
		},
		want: want{last: "error 1017/0", check: func(w *world) {
			w.neverBegan()
			w.has(w.asked(2), `Command = "StageCommonFiles"`, "Result = true", key(w), "Size = ")
			w.has(w.asked(3), `Command = "ColorSlot"`, "Result = true", condortest.SplitClaim, "SlotAd = [")
		}},
	})
	add(life{
		name: "kept without root, as flat sandboxes", plan: func(w *world) {
			w.stages()
			w.say(2, "Command = \"ColorSlot\"\n"+catalogs, 2, `[ Name = "c" ]`)
			w.say(3, "%s", waits)
		},
		live: func(w *world) {
			w.logged("'RetryReqest'")
			kept, err := filepath.Glob(filepath.Join(w.execute(), "dir_*", "catalogs", key(w)+".1.*"))
			if err != nil || len(kept) != 1 {
				w.Fatalf("kept: %v, %v", kept, err)
			}
			w.has(w.asked(2), "Result = true", `StagingDir = "`+filepath.Base(kept[0])+`"`)
			leave(w)
		},
		want: want{last: "error 1017/0", check: (*world).neverBegan},
	})
	lives[len(lives)-1].knobs, lives[len(lives)-1].options = map[string]string{"STARTER_NESTED_SCRATCH": "false"}, withDigests
	add(life{
		name: "kept, older", plan: func(w *world) {
			w.stages()
			w.say(2, "Command = \"ColorSlot\"\n"+catalogs, 1, "")
			w.say(3, "%s", waits)
		},
		live: func(w *world) {
			w.startd.Wait(w, condortest.Call(condortest.Color))
			w.logged("'RetryReqest'")
			leave(w)
		},
		want: want{last: "error 1017/0", check: asked(3, "Result = true", "CommonInputFilesSizeMB = -1")},
	})
	add(life{
		name: "the startd refuses", plan: func(w *world) {
			w.startd.On(condortest.Announce, 1, condortest.AnswerText("Result = false\nErrorString = \"no room\""))
			w.stages()
			w.say(2, "Command = \"ColorSlot\"\n"+catalogs, 2, "[ Name = \"c\" ]")
		},
		want: want{code: 1, last: "error 1007/0", log: []string{"no room"}, check: asked(3, `Command = "ColorSlot"`, "Result = false")},
	})
	add(life{
		name: "no files", plan: func(w *world) {
			w.say(1, "Command = \"StageCommonFiles\"\nName = \"c\"\nCommonInputFiles = \"job.sh\"\nTransferSocket = \"%s\"\nTransferKey = \"wrong\"", w.shadow.Address())
		},
		want: want{code: 1, last: "error 1007/0", check: asked(2, `Command = "StageCommonFiles"`, "Result = false")},
	})
	for name, guidance := range map[string]string{
		"no name": "Command = \"StageCommonFiles\"\nCommonInputFiles = \"a\"\nTransferSocket = \"x\"\nTransferKey = \"y\"",
		"no ad":   `Command = "ColorSlot"`, "no catalogs": "Command = \"ColorSlot\"\nColorAd = []", "no version": "Command = \"ColorSlot\"\nColorAd = [ CommonCatalogsAd = [] ]",
		"no list": "Command = \"ColorSlot\"\nColorAd = [ CommonCatalogsAd = [ CondorVersion = 2 ] ]", "nothing to do": `Command = "CarryOn"`, "a job": `Command = "MapCommonFiles"`,
	} {
		add(life{name: name, plan: func(w *world) { w.say(1, "%s", guidance) }, want: want{code: 1, last: "error 1007/0", says: "runs no jobs", check: (*world).neverBegan}})
	}
	add(life{
		name: "an entry that is no ad", plan: func(w *world) { w.say(1, "Command = \"ColorSlot\"\n"+catalogs, 2, "5") },
		want: want{code: 1, last: "error 1007/0", check: asked(2, "Result = false")},
	})
	add(life{
		name: "the shadow is lost, and comes back", plan: func(w *world) {
			w.stages()
			w.say(2, "Command = \"RetryReqest\"\nRetryDelay = 1\nContextAd = [ Mark = 5 ]")
			w.say(3, "%s", waits)
		},
		live: func(w *world) {
			w.logged("'RetryReqest'")
			w.shadow.Disconnect()
			w.loggedTimes("Requesting guidance from the shadow about JobSetup", 3)
			if _, err := w.shadow.Reconnect(w.ctx); err != nil {
				w.Error(err)
			}
			w.loggedTimes("'RetryReqest'", 2)
			leave(w)
		},
		want: want{last: "error 1017/0", check: asked(3, "Mark = 5")},
	})
	add(life{
		name: "removed while files come", plan: func(w *world) {
			w.stages()
			w.shadow.On(condortest.Input, 1, condortest.Do(func(condortest.Heard) { leave(w) }), condortest.Stall(make(chan struct{})))
		},
		want: want{last: "error 1017/0", check: (*world).neverBegan},
	})
	run(t, lives)
}

// takesNoSlot is a backend whose payload slots are all for jobs.
type takesNoSlot struct {
	payload.Backend
	w *world
}

// Lease implements payload.Backend.
func (b takesNoSlot) Lease(ctx context.Context, wish payload.Wish) (payload.Lease, error) {
	if !wish.FilesOnly {
		b.w.Error("a data slot takes a payload slot")
	}
	return b.Backend.Lease(ctx, wish)
}

// kept puts a catalog of this user's into the EXECUTE directory, where it stays until the job has
// its files.
func (w *world) kept(user, name, text string, digest bool) (place commonfiles.Name) {
	w.Helper()
	ctx := context.Background()
	box, err := sandbox.Create(ctx, sandbox.Options{Execute: w.execute(), PID: 1, Nested: true, Keeps: true, Condor: sandbox.Self(), Payload: sandbox.Self()})
	w.must(err)
	removed := make(chan error, 1)
	w.shadow.On("request_guidance", 2, condortest.Do(func(condortest.Heard) { removed <- box.Remove(ctx) }))
	w.Cleanup(func() { w.must(<-removed) })
	d, err := box.Stage(ctx)
	w.must(err)
	w.must(os.WriteFile(filepath.Join(d.Scratch(), "shared"), []byte(text), 0o644))
	place, err = d.Keep(ctx, commonfiles.KeyOf(user, "submit.invalid", name), digest)
	w.must(err)
	return place
}

// TestSharedFiles are jobs whose shadow wants them to have common files.
func TestSharedFiles(t *testing.T) {
	const give = "Command = \"MapCommonFiles\"\nName = \"c\"\nStagingDir = \"/etc\""
	plan := func(user func(*world) string) func(*world) {
		return func(w *world) {
			w.kept(user(w), "c", "common\n", false)
			w.say(1, "%s", give)
		}
	}
	own := func(w *world) string { return w.shadow.Job().StringOr("User", "") }
	// Without root a job has the user of all others, which may have changed what is kept.
	named := func(spoil func(place string) string) func(*world) {
		return func(w *world) {
			place := w.kept(own(w), "c", "common\n", true)
			found, err := filepath.Glob(filepath.Join(w.execute(), "dir_*", "catalogs", string(place)))
			if w.must(err); len(found) != 1 {
				w.Fatalf("kept: %q", found)
			}
			w.say(1, "Command = \"MapCommonFiles\"\nName = \"c\"\nStagingDir = \"%s\"", spoil(found[0]))
		}
	}
	poison := func(place string) string {
		file := filepath.Join(place, "shared")
		if err := errors.Join(os.Chmod(file, 0o644), os.WriteFile(file, []byte("poison\n"), 0o644), os.Chmod(file, 0o444)); err != nil {
			t.Error(err)
		}
		return filepath.Base(place)
	}
	refused := func(w *world) { w.has(w.asked(2), `Command = "MapCommonFiles"`, "Result = false") }
	run(t, []life{
		{name: "given", knobs: nested, options: offered, script: "cat shared; echo x 2>/dev/null >>shared || rm -f shared", plan: plan(own),
			want: want{last: "job_exit 0 100", output: output("common\n"), check: func(w *world) { w.has(w.asked(2), `Command = "MapCommonFiles"`, "Result = true") }}},
		{name: "another owner's", knobs: nested, options: offered, script: "cat shared", plan: plan(func(w *world) string { return "x" + own(w) }), want: want{last: "job_exit 256 100", check: refused}},
		{name: "none", knobs: nested, options: offered, script: "cat shared", plan: func(w *world) { w.say(1, "%s", give) }, want: want{last: "job_exit 256 100", check: refused}},
		{name: "a test's failure", knobs: nested, options: offered, script: "cat shared", job: "ReportMappingFailure = true", plan: plan(own), want: want{last: "job_exit 0 100", check: refused}},
		{name: "without root", options: withDigests, script: "cat shared; echo x 2>/dev/null >>shared || rm -f shared", plan: named(filepath.Base),
			want: want{last: "job_exit 0 100", output: output("common\n"), check: func(w *world) { w.has(w.asked(2), `Command = "MapCommonFiles"`, "Result = true") }}},
		{name: "without root, changed", options: withDigests, script: "cat shared", plan: named(poison), want: want{last: "job_exit 256 100", log: []string{"has changed it"}, check: refused}},
		{name: "without root, not said which", options: withDigests, script: "cat shared", plan: named(func(string) string { return "" }), want: want{last: "job_exit 256 100", log: []string{"does not say what"}, check: refused}},
		{name: "no name", knobs: nested, options: offered, script: "exit 0", plan: func(w *world) { w.say(1, "Command = \"MapCommonFiles\"") }, want: want{last: "job_exit 0 100"}},
		{name: "not offered", knobs: map[string]string{"POD_STARTER_COMMON_FILES": "never"}, script: "exit 0", plan: func(w *world) { w.say(1, "%s", give) }, want: want{last: "job_exit 0 100", check: func(w *world) {
			for _, h := range w.shadow.Heard() {
				if h.Ad["HasCommonFilesTransfer"] != "" {
					w.Error("the shadow hears of common files")
				}
			}
		}}},
	})
}
