// Package localexec runs payloads without a pod: the wrapper runs beside the
// starter, as a second process of the same program. It is for plain execution
// points, development and tests. The backend binds no images: the starter has the machine's own
// runtime start jobs in them (localexec/apptainer), and [Backend.Probe] finds out whether that
// works.
//
// With root, the payload has a user ID that no other payload on the machine has at that
// time, and everything is as in a pod except the container itself. Without root, the
// payload is the same user as the starter: it can kill the starter and read its files, as
// under condor_starter.
//
// Root's wrappers have a mount namespace each ([Options.Mounts]), in which directories of the sandbox can take the place of
// the machine's for all that the payload runs. It ends with the last of these processes.
//
// A payload can have a PID namespace ([payload.BindRequest.OwnProcesses]): the wrapper is its first process then, and the kernel kills the others
// when that ends. The starter sees all of them all the same.
//
// If the starter dies, so do wrapper and payload: the wrapper sees the end of its
// connection and also gets a signal (prctl(2), PR_SET_PDEATHSIG). If someone kills the
// wrapper itself, root's next lease of the user ID kills what is left; without root, the
// payload's main process dies with the wrapper, and the startd has to end its orphans.
//
// A program that uses this package calls agent.Dispatch first thing in main.
package localexec
