// Package condor has no code of its own; its subpackages hold what HTCondor's
// daemons and a starter say to each other:
//
//   - config: the knobs, read through condor_config_val
//   - daemonlog: the log file, in the format that HTCondor's tools read
//   - version: $CondorVersion$ strings, by which features are gated
//   - startd: what a startd hands to the starter it spawns, the updates it
//     wants, the keep-alive
//   - shadow: the remote calls on the syscall socket
//   - job: what the job ad means, as functions without daemons
//
// None of them knows how a payload runs. Comments name the source of a fact as
// file:function of the HTCondor source tree, without its leading src/.
package condor
