// Package model is a platform in memory, for tests and simulations.
package model

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"podstarter/provisioner/backoff"
	"podstarter/provisioner/platform"
)

// Model is a platform. Its methods may be called at once.
type Model struct {
	now func() time.Time

	mu    sync.Mutex
	units map[string]*platform.Unit
	deny  bool
}

// New returns an empty model.
func New(now func() time.Time) *Model {
	return &Model{now: now, units: map[string]*platform.Unit{}}
}

// List implements platform.Platform.
func (m *Model) List(context.Context) ([]platform.Unit, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []platform.Unit
	for _, u := range m.units {
		all = append(all, *u)
	}
	slices.SortFunc(all, func(a, b platform.Unit) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// Create implements platform.Platform.
func (m *Model) Create(_ context.Context, spec platform.Spec) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.deny {
		return fmt.Errorf("making %s: %w", spec.Name, platform.ErrDenied)
	}
	if m.units[spec.Name] == nil {
		m.units[spec.Name] = &platform.Unit{Spec: spec, Hosts: []string{spec.Name}, Created: m.now()}
	}
	return nil
}

// Withdraw implements platform.Platform.
func (m *Model) Withdraw(_ context.Context, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if u := m.units[name]; u != nil && u.Phase != platform.Pending {
		return fmt.Errorf("withdrawing %s: %w", name, platform.ErrBegun)
	}
	delete(m.units, name)
	return nil
}

// End implements platform.Ender.
func (m *Model) End(_ context.Context, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if u := m.units[name]; u != nil && u.Use == platform.Used {
		return fmt.Errorf("ending %s: %w", name, platform.ErrBegun)
	}
	delete(m.units, name)
	return nil
}

// change changes a unit that must be there.
func (m *Model) change(name string, change func(u *platform.Unit)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(m.units[name])
}

// Begin lets a unit run.
func (m *Model) Begin(name string) {
	m.change(name, func(u *platform.Unit) {
		u.Phase, u.Began, u.Trouble, u.Detail = platform.Running, m.now(), "", ""
	})
}

// Finish ends a unit well.
func (m *Model) Finish(name string) {
	m.change(name, func(u *platform.Unit) { u.Phase, u.Ended = platform.Ended, m.now() })
}

// Fail ends a unit that came to nothing.
func (m *Model) Fail(name string) {
	m.Finish(name)
	m.change(name, func(u *platform.Unit) { u.Trouble, u.Detail = backoff.Failed, "exit code 1" })
}

// Stick notes that there is no room for a unit.
func (m *Model) Stick(name string) {
	m.change(name, func(u *platform.Unit) { u.Trouble, u.Detail = backoff.Unschedulable, "0/3 nodes are available" })
}

// Refuse notes that the pod of a unit is refused.
func (m *Model) Refuse(name string) {
	m.change(name, func(u *platform.Unit) { u.Trouble, u.Detail = backoff.Denied, "exceeded quota" })
}

// Place notes that a unit has a node.
func (m *Model) Place(name string) {
	m.change(name, func(u *platform.Unit) { u.Placed = m.now() })
}

// Spoil notes that the node of a unit cannot pull its image.
func (m *Model) Spoil(name string) {
	m.change(name, func(u *platform.Unit) {
		u.Placed, u.Trouble, u.Detail = m.now(), backoff.ImageFailed, "ImagePullBackOff"
	})
}

// Mark notes what can be told of the jobs of a unit.
func (m *Model) Mark(name string, use platform.Use) {
	m.change(name, func(u *platform.Unit) { u.Use = use })
}

// Leave notes that a unit is being deleted.
func (m *Model) Leave(name string) { m.change(name, func(u *platform.Unit) { u.Leaving = true }) }

// NoImage notes that the pilot's image of a unit cannot be pulled.
func (m *Model) NoImage(name string) {
	m.change(name, func(u *platform.Unit) { u.Trouble, u.Detail = backoff.ImageFailed, "ErrImagePull" })
}

// Former notes that a unit's template has another manifest by now.
func (m *Model) Former(name string) { m.change(name, func(u *platform.Unit) { u.Former = true }) }

// Deny makes the model refuse new units, or not.
func (m *Model) Deny(deny bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.deny = deny
}

// Forget removes a unit that has ended.
func (m *Model) Forget(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.units, name)
}
