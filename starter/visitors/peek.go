package visitors

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"

	"podstarter/condor/job"
	"podstarter/condor/owner"
	"podstarter/internal/cedar"
	"podstarter/sandbox/beneath"
)

// peek is STARTER_PEEK, with which condor_tail looks at the output of
// the running job. Files are opened as the payload, beneath the sandbox: the job
// may have replaced any of them, or a directory on the way, by a link.
func (d *Desk) peek(ctx context.Context, c *cedar.Call) error {
	request, err := owner.ReadPeek(c.Stream)
	if err != nil {
		return err
	}
	if err := d.permitted("ENABLE_PEEK_JOB"); err != nil {
		return err
	}
	ad, _ := d.ads()
	files, err := request.Files(ad)
	if err != nil {
		return err
	}
	sizes := make([]int64, len(files))
	for i, f := range files {
		if sizes[i], err = d.peekSize(f.Name); err != nil {
			return err
		}
	}
	return owner.Answer(c.Stream, request.Apportion(files, sizes), func(name string) (io.ReadSeekCloser, int64, error) {
		f, size, err := d.openForOwner(name)
		if err != nil {
			d.Log.Warn("Cannot open a file that the job's owner wants to see", "error", err)
			return nil, 0, err
		}
		return f, size, nil
	})
}

// openForOwner opens a file unless the job has ended and its sandbox may be
// going away.
func (d *Desk) openForOwner(name string) (*beneath.File, int64, error) {
	d.opening.RLock()
	defer d.opening.RUnlock()
	if refusal := d.state(); refusal != nil {
		return nil, 0, refusal
	}
	return d.sandbox().Open(name)
}

// peekSize says how long a file is. A file that cannot be read is shown as
// empty; the tool waits for one that does not exist yet.
func (d *Desk) peekSize(name string) (int64, error) {
	f, size, err := d.openForOwner(name)
	errno, refusal := syscall.Errno(0), (*owner.Refusal)(nil)
	switch {
	case errors.As(err, &refusal):
		return 0, err
	case err == nil:
		_ = f.Close() // only its size is needed
		return size, nil
	case errors.Is(err, beneath.ErrOutside), errors.Is(err, syscall.EXDEV):
		return 0, &owner.Refusal{Reason: fmt.Sprintf("Invalid symlink or filename (%s) outside sandbox (%s)", name, d.sandbox().Scratch())}
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENAMETOOLONG):
		errors.As(err, &errno)
		return 0, &owner.Refusal{Retry: true,
			Reason: fmt.Sprintf("Unable to resolve file %s to real path. (errno=%d, %s)", name, int(errno), job.Strerror(errno))}
	}
	return 0, nil
}

// sandbox is where the job's files are; it is there once the stage is ready.
func (d *Desk) sandbox() Sandbox {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.box
}
