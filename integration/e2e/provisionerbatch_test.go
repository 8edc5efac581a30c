//go:build pool

package e2e

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"podstarter/integration/harness"
)

//go:embed testdata/provisionerbatch.sh
var provisionerBatch string

// TestProvisionerBatch: the provisioner with HTCondor as its batch system, by the files of deploy/provisioner-batch. Glideins are jobs of one
// personal pool and take jobs of another. A provisioner that is killed makes none twice, one that waits is withdrawn when nobody needs it, and
// those that run end by themselves.
func TestProvisionerBatch(t *testing.T) {
	oursOnly(t)
	if !pool.Has(harness.Stock) {
		t.Skip("the pool has no stock starter; start it with: pool up --stock")
	}
	program := filepath.Join(t.TempDir(), "condor_pod_provisioner")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./provisioner")
	build.Dir, build.Env = pool.Root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	example := filepath.Join(pool.Root, "deploy", "provisioner-batch")
	script := personalConfiguration
	for name, file := range map[string]string{
		"program": program, "example_provisioner": filepath.Join(example, "provisioner.yaml"), "example_template": filepath.Join(example, "glidein.template.yaml"),
		"example_sub": filepath.Join(example, "glidein.sub"), "example_glidein": filepath.Join(example, "glidein"),
	} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		script += shellFile(name, data)
	}
	args := []string{"sh", "-s"}
	for range 2 {
		port, err := harness.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, strconv.Itoa(port))
	}
	out, err := pool.EPInput(t.Context(), harness.Stock, strings.NewReader(script+provisionerBatch), args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	checkProvisioner(t, sections(out))
	if t.Failed() {
		t.Log(out)
	}
}

// checkProvisioner looks at what the script printed.
func checkProvisioner(t *testing.T, all map[string]string) {
	t.Helper()
	waits := strings.Fields(all["third"])
	if !strings.Contains(all["third"], " site,glidein,small,1,2048,") || !strings.Contains(all["third"], "personal@personal.invalid") {
		t.Errorf("the notes are wrong:\n%s", all["third"])
	}
	if len(waits) == 0 || all["killed"] != "glideins: 3\n" {
		t.Errorf("a provisioner that was killed and started again has made others: %q", all["killed"])
	}
	if all["withdrawn"] != "running: 2\n" {
		t.Errorf("after the withdrawal: %q", all["withdrawn"])
	}
	glideins := strings.Fields(all["all"])
	lines := strings.Split(strings.TrimSuffix(all["ended"], "\n"), "\n")
	if len(lines) != 5 || lines[0] == lines[1] || lines[2] != "4 0" || lines[3] != "4 0" || lines[4] != "glideins: 3" || len(glideins) != 3 {
		t.Errorf("the glideins are %q, and the end was\n%s", glideins, all["ended"])
	} else {
		for _, where := range lines[:2] {
			if !strings.Contains(all["all"], where+"\n") {
				t.Errorf("a job ran in %q, which is none of %q", where, glideins)
			}
		}
	}
	if all["errors"] != "" {
		t.Errorf("the provisioner met errors:\n%s", all["errors"])
	}
}
