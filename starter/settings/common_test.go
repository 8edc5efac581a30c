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
	root, usual := os.Getuid() == 0, "Copy"
	if root {
		usual = "Hardlink"
	}
	for name, tt := range map[string]struct {
		knobs  map[string]string
		want   CommonFiles
		method string
	}{
		"usual":           {nil, CommonFiles{Offered: true, Links: root, Copies: true, Digests: !root}, usual},
		"copies":          {map[string]string{"POD_STARTER_COMMON_FILES": "Copy"}, CommonFiles{Offered: true, Copies: true, Digests: !root}, "Copy"},
		"never":           {map[string]string{"POD_STARTER_COMMON_FILES": "never"}, CommonFiles{Copies: true, Digests: !root}, "Copy"},
		"no links":        {map[string]string{"FORBID_HARDLINK_MAPPING": "true"}, CommonFiles{Offered: true, Copies: true, Digests: !root}, "Copy"},
		"no copies":       {map[string]string{"FORBID_COPY_MAPPING": "true"}, CommonFiles{Offered: root, Links: root, Digests: !root}, usual},
		"neither":         {map[string]string{"FORBID_COPY_MAPPING": "true", "POD_STARTER_COMMON_FILES": "copy"}, CommonFiles{Digests: !root}, "Copy"},
		"flat sandboxes":  {map[string]string{"STARTER_NESTED_SCRATCH": "false"}, CommonFiles{Offered: true, Links: root, Copies: true, Digests: !root}, usual},
		"nobody is asked": {map[string]string{"GUIDANCE_MUMS_THE_WORD": "true"}, CommonFiles{Links: root, Copies: true, Digests: !root}, usual},
		"a volume of its own": {map[string]string{"POD_STARTER_BACKEND": "pod", "POD_STARTER_SCRATCH_DIR": "/scratch"},
			CommonFiles{Offered: true, Copies: true, Digests: !root}, "Copy"},
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
