package jobfiles

import (
	"errors"

	"golang.org/x/sys/unix"

	"podstarter/sandbox/beneath"
)

// LeftOut is what an upload leaves out because it cannot be sent: things that the job
// did not name, but that were found below a directory that it named, or in the search
// for changed files. What the job names itself is never left out; it fails.
//
// HTCondor leaves most of this out as well, and tells nobody (src/condor_utils/
// directory.cpp:Next).
type LeftOut struct {
	First []Missing // at most five
	Count int       // of all
}

// Missing is one thing that is left out.
type Missing struct {
	Name string // in the sandbox; "." is the sandbox itself, of which nothing can be sent
	Err  error  // why it cannot be sent
}

// maxFirst bounds the things that are kept: a job can make millions of them.
const maxFirst = 5

func (l *LeftOut) add(name string, err error) {
	if l.Count++; len(l.First) < maxFirst {
		l.First = append(l.First, Missing{Name: name, Err: err})
	}
}

// nothing reports whether err says that there is nothing to send: a link that leads
// nowhere, or a file that is gone.
func nothing(err error) bool { return isAny(err, unix.ENOENT, unix.ENOTDIR, unix.ELOOP) }

// permanent reports whether err is the job's doing. Any other error, such as one of the
// disk, fails the upload even if the job did not name the file.
func permanent(err error) bool {
	return nothing(err) || isAny(err, unix.EACCES, unix.EPERM, unix.ENAMETOOLONG, beneath.ErrOutside)
}

func isAny(err error, targets ...error) bool {
	for _, target := range targets {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}
