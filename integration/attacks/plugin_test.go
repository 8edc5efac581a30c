//go:build pool

package attacks

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"podstarter/integration/harness"
	"podstarter/integration/images/probe/facts"
)

// hostilePlugin is the file transfer plugin of the attacker: the probe under another name,
// so that no other program is needed.
const hostilePlugin = "hostile.plugin"

// pluginCommands are those of a job that brings the plugin.
func pluginCommands() []string {
	return []string{
		"transfer_input_files = hostile://h/" + facts.Tried,
		"transfer_plugins = hostile=" + hostilePlugin,
	}
}

// anyPlugins stops condor_submit from making the job wait for an execution point that
// accepts plugins of jobs, or says that it has the site's.
const anyPlugins = "TARGET.HasJobTransferPlugins || TARGET.HasFileTransferPluginMethods isnt undefined || true"

// lookAtPlugin looks, while its job runs, at what the plugin has left, and at the starter
// that ran it.
func (w *target) lookAtPlugin(t *testing.T, a *attempts, starters []harness.Process) {
	t.Helper()
	inside := pool.InPod(w.side)
	left, err := harness.Processes(func(p harness.Process) bool { return inside(p) && slices.Contains(p.Args, facts.PluginLeft) })
	if err != nil {
		t.Fatal(err)
	}
	a.got(PluginSurvivors)
	for _, p := range left {
		a.got(PluginSurvivors, p.String())
		// Or it would be there for all later settings.
		if err := harness.Kill(p, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	if len(starters) != 1 {
		t.Fatalf("starters of the attacker: %v", starters)
	}
	a.got(PluginFlood)
	if peak := starters[0].VmHWM; peak > facts.PluginFlood>>10/2 {
		a.got(PluginFlood, fmt.Sprintf("the starter has needed %d KiB", peak))
	}
}

// refusedPlugin runs a job that brings the plugin where no job may. Without removal it
// would be tried again for ever.
func (w *target) refusedPlugin(t *testing.T, a *attempts) {
	t.Helper()
	job := w.submitWhere(t, "bearer", anyPlugins, "forever", "transfer_input_files = hostile://h/"+facts.Tried, "transfer_plugins = hostile="+hostilePlugin)
	why := "user-supplied plugin " + hostilePlugin + " not allowed"
	_, err := job.WaitEvents(soon(t, patience), "its plugin's being refused", func(events []harness.Event) bool {
		return slices.ContainsFunc(events, func(e harness.Event) bool { return strings.Contains(e.Text(), why) })
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pool.AP(t.Context(), "condor_rm", job.ID()); err != nil {
		t.Fatal(err)
	}
	if _, err := job.WaitEnding(soon(t, patience)); err != nil {
		t.Fatal(err)
	}
	w.starterGone(t)
	for _, attack := range Attacks {
		if attack.Plugin {
			a.results[attack.Name] = facts.Attempt{Attack: attack.Name, Refused: []string{why}}
		}
	}
}
