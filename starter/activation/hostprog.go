package activation

import (
	"context"

	"podstarter/starter/hostprog"
)

// programs are those that run for this job in the pilot container.
func (a *activation) programs() hostprog.Job {
	return hostprog.Job{Host: a.host, Sandbox: a.sandbox, Name: a.name, Environ: a.environ, Log: a.log}
}

// removeTemporary removes what programs that ran for jobs of this user have left in the
// pilot container. Without a pod the user is one of the machine's, with files of its own.
func (a *activation) removeTemporary(ctx context.Context, uid int) error {
	if !a.set.InPod() {
		return nil
	}
	return a.host.RemoveTemporary(ctx, uid, a.log)
}
