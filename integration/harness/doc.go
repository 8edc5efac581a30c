// Package harness is what the tests on a real pool have in common: it talks to
// the program that runs cluster and pool, submits jobs as the ordinary user,
// waits for what their event logs say, and reads what is left of a job
// afterwards: history ads, starter logs, processes.
//
// Nothing here waits by the clock. The user's home directory of the submit side
// is visible on this machine, so inotify tells when an event log or a history
// file changed; the end of a process comes from its pidfd. What offers no event
// (a process that is about to appear in a pod) is looked for at short intervals
// until the context ends.
package harness
