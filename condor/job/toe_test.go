package job

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/condor/version"
)

func TestTicketOfExecution(t *testing.T) {
	for _, test := range []struct {
		status syscall.WaitStatus
		want   string
	}{
		{7 << 8, `[ Who = "itself"; How = "OF_ITS_OWN_ACCORD"; HowCode = 0; When = 1000; ExitBySignal = false; ExitCode = 7 ]`},
		{9, `[ Who = "itself"; How = "OF_ITS_OWN_ACCORD"; HowCode = 0; When = 1000; ExitBySignal = true; ExitSignal = 9 ]`},
	} {
		ad := classads.NewAd()
		PublishToE(ad, test.status, time.Unix(1000, 5))
		if diff := cmp.Diff(squeeze("ToE = "+test.want+"\n"), squeeze(lines(ad))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if !WantsToE(version.Version{Major: 23, Minor: 9, Patch: 6}) || WantsToE(version.Version{Major: 24, Minor: 8}) {
		t.Error("it went out of use with 24.8")
	}
}

func TestForwardedTicket(t *testing.T) {
	const whole = `ToE = [ Who = "a startd"; How = "DEACTIVATE_CLAIM"; HowCode = 1; When = 1000; Evil = strcat("x", "y") ]`
	for name, test := range map[string]struct{ sandbox, want string }{
		"whole":           {whole, `ToE = [ Who = "a startd"; How = "DEACTIVATE_CLAIM"; HowCode = 1; When = 1000 ]` + "\n"},
		"none":            {"Cmd = \"x\"", ""},
		"no ad":           {"ToE = 5", ""},
		"something lacks": {`ToE = [ Who = "a"; How = "b"; When = 5 ]`, ""},
		"too long":        {`ToE = [ Who = "` + strings.Repeat("a", 300) + `"; How = "b"; HowCode = 1; When = 5 ]`, ""},
	} {
		ad := classads.NewAd()
		ForwardToE(ad, mustAd(t, test.sandbox))
		if diff := cmp.Diff(squeeze(test.want), squeeze(lines(ad))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
