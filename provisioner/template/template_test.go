package template

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/provisioner/resources"
)

const good = `name: plain
manifest: job.yaml
maxPods: 100
maxComing: 10
slots: 2
partitionable: true
lifetime: 8h
slot: |
  START = TARGET.ProjectName isnt undefined && MY.Site == "Here" && Cpus > 0
  Site = "Here"
rank: TARGET.JobPrio + Site
shapes:
- {name: small, cpus: 1, memory: 2Gi, disk: 10Gi}
- {name: gpu, cpus: 8, memory: 16384Mi, disk: 1Ti, gpus: 1, maxPods: 4}
`

func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestLoad(t *testing.T) {
	all, err := Load(folder(t, map[string]string{"a.template.yaml": good, "job.yaml": "kind: Job\n", "other.yaml": "x"}))
	if err != nil {
		t.Fatal(err)
	}
	want := []Shape{
		{Name: "small", Size: resources.Amount{CPUs: 1, Memory: 2048, Disk: 10 << 20}, Pod: resources.Amount{CPUs: 2, Memory: 4096, Disk: 20 << 20}, Lifetime: 8 * time.Hour},
		{Name: "gpu", Size: resources.Amount{CPUs: 8, Memory: 16384, Disk: 1 << 30, GPUs: 1}, Pod: resources.Amount{CPUs: 16, Memory: 32768, Disk: 2 << 30, GPUs: 2}, MaxPods: 4, Lifetime: 8 * time.Hour},
	}
	if diff := cmp.Diff(want, all[0].Shapes); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if got := all[0]; got.Name != "plain" || got.Manifest != "kind: Job\n" || got.MaxPods != 100 || got.MaxComing != 10 || got.Slots != 2 || !got.Partitionable {
		t.Errorf("the template is %+v", got)
	}
	// Cpus and Site are the slot's own; TARGET is no attribute.
	if diff := cmp.Diff([]string{"JobPrio", "ProjectName"}, all[0].References()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// All mistakes are found in one go, and each message says where.
func TestMistakes(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{"an empty folder", nil, []string{"no file ends in .template.yaml"}},
		{"an unknown key", map[string]string{"a.template.yaml": good + "maxpod: 1\n", "job.yaml": ""}, []string{"a.template.yaml", `unknown field "maxpod"`}},
		{"no manifest", map[string]string{"a.template.yaml": good}, []string{"job.yaml: no such file"}},
		{"a manifest elsewhere", map[string]string{"a.template.yaml": strings.ReplaceAll(good, "job.yaml", "../job.yaml")}, []string{"must be the name of a file beside the template"}},
		{"twice the same name", map[string]string{"a.template.yaml": good, "b.template.yaml": good, "job.yaml": ""}, []string{"b.template.yaml", "another template has the name plain"}},
		{
			"many mistakes",
			map[string]string{"job.yaml": "", "a.template.yaml": `name: Plain_1
manifest: job.yaml
lifetime: soon
maxPods: -1
slot: "START = ("
rank: "1 +"
images: {allow: [debian], deny: ["a//"]}
shapes:
- {name: s, cpus: 0, memory: 1Gi, disk: 1Gi}
- {name: t, cpus: 1, memory: lots, disk: 1Gi}
- {name: u, cpus: 1, memory: 1Gi, disk: 12}
- {name: v, cpus: 1, memory: 1Gi, disk: 1Gi}
- {name: v, cpus: 1, memory: 1Gi, disk: 1Gi}
`},
			[]string{`name is "Plain_1"`, `lifetime is "soon"`, "maxPods and maxComing", "slot:", "rank:", "images:", "names no registry", "the shape s has 0 CPUs", `memory of the shape t: "lots"`, `disk of the shape u: "12" is too small`, "another shape v"},
		},
		{"no shape", map[string]string{"job.yaml": "", "a.template.yaml": "name: a\nmanifest: job.yaml\n"}, []string{"0 shapes"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Load(folder(t, c.files))
			if err == nil {
				t.Fatal("there is no error")
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("the error lacks %q:\n%s", w, err)
				}
			}
		})
	}
}

// A slot is what an execution point really advertises, in the size of the shape.
func TestSlot(t *testing.T) {
	all, err := Load(folder(t, map[string]string{"a.template.yaml": good, "job.yaml": ""}))
	if err != nil {
		t.Fatal(err)
	}
	tpl := all[0]
	ad := tpl.Slot(tpl.Shapes[1], nil)
	for name, want := range map[string]string{"Cpus": "16", "TotalSlotMemory": "32768", "GPUs": "2", "Site": `"Here"`, "HasFileTransfer": "true", "PartitionableSlot": "true"} {
		if got := ad.Eval(name, classads.Env{}).String(); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	seen := learn(t, "small", "Name = \"slot1@pod-1\"\nMemory = 5\nCondorVersion = \"25.14\"\nSTART = Nice\nRequirements = START\nNice = TARGET.Good\nClaimId = \"secret\"\nHasDocker = false\nState = \"Claimed\"\nSite = \"There\"")
	ad = tpl.Slot(tpl.Shapes[0], seen)
	for name, want := range map[string]string{"Memory": "4096", "CondorVersion": `"25.14"`, "HasDocker": "false", "Name": "undefined", "ClaimId": "undefined", "State": `"Unclaimed"`, "Site": `"There"`} {
		if got := ad.Eval(name, classads.Env{}).String(); got != want {
			t.Errorf("with an ad that was seen: %s is %s, want %s", name, got, want)
		}
	}
	// The START of another size says nothing.
	ad = tpl.Slot(tpl.Shapes[1], seen)
	for name, want := range map[string]string{"Requirements": "START && WithinResourceLimits", "CondorVersion": `"25.14"`} {
		e, _ := ad.Lookup(name)
		if got := e.String(); got != want {
			t.Errorf("with an ad of another shape: %s is %s, want %s", name, got, want)
		}
	}
	start, _ := ad.Lookup("START")
	if !strings.Contains(start.String(), "ProjectName") {
		t.Errorf("with an ad of another shape: START is %s", start)
	}
}

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
		"GLIDEIN_ToRetire": "1800086400", "Payloads": "2", "int(LoadAvg * 2)": "7", "RecentJobStarts": "undefined", "TotalLoadAvg": "undefined",
		"PodStarterRestUntil": "undefined", "State": `"Unclaimed"`,
	} {
		e, err := classads.ParseExpr(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Eval(classads.Env{My: seen.ad}).String(); got != want {
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
		"takes no jobs":                 "Requirements = false",
		"which each job has for itself": "Requirements = START\nSTART = TARGET.ProcId == 5",
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

// A slot that is not partitionable is as large as one payload container, and a job
// takes all of it.
func TestStaticSlots(t *testing.T) {
	all, err := Load(folder(t, map[string]string{"a.template.yaml": strings.Replace(good, "partitionable: true", "", 1), "job.yaml": ""}))
	if err != nil {
		t.Fatal(err)
	}
	tpl, shape := all[0], all[0].Shapes[1]
	ad := tpl.Slot(shape, nil)
	for name, want := range map[string]string{"Cpus": "8", "GPUs": "1", "SlotType": `"Static"`, "PartitionableSlot": "false"} {
		if got := ad.Eval(name, classads.Env{}).String(); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	job := resources.Amount{CPUs: 1, Memory: 10}
	if got := tpl.Request(shape, job); got != shape.Size {
		t.Errorf("a job takes %+v of a slot that is not partitionable", got)
	}
	tpl.Partitionable = true
	for asked, want := range map[int64]int64{10: 128, 128: 128, 129: 256, 32768: 32768, 32767: 32768, 40000: 40000} {
		job.Memory = asked
		if got := tpl.Request(shape, job); got != (resources.Amount{CPUs: 1, Memory: want}) {
			t.Errorf("a job that asks for %d MiB takes %+v of a partitionable slot", asked, got)
		}
	}
}

// What condor_submit writes into the Requirements of jobs holds for slots that are
// large enough, of this version and of older ones.
func TestRequirementsOfSubmit(t *testing.T) {
	all, err := Load(folder(t, map[string]string{"a.template.yaml": good, "job.yaml": ""}))
	if err != nil {
		t.Fatal(err)
	}
	const requirements = `Requirements = (TARGET.Arch == "X86_64") && TARGET.HasDocker && (versionGE(split(TARGET.CondorVersion)[1],"25.12.0") || (TARGET.Disk >= RequestDisk)) && (TARGET.HasFileTransfer)`
	for _, c := range []struct {
		name, job, version string
		partitionable      bool
		want               bool
	}{
		{"an unknown version", "RequestDisk = 1024\nRequestCpus = 1", "", false, true},
		{"an unknown version, and too little disk", "RequestDisk = 1024000000\nRequestCpus = 1", "", false, false},
		{"the version", "RequestDisk = 1024\nRequestCpus = 1", "$CondorVersion: 25.14.1 2026-10-16 PackageID: 25.14.1+dfsg-1 $", false, true},
		// The job leaves these to the startd.
		{"too little disk", "RequestDisk = 1024000000\nRequestCpus = 1", "$CondorVersion: 25.14.1 2026-10-16 PackageID: 25.14.1+dfsg-1 $", false, false},
		{"too many CPUs", "RequestDisk = 1\nRequestCpus = 2", "", false, false},
		{"too many CPUs for a container", "RequestDisk = 1\nRequestCpus = 2", "", true, false},
		{"too many GPUs", "RequestDisk = 1\nRequestGPUs = 1", "", true, false},
		{"nothing requested", "RequestDisk = 1", "", true, true},
	} {
		tpl := all[0]
		tpl.Version, tpl.Partitionable = c.version, c.partitionable
		job, err := classads.ParseOld(requirements + "\nProjectName = \"a\"\n" + c.job)
		if err != nil {
			t.Fatal(err)
		}
		slot := tpl.Slot(tpl.Shapes[0], nil)
		if got := classads.Accepts(job, slot, classads.Env{}) && classads.Accepts(slot, job, classads.Env{}); got != c.want {
			t.Errorf("%s: they match: %t, want %t", c.name, got, c.want)
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

func FuzzTemplate(f *testing.F) {
	f.Add(good)
	f.Add("name: a\nslot: 'X = 1'\nshapes: [{}]\n")
	dir := f.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "job.yaml"), nil, 0o600); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		name := filepath.Join(dir, "a.template.yaml")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		all, err := Load(dir)
		if err != nil {
			return
		}
		all[0].References()
		for _, s := range all[0].Shapes {
			all[0].Slot(s, nil)
		}
	})
}

// Jobs whose image the pods would refuse are refused here, by the starter's own rules;
// what the rules say nothing of is not.
func TestImages(t *testing.T) {
	all, err := Load(folder(t, map[string]string{"a.template.yaml": good + "images: {allow: [docker.io/library/*, ghcr.io/good], deny: ['*/library/evil']}\n", "job.yaml": ""}))
	if err != nil {
		t.Fatal(err)
	}
	tpl := all[0]
	slot := tpl.Slot(tpl.Shapes[0], nil)
	for text, want := range map[string]string{
		"Cmd = \"/bin/true\"": "",
		"WantContainer = true\nWantDockerImage = true\nContainerImage = \"docker://debian:13\"": "",
		"WantDocker = true\nDockerImage = \"alice/tools\"":                                      "image docker.io/alice/tools:latest is not allowed here",
		"WantDocker = true\nDockerImage = \"index.docker.io/library/evil\"":                     "rule */library/evil",
		"SingularityImage = \"docker://quay.io/x/y\"":                                           "no rule of POD_STARTER_IMAGES_ALLOWED",
		"WantContainer = true\nWantSIF = true\nContainerImage = \"x.sif\"":                      "",
		"WantDocker = true\nDockerImage = \"A B\"":                                              "",
		"WantDocker = true": "",
	} {
		job, err := classads.ParseOld(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := tpl.Refuses(job, slot); (got == "") != (want == "") || !strings.Contains(strings.ReplaceAll(got, `"`, ""), want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if refs := tpl.References(); !slices.Contains(refs, "WantDocker") || !slices.IsSorted(refs) {
		t.Errorf("jobs are grouped by %q", refs)
	}
	if why := (Template{}).Refuses(slot, slot); why != "" {
		t.Errorf("without rules: %s", why)
	}
}
