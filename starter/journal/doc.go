// Package journal carries what starters do to the one process of the pod that tells its
// operator about it.
//
// A starter lives as long as its job, so it appends a line for each event to a file in the
// state directory, which only root, or a pilot without root, may enter. One reader, the
// keeper, follows the file:
//
//	starter ──Write──▶ events ──Reader──▶ keeper
//
// A starter never waits for the reader: if nobody reads, the file stops growing, and what
// comes after that is lost.
package journal
