package payloadrun

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"podstarter/condor/job"
	"podstarter/payload"
	"podstarter/starter/failure"
)

// MissingInput is the failure of a job whose standard input did not come into
// its sandbox, nil for any other. The stock starter opens a job's files before
// the shadow hears that the job begins (os_proc.cpp:StartJob); here the launcher
// opens them afterwards, so the starter reports what it knows before.
func (j *Job) MissingInput(stdin string, cmd job.Command) error {
	name, inside := strings.CutPrefix(stdin, j.Sandbox.Scratch()+"/")
	if !inside {
		return nil
	}
	if _, err := j.Sandbox.ModTime(name); !errors.Is(err, fs.ErrNotExist) {
		return nil // the launcher finds what else is wrong with it
	}
	return failure.OfStart(&payload.StartError{Stage: payload.StageStdin, Path: stdin, Errno: syscall.ENOENT}, cmd)
}
