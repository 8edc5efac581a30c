//go:build pool

package podfailures

import (
	"context"
	"fmt"
	"strings"

	"podstarter/integration/harness"
)

// elsewhere are the execution points that do not fail.
var elsewhere = harness.Ours.Requirements() + " && TARGET.FaultsPod =?= undefined"

// nowhere is for an image that no pod can have. After the failure the test gives the job
// another, as if the registry or the cluster's policy had changed its mind.
func nowhere(a action) action {
	a.nowhere = true
	return a
}

// once keeps a job that went back to the queue there until follow has changed it: its claim may
// be good for another run at once.
const once = "(MY.NumShadowStarts =?= undefined || MY.NumShadowStarts < 1)"

// follow demands that a job which went back to the queue runs at another execution point
// and ends there as if nothing had happened. It undoes what the row made fail.
func (s *stage) follow(ctx context.Context, a action) error {
	switch s.outcome.Kind {
	case "requeued", "evicted", lost:
	default:
		return nil
	}
	edits := []string{"condor_qedit", s.job.ID(), "Requirements", elsewhere, "Arguments", `"out=again exit=0"`}
	if a.nowhere {
		edits = append(edits, "DockerImage", `"`+s.image("good")+`"`)
	}
	if _, err := s.pool.AP(ctx, edits...); err != nil {
		return fmt.Errorf("sending the job elsewhere: %w", err)
	}
	s.undo()
	var end harness.Ending
	_, err := s.job.WaitEvents(ctx, "its end after another run", func(events []harness.Event) bool {
		var ok bool
		end, ok = harness.EndingOf(events[len(events)-1])
		return ok
	})
	if err != nil {
		return fmt.Errorf("following the job to its end: %w", err)
	}
	if !end.Exited || end.Code != 0 {
		return fmt.Errorf("the job's next run ended so: %s, want exit code 0\n%s", end, s.job.Describe())
	}
	out, err := s.job.Output("out")
	if err != nil || strings.TrimSpace(out) != "again" {
		return fmt.Errorf("the output of the job's next run is %q, want again (%v)\n%s", out, err, s.job.Describe())
	}
	return nil
}
