// Package procfamily knows which processes are the payload, signals all of them at
// once, and proves that none is left.
//
// With root, only the payload runs under its user ID, so the payload is every process of
// that user: nothing a process does (a new session, a double fork, another parent) takes it
// out of the set. Without root, the payload shares its user ID with the starter and other
// programs, so the payload is every descendant of the wrapper. The wrapper takes over
// orphans (PR_SET_CHILD_SUBREAPER), so a process cannot escape by losing its parent.
//
// The package runs on both sides of the socket, and therefore imports the
// standard library and golang.org/x/sys only.
package procfamily
