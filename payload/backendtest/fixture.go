// Package backendtest says what a backend owes its caller, as a suite that every
// [payload.Backend] passes. Real payloads run in real wrappers: the package of the
// backend's tests begins with agenttest.Main.
package backendtest

import (
	"errors"
	"testing"

	"podstarter/payload"
)

// Fixture is a backend with nothing wrong, and what its surroundings can do to it.
// What a backend cannot meet with is nil.
type Fixture struct {
	Backend payload.Backend
	// Slots is how many leases there can be at a time. It is 0 for a backend that
	// gives as many as are wanted, all with the user of this process.
	Slots int
	// Inspected makes a backend for Check and Audit alone. With wrong there is a
	// mistake in its configuration that keeps jobs from running; the backend is nil
	// if there can be none.
	Inspected func(t *testing.T, wrong bool) payload.Backend
	// Hold has another process take a lease, and kill it with SIGKILL.
	Hold func(t *testing.T) (kill func())
	// Break makes bindings fail from now on, through no fault of the user's.
	Break func(t *testing.T)
	// Stall keeps wrappers from announcing themselves from now on. The channel has a
	// value when one has been started.
	Stall func(t *testing.T) (started <-chan struct{})
	// End ends a container under its job, as the kernel does for want of memory.
	End func(t *testing.T, c payload.Container)
	// TakeDown tells a container that it is going to be ended with its job.
	TakeDown func(t *testing.T, c payload.Container)
	// Rebinds says that a lease with a container can be bound again.
	Rebinds bool
	// Images is nil for a backend without a choice of images.
	Images *Images
}

// Images are those of a backend, as Container.Image spells them.
type Images struct {
	// Default is what jobs without an image get.
	Default string
	// Other can be had as well.
	Other string
	// Refuse makes the registry not have an image.
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
		{"a lease ends with its process", leaseEndsWithProcess},
		{"bind", bind},
		{"images", images},
		{"images that cannot be had", refusedImages},
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
		t.Fatalf("no verdict but %T: %v", err, err)
	}
	if v.Message == "" {
		t.Errorf("the verdict says nothing: %+v", v)
	}
	return v
}

// notUsers checks that a failure is somebody's, and not the user's.
func notUsers(t *testing.T, err error) *payload.Verdict {
	t.Helper()
	v := verdict(t, err)
	if v.Blame != payload.Site && v.Blame != payload.Pilot {
		t.Errorf("%s is blamed: %v", v.Blame, v)
	}
	return v
}
