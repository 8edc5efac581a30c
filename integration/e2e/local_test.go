//go:build pool

package e2e

import (
	"context"
	_ "embed"
	"slices"
	"strconv"
	"strings"
	"testing"

	"podstarter/integration/harness"
)

//go:embed testdata/configure.sh
var personalConfiguration string

//go:embed testdata/personal.sh
var personalPool string

// TestLocalWithoutRoot: the starter alone, under a startd that is not root, runs a
// job beside itself and leaves nothing of it.
func TestLocalWithoutRoot(t *testing.T) {
	oursOnly(t)
	starter, err := pool.Config(t.Context(), side, "STARTER")
	if err != nil {
		t.Fatal(err)
	}
	// The pods use the machine's own network.
	port, err := harness.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	out, err := pool.EPInput(t.Context(), side, strings.NewReader(personalConfiguration+personalPool), "sh", "-s", starter, strconv.Itoa(port))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"user 20007\n", "input came\n", "result: made\n", "Normal termination (return value 5)", "left: \n", "EXITING WITH STATUS 0"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if t.Failed() {
		t.Log(out)
	}
}

// TestLocalAsRoot: with the knob changed, the same execution point runs a job
// without an image beside the starter, as the payload's user, and does not match
// one with an image.
func TestLocalAsRoot(t *testing.T) {
	oursOnly(t)
	const dropIn = "/etc/condor/config.d/99-local.conf"
	switchTo(t, "echo POD_STARTER_BACKEND = local >"+dropIn, "local")
	t.Cleanup(func() { switchTo(t, "rm -f "+dropIn, "pod") })

	j := submit(t, job("facts"))[0]
	mustExit(t, j, 0)
	seen, err := j.Facts("out")
	if err != nil {
		t.Fatal(err)
	}
	if seen.Image != "" && seen.Image != "pilot" {
		t.Errorf("the job ran in image %q, not beside the starter", seen.Image)
	}
	checkRights(t, seen)
	out, err := pool.AP(t.Context(), "condor_status", "-constraint", "HasPodStarter", "-af", "HasContainer", "HasDocker")
	if err != nil || strings.Contains(out, "true") {
		t.Errorf("containers are advertised in a pod without any: %q, %v", out, err)
	}
}

// switchTo changes the pilot's configuration and waits until the ads of all slots show
// it.
func switchTo(t *testing.T, command, backend string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	if out, err := pool.EP(ctx, side, "sh", "-c", command+" && condor_reconfig"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	err := harness.Poll(ctx, "the slot to advertise backend "+backend, func() (bool, error) {
		out, err := pool.AP(ctx, "condor_status", "-constraint", "HasPodStarter", "-af", "PodStarterBackend")
		is := strings.Fields(out)
		return len(is) > 0 && !slices.ContainsFunc(is, func(of string) bool { return of != backend }), err
	})
	if err != nil {
		t.Fatal(err)
	}
}
