// Package settings reads all knobs that the starter uses, ours and HTCondor's,
// once, and reports everything that is wrong with them at once.
//
// Knobs that are expressions over a slot and a job have no value before there is a
// job; they are evaluated where they matter, through Settings.Config.
package settings
