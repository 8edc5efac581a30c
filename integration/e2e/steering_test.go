//go:build pool

package e2e

import (
	"strings"
	"testing"

	"podstarter/integration/harness"
)

// TestCheckpoint: a job that exits as its checkpoints do is started again in its
// container, though its image has no shell, and its earlier usage counts.
func TestCheckpoint(t *testing.T) {
	oursOnly(t)
	marks, err := pool.MarkLogs(side)
	if err != nil {
		t.Fatal(err)
	}
	jobs := map[string]harness.Job{}
	for name, in := range map[string]struct{ image, kept string }{
		// Outside of the sandbox: another container would not have it, and the job would
		// checkpoint for ever.
		"default":  {"", "/tmp/kept"},
		"no shell": {"universe = docker\ndocker_image = " + pool.Image("probe"), "kept"},
	} {
		s := job("resume="+in.kept+":0 file="+in.kept+":here file=made:x detach=1 burn=1.2 exit=85",
			"checkpoint_exit_code = 85", "transfer_checkpoint_files = made", in.image)
		s.Name = "checkpoint-" + name[:2]
		jobs[name] = submit(t, s)[0]
	}
	for name, job := range jobs {
		mustExit(t, job, 0)
		if got := output(t, job, "out"); got != "here" {
			t.Errorf("%s: the second run found %q of the first", name, got)
		}
		events, err := job.Events()
		if err != nil {
			t.Fatal(err)
		}
		if n := executions(events); n != 1 {
			t.Errorf("%s: the log has %d executions, want one: %s", name, n, harness.Headlines(events))
		}
		ad, err := job.History(soon(t, patience))
		if err != nil {
			t.Fatal(err)
		}
		if cpu := ad.RealOr("RemoteUserCpu", -1); cpu < 1 {
			t.Errorf("%s: RemoteUserCpu is %v, and the first run alone used a second", name, cpu)
		}
		if n := ad.IntOr("CheckpointNumber", -1); n != 0 {
			t.Errorf("%s: CheckpointNumber is %d, want that of the first, 0", name, n)
		}
	}
	runs, err := pool.RunsSince(side, marks)
	if err != nil {
		t.Fatal(err)
	}
	for name, job := range jobs {
		for _, r := range runs {
			if r.Job != job.ID() {
				continue
			}
			bound := 0
			for _, line := range r.Lines {
				if strings.HasPrefix(line.Text, "Phase "+harness.PhaseBind+" took ") {
					bound++
				}
			}
			if bound != 1 {
				t.Errorf("%s: its container was bound %d times:\n%s", name, bound, r.Text())
			}
		}
	}
	// What the first run left behind was the job until its end.
	if err := harness.WaitNone(soon(t, gone), payload()); err != nil {
		t.Error(err)
	}
}

// TestCheckpointThatLacksAFile: the job is put on hold, with the reason, and is not
// started again.
func TestCheckpointThatLacksAFile(t *testing.T) {
	oursOnly(t)
	job := submit(t, job("exit=85", "checkpoint_exit_code = 85", "transfer_checkpoint_files = nowhere"))[0]
	if end := ending(t, job); !end.Held || end.Code != 36 || end.Subcode != -1 || !strings.Contains(end.Reason, "Starter failed to upload checkpoint") || !strings.Contains(end.Reason, "nowhere") {
		t.Errorf("%+v", end)
	}
	if err := harness.WaitNone(soon(t, gone), payload()); err != nil {
		t.Error(err)
	}
}
