//go:build pool

package e2e

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podstarter/condor/image"
	"podstarter/integration/harness"
	"podstarter/integration/images/probe/facts"
)

// TestUsersImages: an image that only the job's user may pull runs with the credentials that the submit side sends. These go to the registry
// and nowhere else, and the next job of the same user finds the files in its container. Without a carrier, or without
// credentials at the access point, the job is held, and the reason says what is missing.
func TestUsersImages(t *testing.T) {
	oursOnly(t)
	if pool.Mode == harness.Rootless || pool.Network != harness.HostNetwork {
		t.Skip("it takes a pilot with root that reaches the pool's registry")
	}
	registry, _, _ := strings.Cut(pool.Image("busybox"), "/")
	private := "universe = docker\ndocker_send_credentials = True\ndocker_image = " + harness.PrivateRegistry(registry) + "/podstarter/busybox"
	run := func() facts.Facts {
		t.Helper()
		ran := submit(t, job("facts", private))[0]
		mustExit(t, ran, 0)
		seen, err := ran.Facts("out")
		if err != nil {
			t.Fatal(err)
		}
		return seen
	}
	held := func(t *testing.T, subcode int, words string) {
		t.Helper()
		if end := ending(t, submit(t, job("facts", private))[0]); !end.Held || end.Code != holdInvalidDockerImage || end.Subcode != subcode || !strings.Contains(end.Reason, words) {
			t.Errorf("%s; want held with code %d, subcode %d and %q", end, holdInvalidDockerImage, subcode, words)
		}
	}

	t.Run("without a carrier", func(t *testing.T) { held(t, 3, "does not allow pulling") })
	configure(t, image.KnobCarrier+" = "+pool.Image("empty"), "POD_STARTER_RESET = image")
	if first := run(); first.Image != "busybox" {
		t.Errorf("ran in %q, want busybox", first.Image)
	}
	fetched := func() int {
		log, err := os.ReadFile(filepath.Join(pool.State, "log", "registry.log"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(log), "/podstarter/busybox/blobs/")
	}
	before := fetched()
	if second := run(); second.Image != "busybox" {
		t.Errorf("the second job ran in %q, want busybox", second.Image)
	}
	// The configuration is read for each job, the layer once.
	if n := fetched() - before; n != 1 {
		t.Errorf("the second job fetched %d files of the image, want one", n)
	}

	t.Run("nowhere else", func(t *testing.T) {
		login := harness.PrivateLogin
		_, password, _ := strings.Cut(login, ":")
		patterns := strings.Join([]string{password, base64.StdEncoding.EncodeToString([]byte(login))}, "\n") + "\n"
		// It finds the file that it makes itself; the last line counts processes with it in their environment or arguments.
		script := `cat >/tmp/patterns; cp /tmp/patterns /tmp/planted; find / -xdev -type f -not -path '/proc/*' -not -path /tmp/patterns -print0 2>/dev/null | xargs -0 grep -laFf /tmp/patterns; ` +
			`for d in $(condor_config_val LOG EXECUTE POD_STARTER_PRIVATE_DIR POD_STARTER_CONTROL_DIR); do grep -rlaFf /tmp/patterns $d; done; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline | grep -caFf /tmp/patterns; rm /tmp/patterns /tmp/planted`
		out, err := pool.EPInput(t.Context(), side, strings.NewReader(patterns), "sh", "-c", script)
		if got := strings.TrimSpace(out); got != "/tmp/planted\n0" {
			t.Errorf("the password is in these files, or processes, of the pilot (%v):\n%s", err, got)
		}
		pod, err := pool.Kubectl(t.Context(), nil, "-n", harness.Namespace, "get", "pods,events,secrets,configmaps", "-o", "yaml")
		if err != nil {
			t.Fatal(err)
		}
		for pattern := range strings.Lines(patterns) {
			if strings.Contains(pod, strings.TrimSpace(pattern)) {
				t.Errorf("the password is in the cluster")
			}
		}
	})

	t.Run("no login", func(t *testing.T) {
		none := filepath.Join(pool.User.Visible, ".docker", "none")
		if err := os.WriteFile(none, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(none)
		held(t, 0, "no docker login for this user")
	})
}
