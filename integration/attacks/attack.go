package attacks

import (
	"slices"

	"podstarter/integration/harness"
)

// Mode is what pilot and payload containers share (docs/admin/modes.md).
type Mode = harness.Mode

// Modes are all of them, in the order of docs/admin/modes.md.
var Modes = []Mode{harness.Shared, harness.Unshared, harness.Rootless}

// hasRoot are the modes whose pilot is root, and gives each job a user of its own.
var hasRoot = []Mode{harness.Shared, harness.Unshared}

var rootless = []Mode{harness.Rootless}

// in reports whether a mode is in a list; a nil list has them all.
func in(mode Mode, list []Mode) bool { return list == nil || slices.Contains(list, mode) }

// An Attack is something that a hostile job tries.
type Attack struct {
	Name   string // as the probe knows it, except those of the outcome
	Threat string // for docs/developer/threats.md
	Tried  string // how
	// It gets through in any of the Ways.
	Ways []Way
	// In are the modes in which it can be tried; Else says what holds in the others.
	In   []Mode
	Else string
	// Outside: the job's report does not have the result, the test looks for it.
	Outside bool
	// Plugin: not the job tries it, but a file transfer plugin that the job brings, in
	// the pilot container. The probe knows it without PluginPrefix.
	Plugin bool
	// Victim: it is tried where a neighbour runs in the other slot.
	Victim bool
	// Alone: it is tried only in settings that name it.
	Alone bool
}

// A Way lets an attack get through if all its defences are off.
type Way struct {
	Without []string
	In      []Mode // nil: in all modes
}

func without(defences ...string) Way { return Way{Without: defences} }

func (w Way) in(modes []Mode) Way {
	w.In = modes
	return w
}

// of returns the defences of the way that a mode has.
func (w Way) of(mode Mode) []string {
	return slices.DeleteFunc(slices.Clone(w.Without), func(name string) bool { return !in(mode, defence(name).In) })
}

// waysIn returns the ways of a mode.
func (a Attack) waysIn(mode Mode) []Way {
	return slices.DeleteFunc(slices.Clone(a.Ways), func(w Way) bool { return !in(mode, w.In) })
}

// tries reports whether the attack is tried in a setting.
func (a Attack) tries(s Setting, mode Mode) bool {
	switch {
	case !in(mode, a.In), slices.Contains(s.Not, a.Name):
		return false
	case a.Alone:
		return slices.Contains(s.Also, a.Name)
	}
	switch a.Name {
	case LeftBehind, StopSignal, CutOff:
		return s.Second
	case Pipe:
		return s.Pipe
	case Orphans:
		return s.Killed
	}
	return s.Victim || !a.Victim
}

// falls reports whether the attack must get through.
func (a Attack) falls(mode Mode, off []string) bool {
	return slices.ContainsFunc(a.waysIn(mode), func(w Way) bool { return subset(w.of(mode), off) })
}

// byNode reports whether one of the node's defences holds the attack off.
func (a Attack) byNode(mode Mode) bool {
	return slices.ContainsFunc(a.waysIn(mode), func(w Way) bool {
		return slices.ContainsFunc(w.of(mode), func(name string) bool { return defence(name).Node })
	})
}

// lookUp finds an attack by its name.
func lookUp(name string) Attack {
	for _, a := range Attacks {
		if a.Name == name {
			return a
		}
	}
	panic("no attack " + name)
}
