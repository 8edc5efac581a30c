//go:build pool

package vmuniverse

import (
	"context"
	_ "embed"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"podstarter/integration/pool/vmroot"
)

//go:embed enter.sh
var enter string

//go:embed pool.sh
var poolOf string

// TestVMUniverse: jobs of the vm universe, by Debian's condor_vm-gahp with libvirt and QEMU, which emulates the processor. The stock starter
// runs them, and obeys the knobs and attributes for them. Under ours, with the same configuration, the startd does not offer the universe, though
// the site adds HasVM to the ads, so that such a job waits; the startd gives not even one to a starter that asks for no such slot.
func TestVMUniverse(t *testing.T) {
	if os.Getuid() != 0 {
		t.Fatal("the machine is made of namespaces and mounts; run this as root")
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Minute, errors.New("it took longer than 20 minutes"))
	defer cancel()
	root, err := vmroot.Make(ctx, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "condor_pod_starter")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./starter")
	build.Dir, build.Env = filepath.Join("..", ".."), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := func(starter string) map[string]string {
		t.Helper()
		cmd := exec.CommandContext(ctx, "unshare", "--mount", "--pid", "--net", "--uts", "--ipc", "--fork", "--kill-child",
			"sh", "-c", enter, "enter", root, t.TempDir(), program, starter, vmroot.Submitter)
		cmd.Stdin = strings.NewReader(poolOf)
		var problems strings.Builder
		cmd.Stderr = &problems
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s\n%s", starter, err, out, problems.String())
		}
		return sections(string(out))
	}
	ours := run("/usr/local/sbin/condor_pod_starter")
	stock := run("/usr/sbin/condor_starter")
	for _, want := range []struct {
		of       string
		all      map[string]string
		section  string
		contains []string
	}{
		{"stock", stock, "slots", []string{`true "kvm" 256`}},
		{"stock", stock, "ran", []string{"Normal termination (return value 0)", "42  -  MemoryUsage of job (MB)", "disk: the guest ran"}}, // MEMORY_USAGE_METRIC_VM
		{"stock", stock, "mismatched", []string{"VMGAHP_ERR_JOBCLASSAD_KVM_MISMATCHED_CHECKPOINT", "Code 6 Subcode 11"}},                  // VM_CkptMac
		{"stock", stock, "serverless", []string{"Job not found at execution machine"}},                                                    // VM_GAHP_SERVER; it comes back for ever
		{"stock", stock, "suspended", []string{"Job was suspended", "Job was unsuspended", "Unspecified job interruption"}},
		{"stock", stock, "tested", []string{"An internal error prevented HTCondor from starting the VM.  This job will be rescheduled.  (VMGAHP_ERR_INTERNAL)"}}, // VMU_TESTING
		{"stock", stock, "offered", []string{`false "VMGAHP_ERR_INTERNAL"`}},
		{"stock", stock, "gahp", []string{"VMGahpLog"}},
		{"stock", stock, "log", []string{
			"Even if Condor config file defines 7 secs for vm status interval", "Will send the part of job ClassAd to vmgahp", // VM_STATUS_INTERVAL, VM_GAHP_SEND_ALL_CLASSAD
			"Calling Soft Suspend", // VM_SOFT_SUSPEND
		}},
		{"ours", ours, "slots", []string{"false undefined undefined"}},
		{"ours", ours, "ran", []string{"Job submitted"}},
		{"ours", ours, "anywhere", []string{"Job submitted"}},
		{"ours", ours, "startd", []string{"Cannot execute a VM universe job"}},
	} {
		for _, words := range want.contains {
			if !strings.Contains(want.all[want.section], words) {
				t.Errorf("%s: %s lacks %q:\n%s", want.of, want.section, words, want.all[want.section])
			}
		}
	}
	for _, section := range []string{"ran", "anywhere"} {
		if text := ours[section]; strings.Count(text, "...") != 1 {
			t.Errorf("ours: something was done with the job %s:\n%s", section, text)
		}
	}
	if text := ours["started"] + ours["gahp"]; text != "" {
		t.Errorf("a starter ran, or a server for virtual machines:\n%s", text)
	}
	if t.Failed() {
		t.Logf("stock:\n%s\nours:\n%s", stock["log"], ours["log"])
	}
}

// sections splits what the script printed.
func sections(out string) map[string]string {
	all := map[string]string{}
	name := ""
	for line := range strings.Lines(out) {
		if title, ok := strings.CutPrefix(line, "== "); ok {
			name = strings.TrimSpace(title)
			continue
		}
		all[name] += line
	}
	return all
}
