package payloadrun

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"podstarter/classads"
	"podstarter/condor/job"
	"podstarter/sandbox"
)

// NewName is a name for a run of a job in a slot, which no other run on this machine has, and which can be part of a file's name.
func NewName(slot string) string {
	safe := []byte(slot)
	for i, c := range safe {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' {
			safe[i] = '_'
		}
	}
	return fmt.Sprintf("%s-%d-%s", safe, os.Getpid(), strconv.FormatInt(time.Now().UnixNano(), 36))
}

// FilesOwner is the payload's user for the sandbox; a starter without root's rights
// has no other user than its own.
func (j *Job) FilesOwner() sandbox.Owner {
	if os.Getuid() != 0 {
		return sandbox.Self()
	}
	return sandbox.Owner{UID: j.UID, GID: j.GID}
}

// ScratchPath is where the sandbox is, or will be.
func (j *Job) ScratchPath() string {
	in := j.Settings.Condor.Execute
	if j.Settings.ScratchDir != "" {
		in = j.Settings.ScratchDir
	}
	dir := filepath.Join(in, fmt.Sprintf("dir_%d", os.Getpid()))
	if j.Settings.Condor.NestedScratch {
		return filepath.Join(dir, "scratch")
	}
	return dir
}

// WriteAds leaves the ads of job and slot in the sandbox, without what only
// daemons may know (starter.cpp:WriteAdFiles).
func (j *Job) WriteAds() error {
	ads := []struct {
		name string
		ad   *classads.Ad
	}{{job.JobAdFile, j.Ad}, {job.MachineAdFile, j.Machine}, {".execution_overlay.ad", j.Overlay}}
	for _, file := range ads {
		if file.ad == nil || file.ad.Len() == 0 {
			continue
		}
		if err := j.Sandbox.WriteFile(file.name, []byte(file.ad.Public().FormatOld()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Version is the version of HTCondor that this starter speaks: that of the startd that
// runs it, as with stock, where both come from one package. The shadow picks its protocol
// by it.
func (j *Job) Version() string { return j.Machine.StringOr("CondorVersion", "") }

// ProxyExpiry is when an X.509 proxy that is delegated now shall expire; the zero time:
// when the user's own does.
func (j *Job) ProxyExpiry() time.Time {
	expires, err := job.ProxyExpiry(j.Ad, j.Settings.Config, time.Now())
	if err != nil {
		j.Log.Warn("A knob about X.509 proxies is not understood, its default holds", "error", err)
	}
	return expires
}

// ClaimID is the id of the claim; a secret.
func (j *Job) ClaimID() string {
	for _, ad := range []*classads.Ad{j.Ad, j.Secrets} {
		if ad == nil {
			continue
		}
		if id, err := ad.GetString("ClaimId"); err == nil && id != "" {
			return id
		}
	}
	return ""
}

// RunName is the name of a run of the payload in the control directory: an exit record
// of the run before must not be taken for this one's. runs is how many there were.
func (j *Job) RunName(runs int) string {
	if runs == 0 {
		return j.Name
	}
	return fmt.Sprintf("%s-%d", j.Name, runs)
}
