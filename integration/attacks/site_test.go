//go:build pool

package attacks

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"podstarter/integration/harness"
	"podstarter/integration/images/probe/facts"
)

// What the site's hooks write to the log of the starter if an attack on them got through,
// and the file by which a job tells a hook that it is done.
const (
	hookRead = "read-the-note-of-the-job"
	hookRan  = "ran-a-command-of-the-job"
	hooked   = "hooked"

	pluginRan  = "looks-for-credentials"
	pluginRead = "has-the-credentials-of-the-job"
)

// sitePrograms are the site's hooks and a file transfer plugin. One hook stays beside a
// job that asks for it until the job has tried to get into it; one reads what a job has
// noted. Variables control bash. The plugin uses credentials of the job.
var sitePrograms = map[string]string{
	facts.SiteHook: `#!/bin/sh
grep -q '^HostileHook = true' || exit 0
while [ ! -e ` + hooked + ` ]; do sleep 0.1; done
`,
	"site-exit": `#!/bin/bash
noted=$(cat note 2>/dev/null)
[ -n "$noted" ] && echo '` + hookRead + `' >&2
exit 0
`,
	"site-plugin": `#!/bin/sh
if [ "$1" = -classad ]; then
	printf '%s\n' 'MultipleFileSupport = true' 'PluginType = "FileTransfer"' 'SupportedMethods = "site"' 'PluginVersion = "1"'
	exit
fi
while [ $# -gt 0 ]; do case $1 in -outfile) out=$2; shift;; esac; shift; done
rm -f "$out" # which is root's where the starter is careless with identities
echo ` + pluginRan + `
credentials=$(cat .condor_creds/site.use 2>/dev/null)
[ -z "$credentials" ] || echo ` + pluginRead + `
echo '[ TransferUrl = "site://h/done"; TransferFileName = "done"; TransferSuccess = true ]' >"$out"
`,
}

// A job may have many more processes than the jobs of this package need.
const siteConfig = `POD_STARTER_MAX_PROCESSES = 200
FILETRANSFER_PLUGINS = $(FILETRANSFER_PLUGINS), ` + programsDirectory + `/site-plugin
LOG_FILETRANSFER_PLUGIN_STDOUT_ON_SUCCESS = D_ALWAYS
STARTER_DEFAULT_JOB_HOOK_KEYWORD = SITE
SITE_HOOK_UPDATE_JOB_INFO = ` + programsDirectory + "/" + facts.SiteHook + `
SITE_HOOK_JOB_EXIT = ` + programsDirectory + `/site-exit
`

func (w *target) installSite(t *testing.T) {
	t.Helper()
	for name, text := range sitePrograms {
		w.inPilot(t, strings.NewReader(text), "sh", "-c", `cat >"$1" && chmod 0755 "$1"`, "install", programsDirectory+"/"+name)
	}
}

// siteSteps and siteCommands are those of a job that attacks hooks.
func siteSteps() string {
	return " 'file=evil:echo " + hookRan + " >&2' link=note:" + password() + " mark=" + hooked +
		" file=.condor_creds/none: link=.condor_creds/site.use:" + password() + " file=done:done"
}

func siteCommands(s Setting) []string {
	return []string{"+HostileHook = true", `transfer_output_remaps = "done = site://h/done"`, `environment = "BASH_ENV=./evil HOSTILE_ATTACKS=` + namesOf(s, true) + `"`}
}

// meetHook waits for the hook that stays.
func (w *target) meetHook(t *testing.T) {
	t.Helper()
	inside := pool.InPod(w.side)
	if _, err := harness.WaitSome(soon(t, patience), 1, func(p harness.Process) bool { return inside(p) && p.Comm == facts.SiteHook }); err != nil {
		t.Fatal(err)
	}
}

// pluginKilled is a plugin of the site that somebody killed.
const pluginKilled = "/site-plugin: exit_code 0 exit_by_signal: 1 exit_signal: 9"

// lookAtHooks reads what the hooks have logged.
func (w *target) lookAtHooks(t *testing.T, a *attempts, off []string, job harness.Job) {
	t.Helper()
	run, err := job.Run(soon(t, patience), 1)
	if err != nil {
		t.Fatal(err)
	}
	if !run.Has("HOOK_JOB_EXIT (" + programsDirectory + "/site-exit) invoked") {
		t.Errorf("no hook ran at the end of job %s", job.ID())
	}
	// The neighbour that the job has killed is swept at the same time. If both are one user, that
	// can kill the plugin, too.
	if !run.Has(pluginRan) && !(slices.Contains(off, SlotUsers) && run.Has(pluginKilled)) {
		t.Errorf("the site's plugin did not run for job %s", job.ID())
	}
	for attack, words := range map[string]string{HookLoot: hookRead, HookRuns: hookRan, SitePlugin: pluginRead} {
		a.got(attack)
		for _, line := range run.Lines {
			if strings.Contains(line.Text, words) && !strings.Contains(line.Text, "About to exec") {
				a.got(attack, line.Text)
			}
		}
	}
}

// visit logs in as the job's owner until the job has tried to take advantage of that. The
// returned function waits for it.
func (w *target) visit(t *testing.T, job harness.Job) (wait func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	ended := make(chan error, 1)
	go func() {
		_, err := pool.AP(ctx, "condor_ssh_to_job", "-auto-retry", job.ID(), "while [ ! -e "+hooked+" ]; do /bin/sleep 0.1; done")
		ended <- err
	}()
	inside := pool.InPod(w.side)
	err := harness.Poll(ctx, "the owner of job "+job.ID()+" to log in", func() (bool, error) {
		select {
		case err := <-ended:
			return false, fmt.Errorf("that has ended: %w", err)
		default:
		}
		found, err := harness.Processes(func(p harness.Process) bool { return inside(p) && p.Comm == visitProgram })
		return len(found) > 0, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := <-ended; err != nil {
			t.Errorf("logging in to job %s: %v", job.ID(), err)
		}
	}
}

// visitProgram is the name of the ssh server in the process table (package visit).
const visitProgram = "condor_pod_visi"
