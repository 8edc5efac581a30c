//go:build pool

package provision

import (
	_ "embed"
	"strconv"
	"strings"
	"testing"

	"podstarter/integration/harness"
)

//go:embed testdata/home.sh
var homePool string

// TestFlockedJobs: there is no pilot, and the schedd of another pool flocks here. Its jobs run in pods that the provisioner made for them,
// and its user is known by that schedd's ACCOUNTING_DOMAIN.
func TestFlockedJobs(t *testing.T) {
	ctx := soon(t)
	s := start(ctx, t, config, Template{Name: "glidein", Text: shapes})
	port, err := harness.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	const jobs = 3
	out, err := pool.APRoot(ctx, strings.NewReader(homePool), "sh", "-s", strconv.Itoa(port), pool.User.Name, pool.Image(imageNames[0]), s.Requirements(), s.Commands(), strconv.Itoa(jobs))
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out, "said: "+imageNames[0]+"\n"); n != jobs {
		t.Errorf("%d of %d jobs ran in their image", n, jobs)
	}
	if n := strings.Count(out, "ran: 0 slot1@"+Name+"-glidein-"); n != jobs {
		t.Errorf("%d of %d jobs ran in pods of the provisioner", n, jobs)
	}
	if want := pool.User.Name + "@home.invalid"; !strings.Contains(out, want) {
		t.Errorf("the negotiator of the pool does not know %s", want)
	}
	is, err := s.State(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if is.Made == 0 || is.Made > jobs {
		t.Errorf("for %d jobs %d pods were made", jobs, is.Made)
	}
}
