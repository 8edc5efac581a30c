// Package usage measures what a payload uses of its machine: CPU time, memory,
// I/O and processes (Meter), the load that the startd is told (LoadReport), and
// the size of its sandbox (SandboxSize).
//
// A report must not wait for a payload that nobody can measure. So each
// measurement has a time limit, a caller who comes while another looks uses
// what that one sees, and the end of the job cuts both short.
package usage
