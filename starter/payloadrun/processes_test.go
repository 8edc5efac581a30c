package payloadrun_test

import (
	"testing"

	"podstarter/starter/payloadrun"
	"podstarter/starter/settings"
)

// TestOwnProcesses: which jobs are to have a PID namespace, and which may have mounts.
func TestOwnProcesses(t *testing.T) {
	for name, tt := range map[string]struct {
		processes, mounts string
		pod, image        bool
		want, mayMount    bool
	}{
		"by default":       {mayMount: true},
		"wanted":           {processes: "True", want: true, mayMount: true},
		"by an expression": {processes: "1 < 2", want: true, mayMount: true},
		"not understood":   {processes: "perhaps", mayMount: true},
		"no mounts":        {processes: "True", mounts: "False"},
		"mounts":           {processes: "True", mounts: "True", want: true, mayMount: true},
		"in a pod":         {processes: "True", pod: true},
		"in an image":      {processes: "True", image: true, mayMount: true},
	} {
		knobs := map[string]string{"MOUNT_UNDER_SCRATCH": "/tmp"}
		for knob, value := range map[string]string{"USE_PID_NAMESPACES": tt.processes, "PER_JOB_NAMESPACES": tt.mounts} {
			if value != "" {
				knobs[knob] = value
			}
		}
		j := aJob(t, "", knobs)
		if tt.pod {
			j.Settings.Backend = settings.BackendPod
		}
		if tt.image {
			j.Contained = new(payloadrun.Contained)
		}
		if got := j.OwnProcesses(); got != tt.want {
			t.Errorf("%s: processes of its own: %v", name, got)
		}
		if got := payloadrun.MayMount(j.Settings); got != tt.mayMount {
			t.Errorf("%s: mounts: %v", name, got)
		}
	}
}
