package provision

import "testing"

func TestParseState(t *testing.T) {
	got, err := parseState(`# HELP podstarter_provisioner_pods Pods.
podstarter_provisioner_round_seconds_bucket{le="1"} 3
podstarter_provisioner_round_seconds_count 4
podstarter_provisioner_pods{phase="pending",template="a"} 2
podstarter_provisioner_pods{phase="pending",template="b"} 1
podstarter_provisioner_pods{phase="running",template="a"} 5
podstarter_provisioner_pods_made_total 1e+01
podstarter_provisioner_waiting_jobs{cause="x"} 6
podstarter_provisioner_waiting_jobs{cause="y"} 7
go_goroutines 8
`)
	if want := (State{Rounds: 4, Made: 10, Waiting: 13, Pending: 3, Running: 5}); got != want || err != nil {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if _, err := parseState("podstarter_provisioner_idle_jobs many\n"); err == nil {
		t.Error("a word is a number")
	}
}
