package match

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"podstarter/classads"
	"podstarter/provisioner/template"
)

// real returns the slot of a new pod as one advertises it whose startd of HTCondor
// 25.14 has partitionable slots, payload containers as a resource, and a START by
// which only a job that uses more than half of a pod may be the first in it. The ad
// ad is what its collector printed.
func real(t *testing.T, lines string, change func(ad *classads.Ad)) Slot {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.template.yaml": "name: plain\nmanifest: pod.yaml\nslots: 4\npartitionable: true\n" + lines + "shapes:\n- {name: one, cpus: 1, memory: 2Gi, disk: 10Gi}\n",
		"pod.yaml":        "kind: Pod\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	templates, err := template.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/slot.ad")
	if err != nil {
		t.Fatal(err)
	}
	ad := ad(t, string(text))
	if change != nil {
		change(ad)
	}
	seen, err := template.Learn(ad, "one", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return Slot{ID: "plain/one", Ad: templates[0].Slot(templates[0].Shapes[0], seen)}
}

// requirements are those that condor_submit of 25.14 writes.
const requirements = `Requirements = (TARGET.Arch == "X86_64") && (TARGET.OpSys == "LINUX") && (versionGE(split(TARGET.CondorVersion)[1],"25.12.0") || (TARGET.Disk >= RequestDisk)) && (TARGET.Memory >= RequestMemory) && (TARGET.Cpus >= RequestCpus) && ((TARGET.FileSystemDomain == MY.FileSystemDomain) || (TARGET.HasFileTransfer))
FileSystemDomain = "y"
RequestDisk = 100
`

// Both sides decide as in the negotiator of that pool, where the first job stayed
// idle and the second ran.
func TestSlotOfARealStartd(t *testing.T) {
	for name, c := range map[string]struct {
		job, lines string
		change     func(ad *classads.Ad)
		want       string
	}{
		"a small job may not be the first":    {job: "RequestCpus = 1\nRequestMemory = 512", want: whyTheirs},
		"one that uses more than half may":    {job: "RequestCpus = 3\nRequestMemory = 4096"},
		"all of the pod":                      {job: "RequestCpus = 4\nRequestMemory = 8192"},
		"more than the pod":                   {job: "RequestCpus = 5\nRequestMemory = 4096", want: whyMine},
		"more than the slot says of its disk": {job: "RequestCpus = 4\nRequestMemory = 8192\nRequestDisk = 41943041", want: whyTheirs},
		"no request for CPUs":                 {job: "RequestMemory = 8192", want: whyMine},
		"GPUs":                                {job: "RequestCpus = 3\nRequestMemory = 8192\nRequestGPUs = 1", want: whyTheirs},
		"payload containers":                  {job: "RequestCpus = 3\nRequestMemory = 8192\nRequestPayloads = 4"},
		"more of them than there are":         {job: "RequestCpus = 3\nRequestMemory = 8192\nRequestPayloads = 5", want: whyTheirs},
		"the site's own words count":          {job: "RequestCpus = 3\nRequestMemory = 4096", lines: "slot: START = TARGET.Owner == \"bob\"\n", want: whyTheirs},
		"a slot that is in use": {
			job: "RequestCpus = 4\nRequestMemory = 8192",
			change: func(ad *classads.Ad) {
				for _, name := range []string{"Cpus", "Memory", "Disk", "Payloads"} {
					ad.SetInt(name, 0)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			job := requirements + c.job
			if strings.Contains(c.job, "RequestDisk") {
				job = strings.Replace(job, "RequestDisk = 100\n", "", 1)
			}
			got := New(nil, nil).Update([]Job{{ID: "j", Ad: ad(t, job)}}, []Slot{real(t, c.lines, c.change)})[0][0]
			if got.Why != c.want || got.Matches != (c.want == "") {
				t.Errorf("%+v, want %q", got, c.want)
			}
		})
	}
}
