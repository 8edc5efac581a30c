package settings

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/condor/config"
)

func TestConfiguration(t *testing.T) {
	type m = map[string]string
	for name, tt := range map[string]struct {
		first string // CONDOR_CONFIG
		knobs m
		want  []string
	}{
		"a file, directories and files": {"/c/condor_config", m{"LOCAL_CONFIG_DIR": "/usr/share/c, /c/config.d", "LOCAL_CONFIG_FILE": "/c/local /c/more"},
			[]string{"/c/condor_config", "/c/config.d", "/c/local", "/c/more", "/usr/share/c"}},
		"a command":           {"/c/condor_config", m{"LOCAL_CONFIG_FILE": "/usr/bin/print /c/key |"}, []string{"/c/condor_config"}},
		"nothing but knobs":   {"ONLY_ENV", m{"LOCAL_CONFIG_DIR": "config.d"}, nil},
		"the same file twice": {"/c/a", m{"LOCAL_CONFIG_FILE": "/c/a"}, []string{"/c/a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("CONDOR_CONFIG", tt.first)
			got := configuration(config.FromMap(tt.knobs))
			if diff := cmp.Diff(tt.want, append([]string(nil), got...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
