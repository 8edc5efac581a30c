// Package backendtest is a test suite that every [payload.Backend] must pass. Real payloads
// run in real wrappers: the TestMain of the backend's tests calls agenttest.Main.
package backendtest

import (
	"errors"
	"testing"

	"podstarter/payload"
)

// Fixture is a correctly configured backend, and the events that its surroundings can
// cause. An event that cannot happen to a backend is nil.
type Fixture struct {
	Backend payload.Backend
	// Slots is how many leases there can be at a time. 0 means any number, all with the user
	// of this process.
	Slots int
	// Inspected makes a backend only for Check and Audit. With wrong, its configuration has
	// a mistake that keeps jobs from running; the backend is nil if no such mistake exists.
	Inspected func(t *testing.T, wrong bool) payload.Backend
	// Hold makes another process take a lease; kill ends that process with SIGKILL.
	Hold func(t *testing.T) (kill func())
	// Break makes bindings fail from now on; the user is not at fault.
	Break func(t *testing.T)
	// Stall keeps wrappers from announcing themselves from now on. The channel gets a value
	// when one has started.
	Stall func(t *testing.T) (started <-chan struct{})
	// End ends a container under its job, as the kernel does when memory runs out.
	End func(t *testing.T, c payload.Container)
	// TakeDown announces to a container that it and its job are going to be ended.
	TakeDown func(t *testing.T, c payload.Container)
	// Rebinds says that a lease with a container can be bound again.
	Rebinds bool
	// Images is nil for a backend without a choice of images.
	Images *Images
}

// Images are images of a backend, as Container.Image spells them.
type Images struct {
	// Default is what jobs without an image get.
	Default string
	// Other is another image that the backend can provide.
	Other string
	// Refuse gives an image that the registry does not have.
	Refuse func(t *testing.T, image string)
}

// Run runs the suite. Each test makes a fixture of its own, and most run at once.
func Run(t *testing.T, make func(t *testing.T) Fixture) {
	t.Run("nothing leaks", func(t *testing.T) { nothingLeaks(t, make(t)) }) // alone
	for _, part := range []struct {
		name string
		run  func(*testing.T, Fixture)
	}{
		{"Check and Audit", checkAndAudit},
		{"Check and Audit beside a job", auditBesideJob},
		{"leases exclude each other", leasesExclude},
		{"leases for files only", leasesOfFiles},
		{"a lease ends with its process", leaseEndsWithProcess},
		{"bind", bind},
		{"images", images},
		{"images that do not exist", refusedImages},
		{"bind fails", bindFails},
		{"bind ends with its context", bindEnds},
		{"a second bind", secondBind},
		{"payloads", payloads},
		{"sweep", sweep},
		{"execution", execution},
		{"a container is lost", lost},
		{"a container is taken down", takenDown},
		{"release kills", releaseKills},
		{"after release", afterRelease},
	} {
		t.Run(part.name, func(t *testing.T) {
			t.Parallel()
			part.run(t, make(t))
		})
	}
}

// verdict finds the verdict in an error.
func verdict(t *testing.T, err error) *payload.Verdict {
	t.Helper()
	v := (*payload.Verdict)(nil)
	if !errors.As(err, &v) {
		t.Fatalf("error %T instead of a verdict: %v", err, err)
	}
	if v.Message == "" {
		t.Errorf("the verdict has no message: %+v", v)
	}
	return v
}

// notUsers checks that a failure has a verdict that does not blame the user.
func notUsers(t *testing.T, err error) *payload.Verdict {
	t.Helper()
	v := verdict(t, err)
	if v.Blame != payload.Site && v.Blame != payload.Pilot {
		t.Errorf("%s is blamed: %v", v.Blame, v)
	}
	return v
}
