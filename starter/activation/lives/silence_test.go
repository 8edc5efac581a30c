package lives_test

import (
	"testing"

	"podstarter/condor/condortest"
)

// TestSilentShadow has a shadow that goes on living and says no more. A job that waits for its input goes back to the queue without another
// question; a call that is not answered ends the connection.
func TestSilentShadow(t *testing.T) {
	released := make(chan struct{})
	const lost = "No reconnect from shadow for 0 seconds"
	run(t, []life{
		{
			name: "in the middle of the input", script: "exit 0", knobs: map[string]string{"STARTER_FILE_XFER_STALL_TIMEOUT": "1"},
			plan: func(w *world) { w.shadow.On(condortest.InputItem, 1, condortest.Stall(nil)) },
			want: want{
				last: "error 12/-1000", says: "no progress for 1 seconds (STARTER_FILE_XFER_STALL_TIMEOUT)",
				only: []string{"request_guidance"}, calls: []string{"request_guidance JobSetup"},
			},
		},
		{
			name: "behind a call", script: "exit 0", knobs: map[string]string{"STARTER_UPLOAD_TIMEOUT": "1"}, job: "JobLeaseDuration = 0",
			plan: func(w *world) { w.shadow.On("begin_execution", 1, condortest.Stall(released)) },
			live: func(w *world) {
				w.logged(lost)
				close(released)
			},
			want: want{code: 2, orCode: 1, log: []string{lost}},
		},
	})
}
