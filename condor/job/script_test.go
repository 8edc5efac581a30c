package job

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"podstarter/classads"
	"podstarter/condor/config"
)

func TestScriptOf(t *testing.T) {
	place := Place{Scratch: "/scratch", Iwd: "/iwd"}
	for name, tt := range map[string]struct {
		ad   string
		want Command
		none bool
		bad  bool
	}{
		"none":           {none: true},
		"of the sandbox": {ad: `PreCmd = "dir/pre.sh"`, want: Command{Path: "/scratch/dir/pre.sh"}},
		"of the image":   {ad: `PreCmd = "/bin/true"`, want: Command{Path: "/bin/true"}},
		"arguments":      {ad: "PreCmd = \"/x\"\nPreArguments = \"a 'b c'\"\nPreArgs = \"not these\"", want: Command{Path: "/x", Args: []string{"a", "b c"}}},
		"old arguments":  {ad: "PreCmd = \"/x\"\nPreArguments = \"\"\nPreArgs = \"a 'b\"", want: Command{Path: "/x", Args: []string{"a", "'b"}}},
		"bad arguments":  {ad: "PreCmd = \"/x\"\nPreArguments = \"'\"", bad: true},
		"the other's":    {ad: `PostCmd = "x"`, none: true},
	} {
		t.Run(name, func(t *testing.T) {
			ad, err := classads.ParseOld(tt.ad)
			if err != nil {
				t.Fatal(err)
			}
			got, ok, err := ScriptOf(ad, PreScript, place)
			if ok == tt.none || (err != nil) != tt.bad {
				t.Fatalf("%v, %v", ok, err)
			}
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); !tt.bad && diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestScriptEnvironment(t *testing.T) {
	ad, err := classads.ParseOld("Environment = \"MINE=1\"\nPostEnvironment = \"A=1 'B=x y'\"\nPostEnv = \"C=1\"\nPreEnv = \"D=1;E=2\"")
	if err != nil {
		t.Fatal(err)
	}
	status := syscall.WaitStatus(3 << 8)
	knobs := config.FromMap(map[string]string{"STARTER_JOB_ENVIRONMENT": "SITE=1"})
	for which, want := range map[string]string{
		PostScript: "A=1 B=x y _CONDOR_MAINJOB_EXIT_CODE=3",
		PreScript:  "D=1 E=2 _CONDOR_MAINJOB_EXIT_CODE=3",
	} {
		env, err := ScriptEnvironment(ad, which, knobs, Surroundings{Scratch: "/s", Ended: &status})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, entry := range env.Strings() {
			if len(entry) < 4 || strings.HasPrefix(entry, "B=") || strings.Contains(entry, "MAINJOB") || strings.Contains(entry, "MINE") || strings.Contains(entry, "SITE") {
				got = append(got, entry)
			}
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s: %s", which, diff)
		}
	}
}

func TestScriptFailed(t *testing.T) {
	exited := func(code int) syscall.WaitStatus { return syscall.WaitStatus(code << 8) }
	for _, tt := range []struct {
		ad     string
		status syscall.WaitStatus
		failed bool
	}{
		{"", exited(1), false},
		{"", 9, false},
		{"SuccessPreExitCode = 0", exited(0), false},
		{"SuccessPreExitCode = 0", exited(1), true},
		{"SuccessPreExitCode = 0", 9, true},
		{"SuccessPreExitCode = 3", exited(3), false},
		{"SuccessPreExitCode = 3", exited(0), true},
		{"SuccessPreExitBySignal = true", exited(1), false},
		{"SuccessPreExitBySignal = true\nSuccessPreExitSignal = 9", 9, false},
		{"SuccessPreExitBySignal = true\nSuccessPreExitSignal = 9", 15, true},
		{"SuccessPreExitBySignal = true\nSuccessPreExitSignal = 9", exited(9), true},
		{"SuccessPreExitSignal = 9", exited(0), false},
		{"SuccessPostExitCode = 0", exited(1), false},
	} {
		ad, err := classads.ParseOld(tt.ad)
		if err != nil {
			t.Fatal(err)
		}
		if got := ScriptFailed(ad, PreScript, tt.status); got != tt.failed {
			t.Errorf("%q, wait status %#x: failed %v, want %v", tt.ad, int(tt.status), got, tt.failed)
		}
	}
}

func TestPublishScript(t *testing.T) {
	begin := time.Unix(1000, 0)
	for _, tt := range []struct {
		status syscall.WaitStatus
		want   string
	}{
		{5 << 8, "PostJobPid = 7\nPostJobStartDate = 1000\nPostJobDuration = 2.5\nPostExitBySignal = false\nPostExitCode = 5\n"},
		{15, "PostJobPid = 7\nPostJobStartDate = 1000\nPostJobDuration = 2.5\nPostExitBySignal = true\nPostExitSignal = 15\nPostExitReason = \"died on signal 15 (Terminated)\"\n"},
	} {
		ad := classads.NewAd()
		PublishScript(ad, Script{Which: PostScript, PID: 7, Started: begin, Ended: begin.Add(2500 * time.Millisecond), Status: tt.status})
		if diff := cmp.Diff(tt.want, ad.FormatOld()); diff != "" {
			t.Error(diff)
		}
	}
}
