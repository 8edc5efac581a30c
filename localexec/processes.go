package localexec

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"podstarter/payload"
	"podstarter/wrapper/agent"
)

// errNoNamespace says that a payload cannot have a PID namespace here.
var errNoNamespace = errors.New("no PID namespace can be made")

// bindInNamespace is bind with a PID namespace. If there cannot be one, the error is errNoNamespace, and nothing is left of the attempt.
func (l *lease) bindInNamespace(ctx context.Context) (payload.Container, error) {
	if !l.backend.capable {
		return nil, fmt.Errorf("%w: that takes root with the capability SYS_ADMIN", errNoNamespace)
	}
	return l.bind(ctx, true)
}

// noNamespace is the error of a wrapper that does not answer.
func noNamespace(p *process, err error) error {
	select {
	case <-p.ended.Done():
	default:
		return err
	}
	if exit := (*exec.ExitError)(nil); errors.As(context.Cause(p.ended), &exit) && exit.ExitCode() == agent.ExitNoProcesses {
		return fmt.Errorf("%w: /proc cannot be mounted: %w", errNoNamespace, err)
	}
	return err
}

// knobProcesses is HTCondor's.
const knobProcesses = "USE_PID_NAMESPACES"

// auditProcesses says whether jobs have PID namespaces, if the site wants that.
func (b *Backend) auditProcesses(ctx context.Context) []payload.Finding {
	if !b.wanted {
		return nil
	}
	const what = "processes of jobs"
	f := payload.Finding{Grade: payload.OK, What: what, Detail: "a job without an image sees only its own (" + knobProcesses + ")"}
	switch err := b.tryProcesses(ctx); {
	case errors.Is(err, ErrNoUser):
		f = payload.Finding{Grade: payload.Warn, What: what, Detail: "whether jobs can have PID namespaces (" + knobProcesses + ") was not tried: " + err.Error(), Fix: "run -check again when a slot is free"}
	case err != nil:
		f = payload.Finding{Grade: payload.Warn, What: what, Detail: knobProcesses + " is not obeyed, jobs see the processes of the machine: " + err.Error(), Fix: "a startd that is root and may mount (SYS_ADMIN), or images of jobs; see docs/admin/plain.md"}
	}
	return []payload.Finding{f}
}

// tryProcesses starts and ends a wrapper in a PID namespace.
func (b *Backend) tryProcesses(ctx context.Context) error {
	got, err := b.Lease(ctx, payload.Wish{})
	if err != nil {
		return err
	}
	l := got.(*lease)
	if err = l.prepare(ctx, payload.BindRequest{Activation: fmt.Sprintf("processes-%d", os.Getpid())}); err == nil {
		_, err = l.bindInNamespace(ctx)
	}
	return errors.Join(err, l.Release(context.WithoutCancel(ctx)))
}
