//go:build pool

package e2e

import (
	"strings"
	"testing"

	"podstarter/integration/harness"
	"podstarter/starter/settings"
)

// TestEntryPoint: a job that names no program runs what its image runs by itself, and the program of a
// job is an argument of the image's entry point, which the probe's image has. Where registries are not
// asked, the program runs alone, and a job without one is held.
func TestEntryPoint(t *testing.T) {
	oursOnly(t)
	commands := func(executable string, more ...string) harness.Submission {
		lines := append([]string{"universe = docker", "docker_image = " + pool.Image("entry"), "executable = " + executable,
			"transfer_executable = false", "should_transfer_files = YES", "output = out", "error = err"}, more...)
		return harness.Submission{Name: "entry-point", Commands: strings.Join(lines, "\n") + "\n"}
	}
	none := commands("", "arguments = out=ran exit=4")
	asked := submit(t, none)[0]
	argument := submit(t, commands("/probe", "arguments = out=ran"))[0]
	instead := submit(t, commands("/probe", "arguments = out=ran exit=5", "docker_override_entrypoint = true"))[0]
	mustExit(t, asked, 4)
	mustExit(t, argument, 125) // the probe knows no step that is called /probe
	mustExit(t, instead, 5)

	configure(t, settings.KnobAskRegistries.Name+" = False")
	held := submit(t, none)[0]
	alone := submit(t, commands("/probe", "arguments = out=ran exit=6"))[0]
	if end := ending(t, held); !end.Held || end.Code != 6 || !strings.Contains(end.Reason, "nobody asks registries") {
		t.Errorf("%s; want held with code 6, since nobody asks the registry", end)
	}
	mustExit(t, alone, 6)
}
