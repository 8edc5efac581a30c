package k8sexec

import (
	"context"

	"podstarter/k8sexec/verdict"
	"podstarter/payload"
)

// unknownFiles is what a container has that was filled in part, or with files of which
// nobody can say whether the next job wants the same. It is no identity: a job that comes
// with one in these words gets a new container.
const unknownFiles = "unknown"

// contents is what the container has to have beside its image.
func contents(req payload.BindRequest) string {
	if req.Fill != nil && req.Files == "" {
		return unknownFiles
	}
	return req.Files
}

// fill has the request's files written into the container, or made to fit if it has them. What is
// noted is true at any moment: a starter may die between two files.
func (l *lease) fill(ctx context.Context, req payload.BindRequest, c *container) error {
	write := req.Fill
	if c.how == payload.Kept && write != nil {
		write = req.Refit
	}
	if write == nil {
		return nil
	}
	known, err := readSlot(l.private, l.name)
	if err == nil {
		known.Files = unknownFiles
		err = known.write(l.private, l.name)
	}
	if err != nil {
		return verdict.Judge(verdict.Failure{Origin: verdict.FromPilot, Reason: verdict.ReasonPrivateDir, Err: err}).Verdict()
	}
	if err := write(ctx, c.client); err != nil {
		return err
	}
	known.Files = contents(req)
	l.note(known)
	return nil
}
