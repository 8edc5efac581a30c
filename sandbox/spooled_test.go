package sandbox

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSpooledNames(t *testing.T) {
	u := &upload{session: &session{job: jobFiles{stdout: "_condor_stdout", stderr: "dir/err"}}}
	for _, name := range []string{"b", "a", "dir", "dir/inner", "_condor_stdout", "err", "a"} {
		u.spooled(name)
	}
	if diff := cmp.Diff([]string{"b", "a", "dir"}, u.stats.spooled); diff != "" || u.unnamed {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i := range maxSpooled - 3 {
		u.spooled(strconv.Itoa(i))
	}
	if len(u.stats.spooled) != maxSpooled || u.unnamed {
		t.Errorf("%d names, %v", len(u.stats.spooled), u.unnamed)
	}
	for _, name := range []string{"one too many", "another"} {
		u.spooled(name)
		if u.stats.spooled != nil || !u.unnamed {
			t.Errorf("%d names, %v", len(u.stats.spooled), u.unnamed)
		}
	}
}
