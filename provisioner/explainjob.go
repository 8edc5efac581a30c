package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"podstarter/provisioner/demand"
	"podstarter/provisioner/explain"
	"podstarter/provisioner/pool"
	"podstarter/provisioner/round"
	"podstarter/provisioner/settings"
)

// explainWhat prints, after a round, why a group of jobs, or one job, gets pods or none.
func explainWhat(ctx context.Context, out io.Writer, what string, set settings.Settings, r *round.Round, p *pool.Pool, rep round.Report) error {
	found, err := explain.Group(out, rep, what)
	if found || err != nil {
		return errors.Join(err, rep.Err)
	}
	id, err := demand.ParseJobID(what)
	if err != nil {
		return errors.Join(fmt.Errorf("explaining %q: it is no group that has idle jobs (-dry-run lists all), and no job: %w", what, err), rep.Err)
	}
	jobs, err := p.Job(ctx, id, r.References())
	for i, j := range jobs {
		if i > 0 {
			fmt.Fprintln(out)
		}
		err = errors.Join(err, explain.Job(out, rep, j, cmp.Or(j.Idle(set.Filter), j.Refused), r.Explain(j.Ad)))
	}
	if len(jobs) == 0 {
		err = errors.Join(err, fmt.Errorf("explaining the job %s: no schedd that is asked has it", id))
	}
	return errors.Join(err, rep.Err)
}
