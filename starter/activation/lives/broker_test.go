package lives_test

import (
	"testing"

	"podstarter/condor/condortest"
)

// TestBroker are lives whose shadow takes no connections: it is reached through its broker (CCB).
func TestBroker(t *testing.T) {
	behind := func(plan func(*world, *condortest.Broker)) life {
		var broker *condortest.Broker
		return life{
			job: `TransferInput = "one"`, files: map[string]string{"one": "first\n"}, script: "cat one; echo made >new",
			submit: func(o *condortest.ShadowOptions) {
				broker = condortest.NewBroker(t)
				o.Broker = broker
			},
			plan: func(w *world) { plan(w, broker) },
			want: want{check: func(w *world) {
				if broker.Asked() == 0 {
					w.Error("the broker was not asked")
				}
			}},
		}
	}
	files := behind(func(*world, *condortest.Broker) {})
	files.name, files.want.last = "files", "job_exit 0 100"
	files.want.output = output("first\n")
	files.want.output["new"] = "made\n"
	files.want.log = []string{"A daemon is reached through its broker"}

	denied := behind(func(w *world, b *condortest.Broker) {
		b.Deny()
		w.shadow.On("request_guidance", 2, condortest.AnswerText(`Command = "Abort"`))
	})
	denied.name, denied.want.last = "denied", "error 12/-1000"
	denied.want.log = []string{"this collector must let this host READ (ALLOW_READ)"}
	check := denied.want.check
	denied.want.check = func(w *world) { check(w); w.neverBegan() }

	run(t, []life{files, denied})
}
