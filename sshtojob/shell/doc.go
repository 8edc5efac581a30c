// Package shell is a small shell for containers without one: enough to look
// around, to read files, to see and signal processes, and to run the programs of
// the image. It is not sh: it has no pipes, redirections, variables of its own
// or control flow, and says so when they are used.
//
// It runs in the payload's container as the payload, and needs only the kernel.
package shell
