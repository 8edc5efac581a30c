// Package decision decides which pods are made and which are withdrawn.
//
// Decide is a pure function: whatever it depends on is in its Input, the clock
// and what is remembered from before included, and it changes nothing. What it
// wants remembered is in its Output. So a decision can be repeated, simulated
// and explained.
//
// It works in one pass over the idle jobs, in the order of the users' fair
// shares, as the negotiator would serve them. A job takes the first place that it
// fits into:
//
//  1. free room of pods that run,
//  2. room that running jobs will leave soon,
//  3. room of pods that are on their way,
//  4. a new pod, if limits, back-off and ramp allow one,
//  5. room of pods for which no node has room.
//
// A place serves several jobs one after another where their run time is known and
// short. Pods on their way that no job took are withdrawn once that has lasted.
// Pods that run are never removed: they end by themselves.
package decision
