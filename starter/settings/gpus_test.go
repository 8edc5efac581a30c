package settings

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/condor/config"
)

func TestGPUs(t *testing.T) {
	type m = map[string]string
	for name, tt := range map[string]struct {
		knobs m
		want  GPUs
		wrong string
	}{
		"none":             {knobs: m{"POD_STARTER_GPU_DISCOVERY": "x"}},
		"one":              {knobs: m{"POD_STARTER_GPU_CONTAINERS": "b", "LIBEXEC": "/lib", "STARTD_DETECT_GPUS": "-properties -extra"}, want: GPUs{[]string{"b"}, []string{"/lib/condor_gpu_discovery", "-properties", "-extra"}}},
		"older HTCondor":   {knobs: m{"POD_STARTER_GPU_CONTAINERS": "a, b", "LIBEXEC": "/lib", "GPU_DISCOVERY_EXTRA": "-uuid"}, want: GPUs{[]string{"a", "b"}, []string{"/lib/condor_gpu_discovery", "-properties", "-uuid"}}},
		"pilot's switched": {knobs: m{"POD_STARTER_GPU_CONTAINERS": "a", "POD_STARTER_GPU_DISCOVERY": "/own", "STARTD_DETECT_GPUS": "false"}, want: GPUs{[]string{"a"}, []string{"/own", "-properties"}}},
		"no path":          {knobs: m{"POD_STARTER_GPU_CONTAINERS": "a", "POD_STARTER_GPU_DISCOVERY": "own"}, wrong: "POD_STARTER_GPU_DISCOVERY: \"own\" is not an absolute path"},
		"unknown":          {knobs: m{"POD_STARTER_GPU_CONTAINERS": "c"}, wrong: "POD_STARTER_GPU_CONTAINERS: names c, which is none of POD_STARTER_CONTAINERS"},
		"twice":            {knobs: m{"POD_STARTER_GPU_CONTAINERS": "a a"}, wrong: "names a twice"},
		"spares":           {knobs: m{"POD_STARTER_GPU_CONTAINERS": "a", "POD_STARTER_SPARES": "1"}, wrong: "is for pods without spares"},
		"beside":           {knobs: m{"POD_STARTER_GPU_CONTAINERS": "a", "POD_STARTER_BACKEND": "local"}},
	} {
		t.Run(name, func(t *testing.T) {
			knobs := m{"POD_STARTER_CONTAINERS": "a b", "POD_STARTER_BACKEND": "pod"}
			for k, v := range tt.knobs {
				knobs[k] = v
			}
			set, err := Read(config.FromMap(knobs))
			if tt.wrong == "" && err == nil {
				if diff := cmp.Diff(tt.want, set.GPUs); diff != "" {
					t.Error("(-want +got):\n" + diff)
				}
				return
			}
			if err == nil || tt.wrong == "" || !strings.Contains(err.Error(), tt.wrong) {
				t.Errorf("the error is %v, want one with %q", err, tt.wrong)
			}
		})
	}
}
