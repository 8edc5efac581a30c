//go:build pool

package provisionfaults

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"podstarter/integration/pool/controlplane"
)

var (
	kills = flag.Int("kills", 30, "how often the provisioner is killed in TestKilled")
	size  = flag.Int("pods", 200, "pods that TestScale has made")
	many  = flag.Int("jobs", 20_000, "idle jobs of TestScale, in 500 kinds")
	docs  = flag.String("docs", "", "`directory` with provisioner-scale.md to write what TestScale measures to; empty for none")
	seed  = flag.Uint64("seed", uint64(time.Now().UnixNano()), "for the moments at which TestKilled kills")
)

// What all tests use; set once, before the first.
var (
	plane  *controlplane.ControlPlane
	condor *htcondor
)

// stages is the configuration of KWOK.
//
//go:embed testdata/stages.yaml
var stages string

// stateName is the directory below integration/.
const stateName = ".state-provisionfaults"

// nodes is how many KWOK has; each has room for any number of pods.
const nodes = 10

func TestMain(m *testing.M) {
	controlplane.Exec()
	flag.Parse()
	os.Exit(whole(m))
}

func whole(m *testing.M) int {
	ctx, cancel := context.WithTimeoutCause(context.Background(), 20*time.Minute, errors.New("nothing is ready after 20 minutes"))
	defer cancel()
	err := prepare(ctx)
	defer down()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func down() {
	if condor != nil {
		condor.stop()
	}
	if plane != nil {
		if err := plane.Down(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}

func prepare(ctx context.Context) error {
	var err error
	if plane, err = controlplane.Up(ctx, stateName, os.Stderr); err != nil {
		return err
	}
	if err := plane.StartControllers(ctx); err != nil {
		return err
	}
	if err := plane.StartKWOK(ctx, stages); err != nil {
		return err
	}
	for i := range nodes {
		node := controlplane.Object{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": fmt.Sprintf("node-%d", i)}}
		if _, err := plane.Create(ctx, node); err != nil {
			return fmt.Errorf("making a node: %w", err)
		}
	}
	if condor, err = startCondor(ctx, plane.Path("htcondor")); err != nil {
		return err
	}
	return build(ctx, filepath.Join(condor.site, "bin", "condor_pod_provisioner"), "./provisioner")
}

// build builds a program of the product.
func build(ctx context.Context, path, pkg string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", path, pkg)
	cmd.Dir = plane.Source()
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", pkg, err, out)
	}
	return nil
}
