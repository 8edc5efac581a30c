//go:build pool

package e2e

import (
	"testing"

	"podstarter/integration/harness"
)

// TestNewlineInAName returns a file whose name cannot be in the job's ad. The stock
// starter puts it there, the schedd refuses that update, and the job goes back to
// the queue for ever.
func TestNewlineInAName(t *testing.T) {
	s := job("", "executable = script")
	s.Files = append(s.Files, harness.File{Name: "script", Mode: 0o755,
		Content: []byte("#!/bin/sh\necho odd >'new\nline'; echo plain >plain\n")})
	job := submit(t, s)[0]
	mustExit(t, job, 0)
	for name, want := range map[string]string{"new\nline": "odd\n", "plain": "plain\n"} {
		if got := output(t, job, name); got != want {
			t.Errorf("%q holds %q, want %q", name, got, want)
		}
	}
}
