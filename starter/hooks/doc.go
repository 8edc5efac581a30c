// Package hooks runs the site's programs for a job: the hooks of the job's keyword, the
// programs that prepare and tidy the places of a job, the job wrapper, and the diagnostics
// that a shadow may ask for.
package hooks
