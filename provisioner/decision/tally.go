package decision

import "slices"

// Tally counts pods against what limits them, for decisions whose demand is not
// told in groups of jobs (package offline).
type Tally struct{ gates gates }

// NewTally counts the pods of an input.
func NewTally(in *Input) *Tally { return &Tally{newGates(in)} }

// Refuses says why no pod of a shape is made; it is empty if one may.
func (t *Tally) Refuses(shape int) string {
	if r := t.gates.user(""); r.why != "" {
		return r.why
	}
	return t.gates.shape(shape).why
}

// Made counts a pod of a shape that is made now.
func (t *Tally) Made(shape int) {
	t.gates.round++
	t.gates.count(Pod{Shape: shape})
}

// Later is a copy for the next decision, which makes as many pods at a time again.
func (t *Tally) Later() *Tally {
	g := t.gates
	g.round = 0
	g.shapes, g.template, g.arriving = slices.Clone(g.shapes), slices.Clone(g.template), slices.Clone(g.arriving)
	g.trying, g.stuck, g.coming = slices.Clone(g.trying), slices.Clone(g.stuck), slices.Clone(g.coming)
	return &Tally{g}
}

// Full reports whether no further pod is made at this time, whatever its shape.
func (t *Tally) Full() bool {
	return reached(t.gates.round, t.gates.in.Limits.PerRound) || t.gates.round >= mostPods
}

// Key names a shape across decisions.
func (in *Input) Key(shape int) string { return in.key(shape) }
