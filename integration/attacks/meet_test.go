//go:build pool

package attacks

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"podstarter/integration/harness"
)

// A job that the test meets waits at a pipe in its sandbox.
const (
	pipe = "go"
	meet = "meet=" + pipe + " "
)

// met waits until a job has made the pipe, for no longer than the job may take.
func (w *target) met(t *testing.T, job harness.Job) (main harness.Process) {
	t.Helper()
	inside := pool.InPod(w.side)
	err := harness.Poll(soon(t, patience), "job "+job.ID()+" to wait", func() (bool, error) {
		found, err := harness.Processes(func(p harness.Process) bool {
			if !inside(p) || !slices.Contains(p.Args, "meet="+pipe) {
				return false
			}
			info, err := os.Stat(fmt.Sprintf("/proc/%d/cwd/%s", p.PID, pipe))
			return err == nil && info.Mode()&os.ModeNamedPipe != 0
		})
		if err != nil {
			return false, err
		}
		if len(found) == 1 {
			main = found[0]
			return true, nil
		}
		events, err := job.Events()
		if i := slices.IndexFunc(events, func(e harness.Event) bool { _, ok := harness.EndingOf(e); return ok }); err == nil && i >= 0 {
			end, _ := harness.EndingOf(events[i])
			err = fmt.Errorf("it has ended: %s", end)
		}
		return false, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return main
}

// goOn sends it a text and lets it continue.
func (w *target) goOn(t *testing.T, p harness.Process, told string) {
	t.Helper()
	// Opening succeeds when the job has opened it, too.
	f, err := os.OpenFile(fmt.Sprintf("/proc/%d/cwd/%s", p.PID, pipe), os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(told)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}
