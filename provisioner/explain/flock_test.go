package explain

import (
	"strings"
	"testing"

	"podstarter/provisioner/demand"
)

// Jobs of a schedd of another pool are told with it.
func TestFlocking(t *testing.T) {
	rep := report()
	guest := demand.Source{Name: "guest\x1b", Pool: "cm.guest\n"}
	rep.Groups[0].Schedds = []demand.Share{{Schedd: demand.Source{Name: "ap"}, Idle: 3}, {Schedd: guest, Idle: 1}}
	rep.Groups[1].Schedds = []demand.Share{{Schedd: guest, Idle: 2}}
	var out strings.Builder
	if err := Round(&out, rep); err != nil {
		t.Fatal(err)
	}
	if want := "\n3 of the idle jobs flock here from the schedd guest? of the pool cm.guest?\n"; !strings.Contains(out.String(), want) || strings.Contains(out.String(), "schedd ap") {
		t.Errorf("the round lacks %q:\n%s", want, out.String())
	}
	out.Reset()
	job := &demand.Job{ID: demand.JobID{Schedd: "guest", Cluster: 1}, User: "alice@g", Schedd: guest, Flocks: "it flocks here, and asks for slots for 2 jobs of alice@g"}
	if err := Job(&out, rep, job, "", nil); err != nil {
		t.Fatal(err)
	}
	if want := "The job 1.0 of the schedd guest? of the pool cm.guest?, of alice@g.\nIt flocks here, and asks for slots for 2 jobs of alice@g.\n"; !strings.HasPrefix(out.String(), want) {
		t.Errorf("the job is %q", out.String())
	}
}
