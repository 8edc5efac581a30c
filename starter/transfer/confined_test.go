package transfer_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"podstarter/condor/config"
	"podstarter/sandbox/confine"
	"podstarter/starter/hostprog"
	"podstarter/starter/hostprog/hostprogtest"
	"podstarter/starter/settings"
	"podstarter/starter/transfer"
)

// TestWithoutRoot: where plugins run as the pilot's own user, no URL names a file of the
// pilot container.
func TestWithoutRoot(t *testing.T) {
	if !hostprogtest.AsPilot(t) {
		return
	}
	for _, backend := range []string{settings.BackendPod, settings.BackendLocal} {
		knobs := sitePlugin(t, "")
		knobs["LOCK"] = t.TempDir()
		set, err := settings.Read(config.FromMap(knobs))
		must(t, err)
		set.Backend, set.PrivateDir = backend, t.TempDir()
		host := hostprog.New(hostprog.Options{SeparateUsers: set.SeparateUsers(), KernelConfines: func() error { return nil }})
		found := transfer.NewFinder(host, set, []string{"PATH=/usr/bin:/bin"}, quiet).All(t.Context())
		if found.Find("x://host/file") == nil {
			t.Errorf("%s: there is no plugin", backend)
		}
		if files := found.Find("file:///etc/passwd") != nil; files == set.InPod() {
			t.Errorf("%s: URLs name files: %v", backend, files)
		}
	}
}

// TestFinder: what is wrong with some plugins keeps nobody from the others, unless a knob
// is not understood. On a kernel that cannot confine plugins none is run.
func TestFinder(t *testing.T) {
	marks := filepath.Join(t.TempDir(), "ran")
	good := sitePlugin(t, "")["FILETRANSFER_PLUGINS"]
	odd := hostprogtest.Script(t, "echo x >>"+marks+"; exit 1")
	for name, tt := range map[string]struct {
		knobs    map[string]string
		host     hostprog.Options
		disabled bool
		good     bool
	}{
		"all":            {knobs: map[string]string{"FILETRANSFER_PLUGINS": good + "," + odd}, host: hostprog.Options{SeparateUsers: true}, good: true},
		"a bad knob":     {knobs: map[string]string{"FILETRANSFER_PLUGINS": good, "ENABLE_URL_TRANSFERS": "1 +"}, host: hostprog.Options{SeparateUsers: true}, disabled: true},
		"not to confine": {knobs: map[string]string{"FILETRANSFER_PLUGINS": odd}, host: hostprog.Options{KernelConfines: func() error { return confine.ErrUnsupported }}, disabled: true},
	} {
		t.Run(name, func(t *testing.T) {
			_ = os.Remove(marks)
			knobs := map[string]string{"LOCK": t.TempDir()}
			maps.Copy(knobs, tt.knobs)
			set, err := settings.Read(config.FromMap(knobs))
			must(t, err)
			set.Backend, set.PrivateDir = settings.BackendLocal, t.TempDir()
			found := transfer.NewFinder(hostprog.New(tt.host), set, []string{"PATH=/usr/bin:/bin"}, quiet).All(t.Context())
			if found.Disabled() != tt.disabled || (found.Find("x://host/file") != nil) != tt.good {
				t.Errorf("disabled: %v, the good one: %v", found.Disabled(), found.Find("x://host/file"))
			}
			if _, err := os.Stat(marks); tt.disabled && !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a program ran: %v", err)
			}
		})
	}
}
