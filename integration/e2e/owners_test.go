//go:build pool

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"podstarter/integration/harness"
)

// otherUser is a second user who may submit. HTCondor's image has the account for
// jobs of the stock starter.
const (
	otherUser = "slot2"
	otherUID  = 10002
)

// asOther submits one job as another user than submit does.
func asOther(t *testing.T, s harness.Submission) harness.Job {
	t.Helper()
	name := fmt.Sprintf("other-%d-%s", os.Getpid(), strings.ToLower(t.Name()))
	dir := filepath.Join(pool.User.Visible, "jobs", name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(probe.Link, filepath.Join(dir, probe.Name)); err != nil {
		t.Fatal(err)
	}
	text := s.Commands + "\nrequirements = TARGET.HasPodStarter =?= true\nlog = job.log\nqueue\n"
	if err := os.WriteFile(filepath.Join(dir, "job.sub"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, otherUID, otherUID); err != nil {
		t.Fatal(err)
	}
	out, err := pool.AP(t.Context(), "--root", "runuser", "-u", otherUser, "--", "sh", "-c", `cd "$1" && exec condor_submit -terse job.sub`,
		"submit", filepath.Join(pool.User.Home, "jobs", name))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`^(\d+)\.0`).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("condor_submit said %q", out)
	}
	cluster, _ := strconv.Atoi(m[1])
	t.Cleanup(func() { _, _ = pool.AP(background(t), "--root", "condor_rm", m[1]) })
	return harness.Job{Cluster: cluster, Dir: dir, Log: filepath.Join(dir, "job.log"), Side: side}
}

// TestContainerIsUsedAgainByItsOwnerAlone: with POD_STARTER_RESET = image, another
// user's job in the same image gets a container of its own. The container of the
// first user, who finds no temporary files of the last job, is gone then.
func TestContainerIsUsedAgainByItsOwnerAlone(t *testing.T) {
	oursOnly(t)
	configure(t, "POD_STARTER_RESET = image", "POD_STARTER_DIGEST_LIFETIME = 86400")
	inDebian := func() harness.Submission {
		// mark fails if a file of that name exists.
		return job("mark=/tmp/left mark=/dev/shm/left facts", "universe = docker", "docker_image = "+pool.Image("debian"))
	}
	mine := func() harness.Job { return submit(t, inDebian())[0] }
	other := func() harness.Job { return asOther(t, inDebian()) }
	var layers []string
	for i, next := range []func() harness.Job{mine, mine, other, mine} {
		job := next()
		mustExit(t, job, 0)
		seen, err := job.Facts("out")
		if err != nil {
			t.Fatal(err)
		}
		if seen.Layer == "" {
			t.Fatalf("job %d does not report its root file system", i)
		}
		layers = append(layers, seen.Layer)
	}
	if layers[1] != layers[0] {
		t.Errorf("one user's jobs did not share a container, so the rest of the test shows nothing: %q", layers)
	}
	if layers[2] == layers[1] || layers[3] == layers[2] || layers[3] == layers[0] {
		t.Errorf("users shared a container: %q", layers)
	}
}
