//go:build pool

package controllers

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"podstarter/integration/harness"
)

// patience is how long everything in a test may take together: much longer than it does.
const patience = 6 * time.Minute

// What every test uses; set once, before the first.
var (
	pool  *harness.Pool
	probe harness.File
)

func TestMain(m *testing.M) {
	if err := prepare(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func prepare(ctx context.Context) error {
	var err error
	if pool, err = harness.Open(ctx); err != nil {
		return err
	}
	// The manifests have one payload container, and take the rest of the configuration from the pool's own.
	if !pool.Controllers || pool.Slots != 1 || pool.Spares > 0 || pool.Pullers > 0 || pool.Partitionable || pool.Sidecars || pool.Network != harness.HostNetwork || pool.Mode != harness.Shared {
		return fmt.Errorf("the pool cannot run Jobs and Deployments; start it with: pool up --controllers --slots 1 " +
			"--spares 0 --pullers 0 --sidecars=false --partitionable=false --mode shared --network host")
	}
	// A run that was killed left its pods, or a node that takes none.
	if err := removeOwners(ctx); err != nil {
		return err
	}
	if _, err := pool.Kubectl(ctx, nil, "uncordon", "--selector=kubernetes.io/hostname"); err != nil {
		return err
	}
	if err := pool.GiveDisk(ctx); err != nil {
		return err
	}
	probe, err = pool.Probe(ctx)
	return err
}

// soon is a context for all that a test does.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// kubectl runs kubectl in the namespace of the pool, and must succeed.
func kubectl(ctx context.Context, t *testing.T, argv ...string) string {
	t.Helper()
	out, err := pool.Kubectl(ctx, nil, append([]string{"-n", harness.Namespace}, argv...)...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}
