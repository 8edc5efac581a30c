package filetransfer

import (
	"strings"

	"podstarter/sandbox/jobfiles"
)

// Bounds of SpooledOutputFiles, in names and in bytes of names. Beyond them the
// attribute is left out: the access point then takes what the job itself names.
const (
	maxSpooled      = 50_000
	maxSpooledBytes = 4 << 20
)

// spooled notes a name for SpooledOutputFiles: of a directory only the directory
// itself, and neither standard output nor error, which the access point adds by itself.
//
// If such a list cannot hold a name, a job that names no output gets no list: the
// access point then finds new files by itself. For other jobs spooled drops only names
// with an end of line, which do worse harm: the schedd refuses the attribute, and with
// it the whole update (qmgmt.cpp:SetAttribute); the shadow retries it until it gives
// the job back to the queue, forever.
func (u *upload) spooled(name string) {
	switch {
	case strings.Contains(name, "/") || name == jobfiles.BaseName(u.job.Stdout) || name == jobfiles.BaseName(u.job.Stderr) || u.named[name] || u.unnamed:
		return
	case len(u.named) == maxSpooled || u.spooledBytes+len(name) > maxSpooledBytes || u.plan.Pick.Changed && !listable(name):
		u.stats.spooled, u.named, u.unnamed = nil, nil, true
		return
	case strings.ContainsAny(name, "\n\r"):
		return
	}
	if u.named == nil {
		u.named = map[string]bool{}
	}
	u.named[name] = true
	u.spooledBytes += len(name)
	u.stats.spooled = append(u.stats.spooled, name)
}

// listable reports whether a list with commas gives the name back as it is.
func listable(name string) bool {
	return !strings.ContainsAny(name, ",\n\r") && strings.TrimSpace(name) == name
}
