package payloadrun

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"podstarter/payload"
)

// Rehearse finds out whether the wrapper can open the standard files of a main process that
// is to start. The stock starter opens them before the shadow hears that the job begins
// (os_proc.cpp:StartJob), the launcher only at the start, which comes afterwards. A job whose
// files are ordinary ones of its sandbox pays nothing. An error is one of
// [payload.Client.Start] or [payload.Client.Wait]; no process is left unless ctx has ended or
// the wrapper is lost.
func (j *Job) Rehearse(ctx context.Context, c *Container, spec payload.Spec) error {
	in, out, diag := j.doubtful(spec.Stdin, read), j.doubtful(spec.Stdout, write), j.doubtful(spec.Stderr, write)
	if in+out+diag == "" {
		return nil
	}
	_, err := c.Start(ctx, payload.Spec{
		Activation: spec.Activation + ".stdio", // its exit record must not be taken for that of the run
		UID:        spec.UID, GID: spec.GID, Groups: spec.Groups,
		Path: spec.Path, Links: spec.Links, Umask: spec.Umask,
		Dir:   "/", // stock enters the job's own after the shadow has heard
		Stdin: in, Stdout: out, Stderr: diag, Append: spec.Append, Rehearse: true,
	})
	if err != nil {
		return err
	}
	exit, err := c.Client().Wait(ctx)
	if err == nil && exit.WaitStatus != 0 {
		err = fmt.Errorf("the rehearsal of the start ended with wait status %d %s", exit.WaitStatus, exit.Killed)
	}
	return err
}

// Permissions of a file's owner.
const (
	read  = 0o400
	write = 0o200
)

// doubtful gives back the path of a standard file that may fail to open, and nothing for
// another: that is an output file still to be made directly in the sandbox, or a regular file
// there whose owner has this permission. What a relative path means is known only at the start.
func (j *Job) doubtful(file string, permission uint32) string {
	if !path.IsAbs(file) || j.hidden(file) {
		return ""
	}
	name, inside := strings.CutPrefix(file, j.Sandbox.Scratch()+"/")
	if !inside || strings.Contains(name, "/") {
		return file
	}
	ordinary := false
	err := j.Sandbox.Payload().Do(func() error {
		st, err := j.Sandbox.Root().Lstat(name)
		ordinary = err == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && st.Mode&permission != 0
		return err
	})
	if ordinary || permission == write && errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return file
}
