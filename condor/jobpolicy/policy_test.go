package jobpolicy

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/condor/config"
)

var now = time.Unix(1_800_000_000, 0)

func TestPolicies(t *testing.T) {
	hold := func(reason string, code, subcode int) Decision { return Decision{Hold, reason, code, subcode} }
	knobs := map[string]string{
		"SYSTEM_PERIODIC_HOLD": "ImageSize > 1000", "SYSTEM_PERIODIC_HOLD_REASON": `strcat("too large: ", ImageSize)`, "SYSTEM_PERIODIC_HOLD_SUBCODE": "10 + 7",
		"SYSTEM_PERIODIC_HOLD_NAMES": "Long NAMES", "SYSTEM_PERIODIC_HOLD_Long": "RemoteWallClockTime > 500",
		"SYSTEM_PERIODIC_REMOVE": "Owner == \"mallory\"",
	}
	tests := map[string]struct {
		ad    string
		knobs map[string]string
		exits bool
		want  Decision
	}{
		"nothing said":          {ad: "JobStatus = 2"},
		"hold":                  {ad: "PeriodicHold = JobStatus == 2\nJobStatus = 2", want: hold("The job attribute PeriodicHold expression 'JobStatus == 2' evaluated to TRUE", 3, 0)},
		"hold with a reason":    {ad: "PeriodicHold = true\nPeriodicHoldReason = strcat(\"be\", \"cause\")\nPeriodicHoldSubCode = 7", want: hold("because", 3, 7)},
		"a number":              {ad: "PeriodicHold = 1", want: hold("The job attribute PeriodicHold expression '1' evaluated to TRUE", 3, 0)},
		"undefined":             {ad: "PeriodicHold = Nothing > 3"},
		"an error":              {ad: `PeriodicHold = "x" + 1`},
		"vacate before hold":    {ad: "PeriodicVacate = true\nPeriodicHold = true", want: Decision{Vacate, "The job attribute PeriodicVacate expression 'true' evaluated to TRUE", 3, 0}},
		"remove":                {ad: "PeriodicRemove = true", want: Decision{Remove, "The job attribute PeriodicRemove expression 'true' evaluated to TRUE", 3, 0}},
		"hold before remove":    {ad: "PeriodicRemove = true\nPeriodicHold = true\nPeriodicHoldReason = \"x\"", want: hold("x", 3, 0)},
		"a job that is removed": {ad: "JobStatus = 3\nPeriodicHold = true"},
		"a job that is held":    {ad: "JobStatus = 5\nPeriodicHold = true"},
		"time to remove":        {ad: "TimerRemove = 1799999999", want: Decision{Remove, "The job attribute TimerRemove expression '1799999999' evaluated to TRUE", 3, 0}},
		"not yet":               {ad: "TimerRemove = 1800000000"},
		"never":                 {ad: "TimerRemove = -1"},
		"no time":               {ad: "TimerRemove = undefined", want: hold("The job attribute TimerRemove expression 'undefined' evaluated to UNDEFINED", 5, 0)},
		"too long here":         {ad: "AllowedJobDuration = 90\nShadowBday = 1799999910", want: hold("The job exceeded allowed job duration of 01:30", 46, 0)},
		"long, but allowed":     {ad: "AllowedJobDuration = 90\nShadowBday = 1799999911"},
		"executes too long":     {ad: "AllowedExecuteDuration = 3600\nShadowBday = 1\nJobCurrentStartExecutingDate = 1799996399", want: hold("The job exceeded allowed execute duration of 1:00:00", 47, 0)},
		"an older run":          {ad: "AllowedExecuteDuration = 3600\nShadowBday = 1799999999\nJobCurrentStartExecutingDate = 1"},
		"the site holds":        {ad: "ImageSize = 2000", knobs: knobs, want: hold("too large: 2000", 26, 17)},
		"one of the site's, by the time of this run": {ad: "RemoteWallClockTime = 490.0\nJobStartDate = 1799999980", knobs: knobs,
			want: hold("The system macro SYSTEM_PERIODIC_HOLD expression 'RemoteWallClockTime > 500' evaluated to TRUE", 26, 0)},
		"the job's own counts first": {ad: "ImageSize = 2000\nPeriodicHold = true\nPeriodicHoldReason = \"own\"", knobs: knobs, want: hold("own", 3, 0)},
		"the site removes": {ad: `Owner = "mallory"`, knobs: knobs,
			want: Decision{Remove, `The system macro SYSTEM_PERIODIC_REMOVE expression 'Owner == "mallory"' evaluated to TRUE`, 26, 0}},
		"one by which the site removes": {ad: "Old = true", knobs: map[string]string{
			"SYSTEM_PERIODIC_REMOVE_NAMES": "Age", "SYSTEM_PERIODIC_REMOVE_Age": "Old", "SYSTEM_PERIODIC_REMOVE_Age_REASON": `strcat("o", "ld")`, "SYSTEM_PERIODIC_REMOVE_Age_SUBCODE": "3",
		}, want: Decision{Remove, "old", 26, 3}},
		"the site removes for a reason": {ad: "Old = true", knobs: map[string]string{
			"SYSTEM_PERIODIC_REMOVE": "Old", "SYSTEM_PERIODIC_REMOVE_REASON": `"aged"`, "SYSTEM_PERIODIC_REMOVE_SUBCODE": "4",
		}, want: Decision{Remove, "aged", 26, 4}},
		"the site says no":              {ad: "ImageSize = 2000", knobs: map[string]string{"SYSTEM_PERIODIC_HOLD": "false"}},
		"the site's cannot be read":     {ad: "ImageSize = 2000", knobs: map[string]string{"SYSTEM_PERIODIC_HOLD": "ImageSize >"}},
		"an end":                        {ad: "ExitCode = 0", exits: true, want: Decision{Remove, "The job attribute OnExitRemove expression 'UNDEFINED' evaluated to TRUE", 3, 0}},
		"an end, held":                  {ad: "ExitCode = 5\nOnExitHold = ExitCode == 5\nOnExitHoldReason = strcat(\"it was \", ExitCode)\nOnExitHoldSubCode = 42", exits: true, want: hold("it was 5", 3, 42)},
		"an end, again":                 {ad: "ExitCode = 5\nOnExitRemove = ExitCode == 0", exits: true, want: Decision{Stay, "The job attribute OnExitRemove expression 'ExitCode == 0' evaluated to FALSE", 3, 0}},
		"an end, undefined":             {ad: "OnExitRemove = Nothing", exits: true, want: Decision{Remove, "The job attribute OnExitRemove expression 'Nothing' evaluated to TRUE", 3, 0}},
		"an end, vacate does not count": {ad: "PeriodicVacate = true", exits: true, want: Decision{Remove, "The job attribute OnExitRemove expression 'UNDEFINED' evaluated to TRUE", 3, 0}},
		"an end of what is removed":     {ad: "JobStatus = 3\nOnExitHold = true", exits: true, want: Decision{Remove, "The job attribute OnExitRemove expression 'true' evaluated to TRUE", 3, 0}},
		"an end while on hold, by time": {ad: "TimerRemove = 1\nOnExitHold = true", exits: true, want: Decision{Remove, "The job attribute TimerRemove expression '1' evaluated to TRUE", 3, 0}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			ad, err := classads.ParseOld(tt.ad + "\n")
			if err != nil {
				t.Fatal(err)
			}
			before := ad.FormatOld()
			p := Of(config.FromMap(tt.knobs))
			got := p.WhileRunning(ad, now)
			if tt.exits {
				got = p.AtExit(ad, now)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(before, ad.FormatOld()); diff != "" {
				t.Errorf("the ad was changed:\n%s", diff)
			}
		})
	}
	if p := Of(config.FromMap(map[string]string{"SYSTEM_PERIODIC_HOLD": "ImageSize >"})); len(p.Invalid) != 1 {
		t.Errorf("a policy that cannot be read: got %v", p.Invalid)
	}
}
