//go:build pool

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"podstarter/condor/image"
	"podstarter/integration/harness"
)

// TestDockerOfSite: jobs with images that want what their access point or site has to give, beside the stock starter with Docker. An access
// point that cannot give the user's login sends HTCondorError, which both starters make the reason of the hold. A network that the site offers
// by DOCKER_NETWORKS is one that the stock starter gives; under ours, the job goes back to the queue, and the reason names the knob.
func TestDockerOfSite(t *testing.T) {
	oursOnly(t)
	if !pool.Has(harness.StockDocker) {
		t.Fatal("the pool has no machine with Docker; start it with: pool up --stock-docker")
	}
	sides := []harness.Side{harness.StockDocker, harness.Ours}

	t.Run("no login", func(t *testing.T) {
		none := filepath.Join(pool.User.Visible, ".docker", "none")
		if err := os.WriteFile(none, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(none)
		knobs(t, harness.Ours, image.KnobCarrier+" = "+pool.Image("empty"))
		registry, _, _ := strings.Cut(pool.Image("busybox"), "/")
		for _, side := range sides {
			s := job("out=ran", "universe = docker", "docker_send_credentials = True", "docker_image = "+harness.PrivateRegistry(registry)+"/podstarter/busybox")
			s.Side = side
			const says = "no docker login for this user"
			if end := ending(t, submit(t, s)[0]); !end.Held || end.Code != holdInvalidDockerImage || end.Subcode != 0 || !strings.Contains(end.Reason, says) {
				t.Errorf("%s: %s; want held with code %d, subcode 0 and %q", side, end, holdInvalidDockerImage, says)
			}
		}
	})

	t.Run("network", func(t *testing.T) {
		const network = "default" // which Docker has whatever its configuration
		for _, side := range sides {
			knobs(t, side, "DOCKER_NETWORKS = "+network)
			if out, err := pool.EP(t.Context(), side, "condor_reconfig"); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			t.Cleanup(func() {
				if out, err := pool.EP(context.Background(), side, "condor_reconfig"); err != nil {
					t.Errorf("%v\n%s", err, out)
				}
			})
		}
		offered := func(side harness.Side) bool {
			want := `StockReference == "docker"`
			if side == harness.Ours {
				want = "HasPodStarter"
			}
			out, err := pool.AP(t.Context(), "condor_status", "-constraint", want+` && DockerNetworks == "`+network+`"`, "-af", "Name")
			if err != nil {
				t.Fatal(err)
			}
			return strings.TrimSpace(out) != ""
		}
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for _, side := range sides {
			for waiting := soon(t, patience); !offered(side); {
				select {
				case <-waiting.Done():
					t.Fatalf("the slots of %s do not offer the network", side)
				case <-tick.C:
				}
			}
		}
		from := func(side harness.Side) harness.Job {
			s := job("out=ran", "universe = docker", "docker_image = "+pool.Image("busybox"), "docker_network_type = "+network)
			s.Side = side
			return submit(t, s)[0]
		}
		mustExit(t, from(harness.StockDocker), 0)
		back, err := from(harness.Ours).WaitEvent(soon(t, patience), harness.EventEvicted, 1)
		if err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(back.Body, "\n"); !strings.Contains(text, "the site has to remove DOCKER_NETWORKS") {
			t.Errorf("our job went back without a reason for its site:\n%s", text)
		}
	})
}
