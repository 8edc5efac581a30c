// Package activation is one run of one job, from the startd starting this process to the
// process leaving: the phases ([phase] has their order), and what goes on beside them. It
// knows when things happen; the other packages below starter/ know how.
package activation
