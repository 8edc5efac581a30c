package template

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
)

// learn takes over an ad that a slot advertises.
func learn(t *testing.T, shape, text string) *Seen {
	t.Helper()
	ad, err := classads.ParseOld(text)
	if err != nil {
		t.Fatal(err)
	}
	seen, err := Learn(ad, shape, time.Unix(1_800_000_000, 0))
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

// What an execution point advertises does not widen what the site says of START.
func TestStartOfTheSiteCounts(t *testing.T) {
	all, err := Load(folder(t, map[string]string{"a.template.yaml": good, "job.yaml": ""}))
	if err != nil {
		t.Fatal(err)
	}
	ad := all[0].Slot(all[0].Shapes[0], learn(t, "small", "Requirements = TARGET.A || true\nSite = \"Here\""))
	for text, want := range map[string]bool{"A = 1": false, "ProjectName = \"x\"": true} {
		job, err := classads.ParseOld(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := classads.Accepts(ad, job, classads.Env{}); got != want {
			t.Errorf("a job with %s is accepted: %v", text, got)
		}
	}
}

func TestLearn(t *testing.T) {
	// A pod that began on 20 November, 20 hours ago, and takes jobs for a day.
	seen := learn(t, "small", `DaemonStartTime = 1799928000
MyCurrentTime = 1800000000
GLIDEIN_ToRetire = 1800014400
PodStarterRestUntil = 1800000500
MachineResources = "Cpus Memory Disk Swap GPUs Payloads"
Payloads = 0
TotalSlotPayloads = 2
Cpus = 0
LoadAvg = 3.5
RecentJobStarts = 5
TotalLoadAvg = 1.5
Requirements = START && WithinResourceLimits
START = time() < GLIDEIN_ToRetire && MY.Payloads >= (TARGET.RequestPayloads ?: 1) && LoadAvg < 4 && time() >= (MY.PodStarterRestUntil ?: 0)
WithinResourceLimits = MY.Cpus > 0 && TARGET.RequestCpus <= MY.Cpus && (TARGET.Cpus ?: 1) > 0
`)
	for name, want := range map[string]string{
		"GLIDEIN_ToRetire": "1800186400", "Payloads": "2", "LoadAvg": "0", "RecentJobStarts": "undefined", "TotalLoadAvg": "undefined",
		"PodStarterRestUntil": "undefined", "State": `"Unclaimed"`,
	} {
		e, err := classads.ParseExpr(name)
		if err != nil {
			t.Fatal(err)
		}
		later := func() time.Time { return time.Unix(1_800_100_000, 0) }
		if got := e.Eval(classads.Env{My: seen.ad, Now: later}).String(); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if diff := cmp.Diff([]string{"RequestCpus", "RequestPayloads"}, seen.References); diff != "" {
		t.Errorf("the attributes of jobs: -want +got\n%s", diff)
	}
	// A pod that began later, and measures something else, advertises the same.
	text := "DaemonStartTime = %d\nEnd = %d\nRecentJobStarts = %d\nRequirements = TARGET.A"
	one := learn(t, "small", fmt.Sprintf(text, 1799928000, 1799929000, 5))
	other := learn(t, "small", fmt.Sprintf(text, 1799990000, 1799991000, 7))
	if one.Digest != other.Digest {
		t.Error("two pods that are alike have different ads")
	}
	if third := learn(t, "small", fmt.Sprintf(text, 1799928000, 1799929001, 5)); third.Digest == one.Digest {
		t.Error("two pods that differ have the same ad")
	}
}

// A job that says what its GPUs must have counts them among those that are free: in a
// new pod, all of them are.
func TestGPUsThatWereSeen(t *testing.T) {
	all, err := Load(folder(t, map[string]string{"a.template.yaml": good, "job.yaml": ""}))
	if err != nil {
		t.Fatal(err)
	}
	seen := learn(t, "gpu", "Requirements = true\nGPUs = 0\nGPUs_a = [ Capability = 9.0 ]\nAvailableGPUs = {}\nAssignedGPUs = \"a\"")
	e, err := classads.ParseExpr("countMatches(MY.RequireGPUs, TARGET.AvailableGPUs) >= RequestGPUs")
	if err != nil {
		t.Fatal(err)
	}
	for request, want := range map[int64]bool{1: true, 2: true, 3: false} {
		for capability, enough := range map[string]bool{"8.5": true, "9.5": false} {
			job := classads.NewAd()
			job.SetInt("RequestGPUs", request)
			if err := job.SetExpr("RequireGPUs", "Capability >= "+capability); err != nil {
				t.Fatal(err)
			}
			slot := all[0].Slot(all[0].Shapes[1], seen)
			if got, _ := e.Eval(classads.Env{My: job, Target: slot}).Bool(); got != (want && enough) {
				t.Errorf("%d GPUs with capability %s are there: %v", request, capability, got)
			}
		}
	}
}

// What would do harm is not taken over.
func TestAdsThatAreNotLearnt(t *testing.T) {
	many := "Requirements = true"
	for i := range maxReferences + 1 {
		many += fmt.Sprintf(" && TARGET.A%d", i)
	}
	for want, text := range map[string]string{
		"no Requirements":               "Cpus = 1",
		"takes no more jobs":            "Requirements = false",
		"which each job has for itself": "Requirements = START\nSTART = TARGET.ProcId == 5",
		"at most 32768 are kept":        "Requirements = TARGET.X\nY = \"" + strings.Repeat("y", maxSeen) + "\"",
		"refer to 51 attributes":        many,
	} {
		ad, err := classads.ParseOld(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Learn(ad, "small", time.Now()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want one with %q", text, err, want)
		}
	}
}

func FuzzLearn(f *testing.F) {
	f.Add("Requirements = START && A\nSTART = TARGET.X > MY.A\nA = A\nDaemonStartTime = 5\nMachineResources = \"Cpus B\"\nTotalSlotB = 1\nGPUs_x = [ a = 1 ]")
	dir := f.TempDir()
	for name, text := range map[string]string{"a.template.yaml": good, "job.yaml": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			f.Fatal(err)
		}
	}
	all, err := Load(dir)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ad, err := classads.Parser{MaxText: 4096}.Old(text)
		if err != nil {
			return
		}
		seen, err := Learn(ad, "small", time.Unix(1_800_000_000, 0))
		if err != nil {
			return
		}
		if len(seen.References) > maxReferences {
			t.Errorf("%d references", len(seen.References))
		}
		for _, s := range all[0].Shapes {
			// The site's START is about ProjectName, which this job lacks.
			slot := all[0].Slot(s, seen)
			if classads.Accepts(slot, classads.NewAd(), classads.Env{}) {
				t.Errorf("%s takes a job that the site refuses", s.Name)
			}
			if got, _ := slot.GetInt("Cpus"); got != s.Pod.CPUs {
				t.Errorf("%s has %d CPUs", s.Name, got)
			}
		}
	})
}

// What Requirements refer to is in the ad of a new pod as it would be there.
func TestWhatStartRefersTo(t *testing.T) {
	for start, want := range map[string]bool{
		"time() - DaemonStartTime < 600 && time() - EnteredCurrentState < 600": true,
		"NumDynamicSlots < 1":               true,
		"LoadAvg - CondorLoadAvg < 0.3":     true,
		"CpuBusy":                           false,
		"KeyboardIdle > 900":                true,
		"time() < End":                      true,
		"time() + 901 < End":                false,
		"ClockMin >= 300 && ClockMin < 302": true, // two hours later it is five
		"ClockDay == 2":                     true,
		"Stopped =!= true":                  false,
	} {
		seen := learn(t, "small", `DaemonStartTime = 1799990000
MyCurrentTime = 1800000000
EnteredCurrentState = 1799995000
End = 1799990900
NumDynamicSlots = 4
LoadAvg = 8.5
CondorLoadAvg = 0.5
CpuBusy = true
KeyboardIdle = 1000
ClockMin = 180
ClockDay = 2
Stopped = true
Requirements = START
START = `+start)
		later := func() time.Time { return time.Unix(1_800_007_200, 0) }
		if got := classads.Accepts(seen.ad, classads.NewAd(), classads.Env{Now: later}); got != want {
			t.Errorf("%s is %v", start, got)
		}
	}
}
