package settings

import (
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/condor/config"
)

// TestCommonFiles: what is offered follows from our knob, HTCondor's, and where sandboxes are.
func TestCommonFiles(t *testing.T) {
	root := os.Getuid() == 0
	for name, tt := range map[string]struct {
		knobs  map[string]string
		want   CommonFiles
		method string
	}{
		"usual":           {nil, CommonFiles{Offered: root, Links: true, Copies: true}, "Hardlink"},
		"copies":          {map[string]string{"POD_STARTER_COMMON_FILES": "Copy"}, CommonFiles{Offered: root, Copies: true}, "Copy"},
		"never":           {map[string]string{"POD_STARTER_COMMON_FILES": "never"}, CommonFiles{Copies: true}, "Copy"},
		"no links":        {map[string]string{"FORBID_HARDLINK_MAPPING": "true"}, CommonFiles{Offered: root, Copies: true}, "Copy"},
		"no copies":       {map[string]string{"FORBID_COPY_MAPPING": "true"}, CommonFiles{Offered: root, Links: true}, "Hardlink"},
		"neither":         {map[string]string{"FORBID_COPY_MAPPING": "true", "POD_STARTER_COMMON_FILES": "copy"}, CommonFiles{}, "Copy"},
		"flat sandboxes":  {map[string]string{"STARTER_NESTED_SCRATCH": "false"}, CommonFiles{Links: true, Copies: true}, "Hardlink"},
		"nobody is asked": {map[string]string{"GUIDANCE_MUMS_THE_WORD": "true"}, CommonFiles{Links: true, Copies: true}, "Hardlink"},
		"a volume of its own": {map[string]string{"POD_STARTER_BACKEND": "pod", "POD_STARTER_SCRATCH_DIR": "/scratch"},
			CommonFiles{Links: true, Copies: true}, "Hardlink"},
	} {
		t.Run(name, func(t *testing.T) {
			knobs := map[string]string{"STARTER_NESTED_SCRATCH": "true", "POD_STARTER_BACKEND": "local"}
			maps.Copy(knobs, tt.knobs)
			s, err := Read(config.FromMap(knobs))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, s.CommonFiles); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := s.CommonFiles.Method(); got != tt.method {
				t.Errorf("method %s, want %s", got, tt.method)
			}
		})
	}
	if _, err := Read(config.FromMap(map[string]string{"POD_STARTER_COMMON_FILES": "perhaps"})); err == nil || !strings.Contains(err.Error(), "POD_STARTER_COMMON_FILES") {
		t.Errorf("%v", err)
	}
}
