package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
)

// Shadow is the job's present shadow. A shadow takes one job after another, and its arguments name only
// the first: the shadows' log says which shadow has the job.
func (j Job) Shadow() (Process, error) {
	text, err := os.ReadFile(filepath.Join(j.pool.State, "log", "pool", "ShadowLog"))
	if err != nil {
		return Process{}, fmt.Errorf("looking for the shadow of job %s: %w", j.ID(), err)
	}
	all := regexp.MustCompile(`(?m)^\S+ \S+ .*?\(`+regexp.QuoteMeta(j.ID())+`\) \((\d+)\):`).FindAllSubmatch(text, -1)
	if len(all) == 0 {
		return Process{}, fmt.Errorf("the shadows' log does not mention job %s", j.ID())
	}
	pid, err := strconv.Atoi(string(all[len(all)-1][1]))
	if err != nil {
		return Process{}, fmt.Errorf("looking for the shadow of job %s: %w", j.ID(), err)
	}
	return One("shadow of job "+j.ID(), func(q Process) bool {
		return q.Comm == "condor_shadow" && q.Inner == pid && q.Namespace == j.pool.SubmitNamespace
	})
}

// One is the only process that keep selects, except children of it; what describes it in an error.
func One(what string, keep func(Process) bool) (Process, error) {
	some, err := Processes(keep)
	some = Eldest(some)
	if err == nil && len(some) != 1 {
		err = fmt.Errorf("looking for the %s: there are %d: %v", what, len(some), some)
	}
	if err != nil {
		return Process{}, err
	}
	return some[0], nil
}
