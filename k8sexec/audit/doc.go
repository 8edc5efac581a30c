// Package audit looks at the pod and the pilot in it for whatever could keep jobs from
// running, or make them less safe than they should be: briefly whenever a startd
// starts ([Inspector.Check]), and thoroughly for a person who asks
// ([Inspector.Audit]). It changes nothing.
package audit
