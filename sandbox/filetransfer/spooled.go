package filetransfer

import (
	"strings"

	"podstarter/sandbox/jobfiles"
)

// What goes into SpooledOutputFiles, in names and in bytes of them. With more there
// are none: the access point then takes what the job names itself.
const (
	maxSpooled      = 50_000
	maxSpooledBytes = 4 << 20
)

// spooled notes a name for SpooledOutputFiles: of directories the directory
// alone, and not standard output and error, which the access point adds by
// itself.
//
// A name that such a list cannot hold leaves a job that names no output without
// a list: the access point then finds what is new by itself. Of other jobs it
// keeps those away that would be worse, with an end of a line: the schedd refuses
// the attribute, and with it all of the update (qmgmt.cpp:SetAttribute), which the
// shadow then tries again until it gives the job back to the queue, for ever.
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
