package localexec

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"podstarter/localexec/apptainer"
	"podstarter/payload"
)

// ErrNoRuntime says that the machine has no runtime of images where SINGULARITY says. Most have none, and that is no mistake.
var ErrNoRuntime = errors.New("there is no such program")

// Runtime is the machine's runtime of images, and how to find out whether it works.
type Runtime struct {
	Site   apptainer.Site
	Images apptainer.Images
}

// Probe runs the runtime with HTCondor's images, as the user and with the rights of a job: what works
// for root alone is of no use here. The error is [ErrNoRuntime], or says what was attempted.
func (b *Backend) Probe(ctx context.Context) (apptainer.Report, error) {
	r := b.runtime
	if r.Site.Program == "" {
		return apptainer.Report{}, fmt.Errorf("look for a runtime of images: SINGULARITY is empty: %w", ErrNoRuntime)
	}
	if err := r.Site.Check(); err != nil {
		return apptainer.Report{}, err
	}
	if _, err := os.Stat(r.Site.Program); errors.Is(err, fs.ErrNotExist) {
		return apptainer.Report{}, fmt.Errorf("look for %s: %w: %w", r.Site.Program, ErrNoRuntime, err)
	}
	var report apptainer.Report
	err := b.try(ctx, func(run apptainer.Run) (err error) {
		report, err = r.Site.Probe(ctx, run, r.Images)
		return err
	})
	return report, err
}

// Try runs a program as the user and with the rights of a job, and waits for its end. It gives the exit status, -1 if a
// signal ended it, and at most [payload.MaxCapture] bytes of its output.
func (b *Backend) Try(ctx context.Context, argv []string) (status int, output []byte, err error) {
	err = b.try(ctx, func(run apptainer.Run) (err error) {
		status, output, err = run(ctx, argv)
		return err
	})
	return status, output, err
}

func (b *Backend) try(ctx context.Context, use func(apptainer.Run) error) error {
	l, err := b.Lease(ctx, payload.Wish{})
	if err != nil {
		return err
	}
	return errors.Join(b.tryAs(ctx, l, use), l.Release(context.WithoutCancel(ctx)))
}

func (b *Backend) tryAs(ctx context.Context, l payload.Lease, use func(apptainer.Run) error) error {
	name := fmt.Sprintf("probe-%d", os.Getpid())
	c, err := l.Bind(ctx, payload.BindRequest{Activation: name})
	if err != nil {
		return err
	}
	uid, gid := l.Owner()
	runs := 0
	return use(func(ctx context.Context, argv []string) (int, []byte, error) {
		runs++
		w := c.Client()
		s := payload.Spec{Activation: fmt.Sprintf("%s.%d", name, runs), UID: uid, GID: gid, Path: argv[0], Args: argv, Dir: "/", Umask: 0o022, Capture: payload.MaxCapture}
		if _, err := w.Start(ctx, s); err != nil {
			return 0, nil, err
		}
		exit, err := w.Wait(ctx)
		if swept := w.Sweep(context.WithoutCancel(ctx)); err == nil {
			err = swept
		}
		if err != nil {
			if ctx.Err() != nil {
				err = fmt.Errorf("%s did not end in time: %w", argv[0], context.Cause(ctx))
			}
			return 0, nil, err
		}
		status := syscall.WaitStatus(exit.WaitStatus)
		return status.ExitStatus(), exit.Output, nil
	})
}

// accounts are what Apptainer wants of users: without an entry it ends at once.
const accounts = "entries in /etc/passwd for the users of jobs, from POD_STARTER_PAYLOAD_UID on"

// auditRuntime says what of images works.
func (b *Backend) auditRuntime(ctx context.Context) []payload.Finding {
	const what = "images of jobs"
	report, err := b.Probe(ctx)
	switch {
	case errors.Is(err, ErrNoRuntime):
		return []payload.Finding{{Grade: payload.OK, What: what, Detail: "do not run here: " + err.Error()}}
	case err != nil:
		return []payload.Finding{{Grade: payload.Bad, What: what, Detail: err.Error(), Fix: "SINGULARITY, or " + accounts}}
	case !report.Works():
		return []payload.Finding{{
			Grade: payload.Bad, What: what, Detail: report.Version + " runs none of HTCondor's own: " + report.Trouble,
			Fix: "user namespaces for everybody (sysctl user.max_user_namespaces), " + accounts + ", or SINGULARITY_TEST_SANDBOX",
		}}
	case !report.SIF:
		return []payload.Finding{{Grade: payload.Warn, What: what, Detail: report.Version + " runs directories, but not " + b.runtime.Images.SIF, Fix: "the file may be missing in this distribution of HTCondor; if .sif files do run, set HasSIF = True and add it to STARTD_ATTRS; else install squashfuse, and let users open /dev/fuse"}}
	case !report.Sandbox:
		return []payload.Finding{{Grade: payload.Warn, What: what, Detail: report.Version + " runs .sif files, but no directories", Fix: "SINGULARITY_TEST_SANDBOX"}}
	}
	return []payload.Finding{{Grade: payload.OK, What: what, Detail: "run by " + report.Version}}
}
