package localexec

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"podstarter/localexec/group"
	"podstarter/payload"
)

// makeGroup makes the payload's control group, if one is wanted and the machine allows it. Without one the payload runs all the same, as
// under the stock starter; the log says why. Only processes of an earlier job that cannot be killed keep it from running.
func (l *lease) makeGroup(ctx context.Context, want *payload.Group) error {
	b := l.backend
	if want == nil || b.as != nil || l.group != nil {
		return nil
	}
	place, err := group.Find(b.groups)
	if err != nil {
		b.log.Info("The job has no control group of its own, and no limit of memory", "reason", err)
		return nil
	}
	g, err := place.Make(ctx, *want, l.uid, l.gid, b.log)
	if err == nil {
		l.place, l.group = place, g
		b.log.Info("The job has a control group of its own", "group", g.Path(), "memory", want.MemoryMax, "CPU weight", want.CPUWeight)
		return nil
	}
	place.Close()
	if errors.Is(err, group.ErrBusy) {
		return siteTrouble("cannot clear the control group of the slot", err)
	}
	b.log.Warn("The job has no control group of its own, and no limit of memory", "error", err)
	return nil
}

// removeGroup ends what is left in the group. The wrapper has ended before.
func (l *lease) removeGroup(ctx context.Context) error {
	if l.group == nil {
		return nil
	}
	err := l.group.Remove(ctx)
	l.place.Close()
	l.group, l.place = nil, nil
	return err
}

// auditGroups says whether jobs get control groups.
func (b *Backend) auditGroups() []payload.Finding {
	const what = "control groups"
	if b.as != nil || b.groups == (group.Site{}) {
		return nil
	}
	place, err := group.Find(b.groups)
	if err != nil {
		return []payload.Finding{{Grade: payload.Warn, What: what, Detail: fmt.Sprintf("jobs have none, so that a job can use all memory of the machine: %v", err)}}
	}
	defer place.Close()
	if missing := place.Missing(); len(missing) > 0 {
		return []payload.Finding{{Grade: payload.Warn, What: what, Detail: fmt.Sprintf("each job gets one below %s, without the controllers %s, which the groups above do not have", place.Path(), strings.Join(missing, ", "))}}
	}
	return []payload.Finding{{Grade: payload.OK, What: what, Detail: "each job gets one below " + place.Path()}}
}
