package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podstarter/condor/config"
)

// TestBesideStarter: a pod whose token is missing is not taken for a machine in silence.
func TestBesideStarter(t *testing.T) {
	with, without := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(with, "token"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		backend, pod, dir string
		want              string
		warned            bool
	}{
		"a pod":                    {"auto", "glidein", with, BackendPod, false},
		"a pod without a token":    {"auto", "glidein", without, BackendLocal, true},
		"a machine":                {"auto", "", without, BackendLocal, false},
		"a machine with a token":   {"auto", "", with, BackendLocal, false},
		"as the site wants it":     {"local", "glidein", without, BackendLocal, false},
		"a pod, whatever it lacks": {"pod", "glidein", without, BackendPod, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Read(config.FromMap(map[string]string{"POD_STARTER_BACKEND": tt.backend, "POD_STARTER_POD_NAME": tt.pod, "POD_STARTER_KUBERNETES_DIR": tt.dir, "EXECUTE": "/x", "LOCK": "/x"}))
			if err != nil {
				t.Fatal(err)
			}
			if w := s.BesideStarter(); s.Backend != tt.want || (w != "") != tt.warned || tt.warned && !strings.Contains(w, filepath.Join(without, "token")) {
				t.Errorf("backend %s, %q", s.Backend, w)
			}
		})
	}
}
