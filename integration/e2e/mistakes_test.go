//go:build pool

package e2e

import (
	"context"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"podstarter/integration/harness"
)

// TestMistakes: when the startd asks the starter what it can do, the starter logs
// each mistake in the configuration in a line that names the knob, and no job
// matches what cannot work.
func TestMistakes(t *testing.T) {
	oursOnly(t)
	program, err := pool.Config(t.Context(), side, "STARTER")
	if err != nil {
		t.Fatal(err)
	}
	log, err := pool.Config(t.Context(), side, "STARTER_LOG")
	if err != nil {
		t.Fatal(err)
	}
	// What the startd reads, and what the log says about it.
	classad := func(t *testing.T, settings ...string) (ad, said string) {
		t.Helper()
		const script = `log=$1; shift; rm -f "$log.testing"; "$@"; echo ======; cat "$log.testing"`
		argv := append([]string{"sh", "-c", script, "classad", log, "env"}, settings...)
		out, err := pool.EP(t.Context(), side, append(argv, program, "-classad")...)
		if err != nil {
			t.Fatal(err)
		}
		ad, said, ok := strings.Cut(out, "======\n")
		if !ok {
			t.Fatalf("no log of the abilities: %q", out)
		}
		return ad, said
	}

	ad, said := classad(t)
	if !advertises(ad) {
		t.Fatalf("with the configuration as it is, the starter advertises\n%s\nand says\n%s", ad, said)
	}
	// A site that takes no images says so.
	if ad, _ := classad(t, "_CONDOR_POD_STARTER_IMAGE_POLICY=never"); advertises(ad) || !strings.Contains(ad, "HasPodStarter = true") {
		t.Errorf("under the policy never, the starter advertises\n%s", ad)
	}
	for _, c := range []struct {
		name    string
		setting string
		knob    string
		words   []string
	}{
		{"no pod name", "--unset=POD_NAME", "POD_STARTER_POD_NAME", nil},
		{"another pod, which RBAC forbids", "_CONDOR_POD_STARTER_POD_NAME=somebody-elses", "POD_STARTER_POD_NAME", []string{"somebody-elses", "forbidden"}},
		{"no such container", "_CONDOR_POD_STARTER_CONTAINERS=no-such", "POD_STARTER_CONTAINERS", []string{"no-such"}},
		{"no control directory", "_CONDOR_POD_STARTER_CONTROL_DIR=/no/such/dir", "POD_STARTER_CONTROL_DIR", []string{"/no/such/dir"}},
		{"no service account", "_CONDOR_POD_STARTER_KUBERNETES_DIR=/no/such/dir", "POD_STARTER_KUBERNETES_DIR", []string{"/no/such/dir"}},
		{"a default that is no image", "_CONDOR_POD_STARTER_DEFAULT_IMAGE=Debian:12", "POD_STARTER_DEFAULT_IMAGE", []string{"Debian:12"}},
		{"not a user id", "_CONDOR_POD_STARTER_PAYLOAD_UID=root", "POD_STARTER_PAYLOAD_UID", []string{"root"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ad, said := classad(t, c.setting, "_CONDOR_POD_STARTER_BACKEND=pod")
			if advertises(ad) {
				t.Errorf("it advertises what cannot work:\n%s", ad)
			}
			var lines []string
			for line := range strings.Lines(said) {
				if strings.Contains(line, c.knob) {
					lines = append(lines, line)
				}
			}
			if len(lines) == 0 {
				t.Fatalf("no line names %s:\n%s", c.knob, said)
			}
			if strings.Contains(lines[0], `\n`) {
				t.Errorf("the line is a squeezed page: %q", lines[0])
			}
			for _, word := range c.words {
				if !strings.Contains(lines[0], word) {
					t.Errorf("the line %q does not contain %q", lines[0], word)
				}
			}
			t.Log(lines[0])
		})
	}
}

// advertises reports whether jobs with images would match.
func advertises(ad string) bool {
	ad = strings.ToLower(ad)
	return strings.Contains(ad, "hascontainer = true") || strings.Contains(ad, "hasdocker = true")
}

// TestAPIServerAway: while the API server cannot be reached, a job that needs
// another image goes back to the queue instead of being held, and runs when the
// server is back.
func TestAPIServerAway(t *testing.T) {
	oursOnly(t)
	// The starter waits for problems to pass; the test does not.
	configure(t, "POD_STARTER_BIND_TIMEOUT = 3")
	servers, err := harness.Processes(pool.APIServer)
	if err != nil {
		t.Fatal(err)
	}
	if len(servers) != 1 {
		t.Fatalf("API servers that run: %v, want one", servers)
	}
	if err := harness.Kill(servers[0], unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	restored := false
	restore := func() {
		if !restored {
			restored = true
			// Not the test's own context: that ends before Cleanup's calls.
			if err := pool.Up(context.Background(), "--stock"); err != nil {
				t.Errorf("bringing the API server back: %v", err)
			}
		}
	}
	t.Cleanup(restore)
	job := submit(t, job("facts", "universe = docker", "docker_image = "+pool.Image("debian")))[0]
	events, err := job.WaitEvents(soon(t, patience), "an attempt that fails", failed)
	if err != nil {
		t.Fatal(err)
	}
	givenBack(t, events, "API server")
	restore()
	mustExit(t, job, 0)
	seen, err := job.Facts("out")
	if err != nil {
		t.Fatal(err)
	}
	if seen.Image != "debian" {
		t.Errorf("ran in %q, want debian", seen.Image)
	}
}
