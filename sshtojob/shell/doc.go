// Package shell is what a visitor gets in a container without a shell: enough to
// look around, to read files, to see and signal processes, and to run the
// programs that are there. It is no sh: it has no pipes, redirections, variables
// of its own or control flow, and says so when it meets them.
//
// It runs in the payload's container as the payload, and uses nothing but the
// kernel.
package shell
