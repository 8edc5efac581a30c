package settings

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"podstarter/provisioner/decision"
	"podstarter/provisioner/demand"
)

func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "provisioner.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestRead(t *testing.T) {
	got, err := Read(write(t, `name: site
namespace: glideins
collector: cm.example.org
schedds: [ap1, {name: ap2, pool: "cm.home.org:9618"}]
filter: ProjectName isnt undefined
runtime: MaxWallTime * 60 + MY.Extra
interval: 30s
beginWithin: 20m
limits: {pods: 100, coming: 20, perUser: 50, perRound: 10}
policy: {patience: 5m, ramp: {first: 10, part: 0.5}}
lease: {duration: 30s}
`))
	if err != nil {
		t.Fatal(err)
	}
	policy := decision.DefaultPolicy
	policy.Patience, policy.Ramp = 5*time.Minute, decision.Ramp{First: 10, Part: 0.5}
	want := Settings{
		Name: "site", Namespace: "glideins", Collector: "cm.example.org", Schedds: []demand.Source{{Name: "ap1"}, {Name: "ap2", Pool: "cm.home.org:9618"}},
		Interval: 30 * time.Second, ReportWithin: 10 * time.Minute, BeginWithin: 20 * time.Minute,
		Limits: decision.Limits{Pods: 100, Coming: 20, PerUser: 50, PerRound: 10}, Policy: policy,
		Lease:   Lease{Name: "podstarter-provisioner-site", Duration: 30 * time.Second},
		Offline: Offline{Spare: 10, Lifetime: 24 * time.Hour, WakeWithin: 15 * time.Minute},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Settings{}, "Filter", "Runtime")); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if got.Filter.String() != "ProjectName isnt undefined" {
		t.Errorf("the filter is %s", got.Filter)
	}
	if refs := got.References(); got.Runtime.String() != "MaxWallTime * 60 + MY.Extra" || !slices.Equal(refs, []string{"MaxWallTime", "Extra"}) {
		t.Errorf("the run time is %s, which refers to %q", got.Runtime, refs)
	}
}

// All mistakes are found in one go.
func TestMistakes(t *testing.T) {
	_, err := Read(write(t, `name: The_Site
filter: "1 +"
runtime: ")"
interval: soon
reportWithin: 1s
beginWithin: 1s
limits: {pods: -1}
policy: {settle: 1ms, ramp: {part: 7}}
lease: {name: A B, duration: 5500ms}
`))
	if err == nil {
		t.Fatal("there is no error")
	}
	for _, want := range []string{`name is "The_Site"`, "filter:", "runtime:", `interval is "soon"`, `reportWithin is "1s"`, `beginWithin is "1s"`, "limits must not be negative", `policy.settle is "1ms"`, "policy.ramp has first 0 and part 7", `lease.name is "A B"`, `lease.duration is "5500ms"; a Lease counts in whole seconds`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q:\n%s", want, err)
		}
	}
	if _, err := Read(write(t, "nam: x\n")); err == nil || !strings.Contains(err.Error(), `unknown field "nam"`) {
		t.Errorf("an unknown key: %v", err)
	}
	if _, err := Read(write(t, strings.Repeat("#", maxFile+1))); err == nil {
		t.Error("a huge file is read")
	}
}

const commands = `submit: [sub, "{name}", "{note}"], id: "(.*)", status: [stat], fields: [name, id, state, note], states: {Q: pending, R: running}, cancel: [del, "{id}"]`

func TestPlatforms(t *testing.T) {
	s, err := Read(write(t, "name: site\nplatform: batch\nbatch: {"+commands+"}\n"))
	if err != nil || s.Batch == nil {
		t.Errorf("%+v, %v", s, err)
	}
	for _, text := range []string{"name: site\n", "name: site\nplatform: kubernetes\nnamespace: x\n"} {
		if s, err := Read(write(t, text)); err != nil || s.Batch != nil {
			t.Errorf("%q: %+v, %v", text, s, err)
		}
	}
	for want, text := range map[string]string{
		`platform is "lancium"; it must be kubernetes or batch`: "platform: lancium\n",
		"batch is missing":                      "platform: batch\n",
		"batch is set, and the platform is not": "batch: {" + commands + "}\n",
		"gpuResource or lease is set":           "platform: batch\nlease: {name: x}\nbatch: {" + commands + "}\n",
		"namespace, gpuResource":                "platform: batch\nnamespace: x\nbatch: {" + commands + "}\n",
		"batch.submit: it is empty":             "platform: batch\nbatch: {timeout: 1s}\n",
		`unknown field "shell"`:                 "platform: batch\nbatch: {shell: true}\n",
	} {
		if _, err := Read(write(t, "name: site\n"+text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one with %q", err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("name: site\nlimits: {pods: 1}\npolicy: {ramp: {part: .nan}}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if s, err := parse(text); err == nil && (s.Policy.Ramp.Part < 0 || s.Policy.Ramp.Part > 1 || s.Interval <= 0) {
			t.Errorf("%+v is accepted", s)
		}
	})
}

// In YAML a key off would be a boolean, and no name.
func TestNoLease(t *testing.T) {
	s, err := parse([]byte("name: site\nlease: {disabled: true}\n"))
	if err != nil || !s.Lease.Off {
		t.Errorf("%+v, %v", s.Lease, err)
	}
}
