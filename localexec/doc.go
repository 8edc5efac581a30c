// Package localexec runs payloads without a pod: the wrapper runs beside the
// starter, as a second process of the same program. It is for plain execution
// points, development and tests. There is no choice of image.
//
// With root, the payload has a user ID that no other payload on the machine has
// at that time, and everything holds that holds in a pod, but for the container
// itself. Without root, the payload is the same user as the starter: it could
// kill the starter and read its files, as it can under condor_starter.
//
// If the starter dies, so do wrapper and payload: the wrapper sees the end of
// its connection and gets a signal besides (prctl(2), PR_SET_PDEATHSIG). Should
// someone kill the wrapper itself, root's next lease of the user ID kills what
// is left; without root, the main process of the payload dies with the wrapper
// and its orphans are left to the startd.
//
// A program that uses this package calls agent.Dispatch first thing in main.
package localexec
