package payloadrun_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"podstarter/sandbox"
)

// TestWriteAds: job and payload find the ads in the sandbox, without secrets, and those
// alone that there are.
func TestWriteAds(t *testing.T) {
	j := aJob(t, `ClaimId = "secret"`, nil)
	j.Machine = parsed(t, "Cpus = 3\nClaimId = \"secret\"")
	must(t, j.WriteAds())
	for name, want := range map[string]string{
		".job.ad":               "Cmd = \"/bin/job\"\nIwd = \"/home/alice\"\nTransferExecutable = false\n",
		".machine.ad":           "Cpus = 3\n",
		".execution_overlay.ad": "",
	} {
		text, err := os.ReadFile(filepath.Join(j.Sandbox.Scratch(), name))
		if string(text) != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v, want %q", name, text, err, want)
		}
	}
	j.Overlay = parsed(t, "Rank = 1")
	must(t, os.Mkdir(filepath.Join(j.Sandbox.Scratch(), ".execution_overlay.ad"), 0o700))
	if err := j.WriteAds(); err == nil {
		t.Error("an ad that cannot be written is no error")
	}
}

// TestScratchPath is where the sandbox will be.
func TestScratchPath(t *testing.T) {
	dir := "dir_" + strconv.Itoa(os.Getpid())
	for want, knobs := range map[string]map[string]string{
		"/execute/" + dir:              {"EXECUTE": "/execute"},
		"/execute/" + dir + "/scratch": {"EXECUTE": "/execute", "STARTER_NESTED_SCRATCH": "true"},
	} {
		j := aJob(t, "", knobs)
		if got := j.ScratchPath(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		j.Settings.ScratchDir = "/volume"
		if got := j.ScratchPath(); got != "/volume"+want[len("/execute"):] {
			t.Errorf("in a volume: %q", got)
		}
	}
}

// TestIdentity is who the job is to others: the owner of its files, its claim, and the
// name of each run.
func TestIdentity(t *testing.T) {
	j := aJob(t, "", nil)
	want := sandbox.Owner{UID: nobodys, GID: nobodys}
	if os.Getuid() != 0 {
		want = sandbox.Self()
	}
	if got := j.FilesOwner(); got.UID != want.UID || got.GID != want.GID {
		t.Errorf("the files are %+v's, want %+v", got, want)
	}
	if got := j.ClaimID(); got != "" {
		t.Errorf("without a claim: %q", got)
	}
	j.Secrets = parsed(t, `ClaimId = "the startd's"`)
	if got := j.ClaimID(); got != "the startd's" {
		t.Errorf("the claim is %q", got)
	}
	j.Ad.SetString("ClaimId", "the job's")
	if got := j.ClaimID(); got != "the job's" {
		t.Errorf("the claim is %q", got)
	}
	j.Machine.SetString("CondorVersion", "v")
	if j.Version() != "v" || j.RunName(0) != "activation" || j.RunName(2) != "activation-2" {
		t.Errorf("%q, %q, %q", j.Version(), j.RunName(0), j.RunName(2))
	}
}

// TestProxyExpiry: a knob that is not understood leaves its default.
func TestProxyExpiry(t *testing.T) {
	j := aJob(t, "", map[string]string{"DELEGATE_JOB_GSI_CREDENTIALS_LIFETIME": "3600"})
	if left := time.Until(j.ProxyExpiry()); left < 50*time.Minute || left > 61*time.Minute {
		t.Errorf("it expires in %s, want an hour", left)
	}
	j = aJob(t, "", map[string]string{"DELEGATE_JOB_GSI_CREDENTIALS_LIFETIME": "x"})
	if left := time.Until(j.ProxyExpiry()); left < 2*time.Hour {
		t.Errorf("it expires in %s, want a day or so", left)
	}
}
