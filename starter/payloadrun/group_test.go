package payloadrun

import (
	"log/slog"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/condor/config"
	"podstarter/localexec/group"
	"podstarter/payload"
	"podstarter/starter/settings"
)

// TestGroupOf: a job's control group as the site's knobs say.
func TestGroupOf(t *testing.T) {
	machine, err := classads.ParseNew(`[ Name = "slot1_2@host"; Memory = 512; Cpus = 4 ]`)
	if err != nil {
		t.Fatal(err)
	}
	ad, err := classads.ParseNew(`[ RequestMemory = 300 ]`)
	if err != nil {
		t.Fatal(err)
	}
	const name = "/var/execute_slot1_2@host"
	for title, tt := range map[string]struct {
		knobs map[string]string
		want  *payload.Group
	}{
		"default":    {map[string]string{"BASE_CGROUP": "htcondor"}, &payload.Group{Name: name, CPUWeight: 400, MemoryMax: 512 << 20, NoSwap: true}},
		"none":       {map[string]string{"BASE_CGROUP": "htcondor", "CGROUP_MEMORY_LIMIT_POLICY": "none"}, &payload.Group{Name: name, CPUWeight: 400, NoSwap: true}},
		"swap":       {map[string]string{"BASE_CGROUP": "htcondor", "DISABLE_SWAP_FOR_JOB": "false"}, &payload.Group{Name: name, CPUWeight: 400, MemoryMax: 512 << 20}},
		"no groups":  {map[string]string{"BASE_CGROUP": ""}, nil},
		"not custom": {map[string]string{"BASE_CGROUP": "x", "CGROUP_HARD_MEMORY_LIMIT_EXPR": "1"}, &payload.Group{Name: name, CPUWeight: 400, MemoryMax: 512 << 20, NoSwap: true}},
		"custom": {
			map[string]string{"BASE_CGROUP": "x", "CGROUP_MEMORY_LIMIT_POLICY": "custom", "CGROUP_HARD_MEMORY_LIMIT_EXPR": "TARGET.RequestMemory * 1.5", "CGROUP_LOW_MEMORY_LIMIT": "MY.Memory / 2"},
			&payload.Group{Name: name, CPUWeight: 400, MemoryMax: 450 << 20, MemoryLow: 256 << 20, NoSwap: true},
		},
		"custom, which gives nothing": {
			map[string]string{"BASE_CGROUP": "x", "CGROUP_MEMORY_LIMIT_POLICY": "custom", "CGROUP_HARD_MEMORY_LIMIT_EXPR": "NoSuch"},
			&payload.Group{Name: name, CPUWeight: 400, NoSwap: true},
		},
	} {
		t.Run(title, func(t *testing.T) {
			j := &Job{Machine: machine, Ad: ad, Log: slog.New(slog.DiscardHandler)}
			j.Settings = settings.Settings{Config: config.FromMap(tt.knobs), Backend: settings.BackendLocal}
			j.Settings.Condor.Execute = "/var/execute"
			if diff := cmp.Diff(tt.want, j.Group()); diff != "" {
				t.Error(diff)
			}
		})
	}
	for amount, want := range map[int64]int64{1: 1 << 20, -1: 0, 1 << 43: 0, math.MaxInt64: 0} {
		if got := inMebibytes(amount); got != want {
			t.Errorf("%d MiB are %d bytes, want %d", amount, got, want)
		}
	}
	set := settings.Settings{Config: config.FromMap(map[string]string{"BASE_CGROUP": "x", "CREATE_CGROUP_WITHOUT_ROOT": "True"})}
	if diff := cmp.Diff(group.Site{Base: "x", WithoutRoot: true}, GroupsOf(set)); diff != "" {
		t.Error(diff)
	}
	set.Backend = settings.BackendPod
	if g := (&Job{Settings: set, Machine: machine, Ad: ad}).Group(); g != nil {
		t.Errorf("in a pod, it is %+v", g)
	}
}
