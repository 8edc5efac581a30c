// Package compare runs the same jobs under the stock starter and ours, in one
// pool, and compares what HTCondor keeps of them: the history ad and the event
// log. Values that differ between any two runs of one job (times, process
// numbers, the name of the slot) are written as what they are; everything else
// must be equal, unless differences.json lists it with the reason. That file is
// also the source of the table in docs/differences.md.
package compare
