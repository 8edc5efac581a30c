// Package site runs the provisioner's program on its own, with HTCondor's tools and a batch system that are scripts, for those who read what it
// says.
package site

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// files are the provisioner's configuration, HTCondor's tools, which tell of three idle jobs that match and two that do not, and a
// batch system that keeps what it is told in a file.
var files = map[string]string{
	"provisioner.yaml": `name: site
schedds: [ap]
interval: 10s
platform: batch
batch:
  submit: [sbatch, "{name}", "{note}"]
  id: '(\d+)'
  status: [squeue]
  fields: [name, id, state, note]
  states: {Q: pending, R: running, D: ended}
  cancel: [scancel, "{id}"]
`,
	"plain.template.yaml": "name: plain\nmanifest: job\nlifetime: 8h\nshapes:\n- {name: one, cpus: 1, memory: 2Gi, disk: 1Gi}\n",
	"job":                 "{name} {note}\n",
	"condor_q": `#!/bin/sh
printf 'JobStatus = 1\nRequirements = TARGET.Cpus >= 1\nUser = "alice@x"\nJobCount = 3\nJobIds = "1.0 ... 1.2"\n\n'
printf 'JobStatus = 1\nRequirements = TARGET.HasNothing\nUser = "alice@x"\nJobCount = 2\nJobIds = "2.0 ... 2.1"\n\n'
`,
	"condor_version":  "#!/bin/sh\necho '$CondorVersion: 25.14.1 2026-10-16 BuildID: 1 $'\n",
	"condor_status":   "#!/bin/sh\nexit 0\n",
	"condor_userprio": "#!/bin/sh\nexit 1\n",
	"sbatch":          "#!/bin/sh\nn=$(($(wc -l <$0.jobs 2>/dev/null || echo 0) + 1))\necho \"$1 $n Q $2\" >>$0.jobs\necho $n\n",
	"squeue":          "#!/bin/sh\ncat ${0%squeue}sbatch.jobs 2>/dev/null || :\n",
	// Of a batch system that lists nothing at all the provisioner asks once more, a minute later.
	"sbatch.jobs": "site-plain-old 1 D -\n",
	"scancel":     "#!/bin/sh\nexit 0\n",
}

// Start runs the provisioner itself, built from the checkout at root, and returns where it serves and what ends it.
func Start(t *testing.T, root string) (address string, stop func()) {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "condor_pod_provisioner")
	if out, err := exec.CommandContext(t.Context(), "go", "-C", root, "build", "-o", program, "./provisioner").CombinedOutput(); err != nil {
		t.Fatalf("building the provisioner: %v\n%s", err, out)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = free.Addr().String()
	free.Close()
	cmd := exec.CommandContext(t.Context(), program, "-config", filepath.Join(dir, "provisioner.yaml"), "-templates", dir, "-listen", address)
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	t.Cleanup(stop)
	return address, stop
}
