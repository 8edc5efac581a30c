//go:build pool

package attacks

import (
	"context"
	"strings"
	"testing"

	"podstarter/integration/harness"
	"podstarter/integration/images/probe/facts"
)

// What the hooks of the site write to the log of the starter if an attack on them got
// through, and a file by which a job tells one that it is done.
const (
	hookRead = "read-the-note-of-the-job"
	hookRan  = "ran-a-command-of-the-job"
	hooked   = "hooked"
)

// siteHooks are the hooks of the site: one that stays beside a job that says so until that
// has tried to get into it, and one that reads what a job has noted. Variables steer bash.
var siteHooks = map[string]string{
	facts.SiteHook: `#!/bin/sh
grep -q '^HostileHook = true' || exit 0
while [ ! -e ` + hooked + ` ]; do sleep 0.1; done
`,
	"site-exit": `#!/bin/bash
noted=$(cat note 2>/dev/null)
[ -n "$noted" ] && echo '` + hookRead + `' >&2
exit 0
`,
}

const hookConfig = `STARTER_DEFAULT_JOB_HOOK_KEYWORD = SITE
SITE_HOOK_UPDATE_JOB_INFO = ` + programsDirectory + "/" + facts.SiteHook + `
SITE_HOOK_JOB_EXIT = ` + programsDirectory + `/site-exit
`

func (w *target) installHooks(t *testing.T) {
	t.Helper()
	for name, text := range siteHooks {
		w.inPilot(t, strings.NewReader(text), "sh", "-c", `cat >"$1" && chmod 0755 "$1"`, "install", programsDirectory+"/"+name)
	}
}

// hookSteps and hookCommands are those of a job that attacks hooks.
func hookSteps() string {
	return " 'file=evil:echo " + hookRan + " >&2' link=note:" + password() + " mark=" + hooked
}

func hookCommands(s Setting) []string {
	return []string{"+HostileHook = true", `environment = "BASH_ENV=./evil HOSTILE_ATTACKS=` + namesOf(s, true) + `"`}
}

// meetHook waits for the hook that stays.
func (w *target) meetHook(t *testing.T) {
	t.Helper()
	inside := pool.InPod(w.side)
	if _, err := harness.WaitSome(soon(t, patience), 1, func(p harness.Process) bool { return inside(p) && p.Comm == facts.SiteHook }); err != nil {
		t.Fatal(err)
	}
}

// lookAtHooks reads what the hooks have said.
func (w *target) lookAtHooks(t *testing.T, a *attempts, job harness.Job) {
	t.Helper()
	run, err := job.Run(soon(t, patience), 1)
	if err != nil {
		t.Fatal(err)
	}
	if !run.Has("HOOK_JOB_EXIT (" + programsDirectory + "/site-exit) invoked") {
		t.Errorf("no hook ran at the end of job %s", job.ID())
	}
	for attack, words := range map[string]string{HookLoot: hookRead, HookRuns: hookRan} {
		a.got(attack)
		for _, line := range run.Lines {
			if strings.Contains(line.Text, "wrote to its standard error") && strings.Contains(line.Text, words) {
				a.got(attack, line.Text)
			}
		}
	}
}

// visit has the job's owner log in until the job has tried to make something of that. To
// be waited for by the function that it returns.
func (w *target) visit(t *testing.T, job harness.Job) (wait func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	ended := make(chan error, 1)
	go func() {
		_, err := pool.AP(ctx, "condor_ssh_to_job", job.ID(), "while [ ! -e "+hooked+" ]; do /bin/sleep 0.1; done")
		ended <- err
	}()
	t.Cleanup(cancel)
	inside := pool.InPod(w.side)
	if _, err := harness.WaitSome(ctx, 1, func(p harness.Process) bool { return inside(p) && p.Comm == visitProgram }); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := <-ended; err != nil {
			t.Errorf("logging in to job %s: %v", job.ID(), err)
		}
	}
}

// visitProgram is what the ssh server is called in the process table (package visit).
const visitProgram = "condor_pod_visi"
