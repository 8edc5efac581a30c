// Package audit checks the pod, and the pilot in it, for whatever could keep jobs from
// running or make them less safe than they should be: briefly at each start of a startd
// ([Inspector.Check]), and thoroughly when a person asks ([Inspector.Audit]). It
// changes nothing.
package audit
