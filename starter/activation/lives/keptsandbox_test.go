package lives_test

import (
	"os"
	"testing"
)

// TestKeptSandbox: a site that looks for the cause of something keeps sandboxes, or has them for longer.
func TestKeptSandbox(t *testing.T) {
	const job = "echo result >result"
	kept := func(w *world) {
		w.must(os.Mkdir(w.at("@/place"), 0o755))
	}
	run(t, []life{
		{
			name: "elsewhere", script: job, plan: kept, knobs: map[string]string{"STARTER_MOVE_WORKING_DIR_ON_EXIT": "@/place/kept"},
			want: want{last: "job_exit 0 100", log: []string{"to @/place/kept instead of deleting it"}, check: func(w *world) {
				if data, err := os.ReadFile(w.at("@/place/kept/result")); err != nil || string(data) != "result\n" {
					w.Errorf("the kept sandbox: %q, %v", data, err)
				}
			}},
		},
		{
			name: "at a place that is not there", script: job, knobs: map[string]string{"STARTER_MOVE_WORKING_DIR_ON_EXIT": "@/place/kept"},
			want: want{last: "job_exit 0 100", log: []string{"STARTER_MOVE_WORKING_DIR_ON_EXIT", "no such file or directory"}},
		},
		{
			name: "for a while", script: job, knobs: map[string]string{"STARTER_REMOVE_EXECUTE_DIR_DELAY_TIME": "1"},
			want: want{last: "job_exit 0 100", log: []string{"Sleeping for 1 seconds before removing execute directory"}},
		},
	})
}
