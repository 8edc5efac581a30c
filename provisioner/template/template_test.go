package template

import (
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
spares: 1
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
	if got := all[0]; got.Name != "plain" || got.Manifest != "kind: Job\n" || got.MaxPods != 100 || got.MaxComing != 10 || got.Slots != 2 || got.Spares != 1 || !got.Partitionable {
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

// A slot that is not partitionable is as large as one payload container, and a job
// takes one of them, whatever it requests.
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
	if got := tpl.Request(shape, job); got != (resources.Amount{CPUs: 1, Memory: 10, Payloads: 1}) || shape.Pod.Payloads != 2 {
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

// On Kubernetes each job takes a payload container, however little else it asks for. With GPUs
// it takes all GPUs of its container, and a slot counts no other containers
// (condor_config.d/95-podstarter-slots.conf).
func TestContained(t *testing.T) {
	all, err := Load(folder(t, map[string]string{"a.template.yaml": good, "b.template.yaml": strings.Replace(strings.Replace(good, "name: plain", "name: fixed", 1), "partitionable: true", "", 1), "job.yaml": ""}))
	if err != nil {
		t.Fatal(err)
	}
	Contain(all)
	job := resources.Amount{CPUs: 1, Memory: 100}
	for _, c := range []struct {
		template, shape      int
		pod, takes, payloads int64
	}{{0, 0, 2, 1, 2}, {0, 1, 0, 0, 0}, {1, 0, 2, 1, -1}} {
		tpl := all[c.template]
		shape := tpl.Shapes[c.shape]
		if got := tpl.Request(shape, job).Payloads; shape.Pod.Payloads != c.pod || got != c.takes {
			t.Errorf("%s/%s: a pod has %d containers, and a job takes %d; want %d and %d", tpl.Name, shape.Name, shape.Pod.Payloads, got, c.pod, c.takes)
		}
		if got := tpl.Slot(shape, nil).IntOr("Payloads", -1); got != c.payloads {
			t.Errorf("%s/%s: the slot has %d containers, want %d", tpl.Name, shape.Name, got, c.payloads)
		}
	}
	for request, want := range map[string][2]bool{ // by the shape
		"": {true, false}, "RequestGPUs = 0": {true, false}, "RequestGPUs = 1": {false, true}, "RequestGPUs = 2": {false, false},
		"RequestMemory = 2048": {true, false}, "RequestMemory = 2049": {false, false}, "RequestDisk = 20971520": {true, false}, "RequestDisk = 20971521": {false, false}, "RequestGPUs = 1\nRequestMemory = 16384": {false, true},
	} {
		ad, err := classads.ParseOld("ProjectName = \"a\"\n" + request)
		if err != nil {
			t.Fatal(err)
		}
		for i, shape := range all[0].Shapes {
			if got := classads.Accepts(all[0].Slot(shape, nil), ad, classads.Env{}); got != want[i] {
				t.Errorf("the shape %s takes a job with %q: %t, want %t", shape.Name, request, got, want[i])
			}
		}
	}
	// Pods that turn out to have no container for such jobs have no room for them.
	none := all[0].Offering(all[0].Shapes[0], resources.Amount{CPUs: 9, Memory: 9999, Disk: 1 << 40})
	if got := all[0].Request(none, job); none.Pod.Fits(got) {
		t.Errorf("a pod with %v has room for %v", none.Pod, got)
	}
	// The startd rounds up what it cuts, and a container with less has no such slot.
	odd := all[0]
	odd.Shapes[0].Size.Memory = 2000
	ad, err := classads.ParseOld("ProjectName = \"a\"\nRequestMemory = 1990")
	if err != nil {
		t.Fatal(err)
	}
	if classads.Accepts(odd.Slot(odd.Shapes[0], nil), ad, classads.Env{}) {
		t.Error("a container of 2000 MiB takes a job with 1990, for which the startd cuts 2048")
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
