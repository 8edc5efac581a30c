package apptainer_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/localexec/apptainer"
)

// TestInside: who enters the image has the job's variables there, and none of the runtime's.
func TestInside(t *testing.T) {
	w := wish()
	w.TargetDir, w.Env = "/srv", []string{"A=b", "P=" + slot + "/x", "HOME=/home/alice", "APPTAINER_BIND=/"}
	r := apptainer.Runtime{Version: "apptainer version 1"}
	c, err := apptainer.Build(site(), r, w, machine)
	if err != nil {
		t.Fatal(err)
	}
	got := set(c.Inside(r))
	delete(got, "_CONDOR_SCRATCH_DIR_OUTSIDE_CONTAINER")
	if diff := cmp.Diff(map[string]string{"A": "b", "P": "/srv/x", "HOME": slot, "PS1": "slot1@h$ "}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestBeside: when nothing runs in the image any more, a visit has a container of its own, with the places and the binds of the
// job's.
func TestBeside(t *testing.T) {
	s, r := site(), apptainer.Runtime{Version: "apptainer version 1"}
	s.Binds = []string{"/data"}
	c, err := apptainer.Build(s, r, wish(), machine)
	if err != nil {
		t.Fatal(err)
	}
	argv, env := c.Beside(r, []string{"TERM=x", "HOME=/h"}, `exec "$1"`, "a")
	if got := strings.Join(argv, " "); got != "/usr/bin/apptainer -s exec -W /execute/dir_1 --pwd /execute/dir_1 -B /execute/dir_1 -B /data --home /execute/dir_1 -C image.sif /bin/sh -c exec \"$1\" sh a" {
		t.Error(got)
	}
	if has := set(env); has["APPTAINERENV_TERM"] != "x" || has["APPTAINER_TMPDIR"] != slot || has["APPTAINERENV_HOME"] != "" {
		t.Errorf("%q", env)
	}
}

// TestEnter is the command for each kind of containment.
func TestEnter(t *testing.T) {
	s := site()
	const rest = " --target 7 -- /bin/sh -c exec \"$1\" sh a b"
	if got := strings.Join(s.Enter(7, `exec "$1"`, "a b"), " "); got != "/usr/bin/nsenter --preserve-credentials --user --mount --ipc --pid"+rest {
		t.Error(got)
	}
	s.PIDNamespaces = false
	if got := strings.Join(s.Enter(7, `exec "$1"`, "a b"), " "); got != "/usr/bin/nsenter --preserve-credentials --user --mount --ipc"+rest {
		t.Error(got)
	}
}

// TestInImage: file systems that the runtime started are not the job.
func TestInImage(t *testing.T) {
	for name, tt := range map[string]struct {
		children string
		names    map[string]string
		want     int
	}{
		"one":               {"12 ", map[string]string{"12": "appinit"}, 12},
		"beside its image":  {"11 12 ", map[string]string{"11": "squashfuse_ll", "12": "appinit"}, 12},
		"one that has gone": {"11 12 ", map[string]string{"12": "job"}, 12},
		"none":              {"11", map[string]string{"11": "fuse2fs"}, 0},
		"a job's program":   {"11 12 ", map[string]string{"11": "squashfuse_ll", "12": "diffuse"}, 12},
		"no child":          {"", nil, 0},
		"no runtime":        {"-", nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			proc := t.TempDir()
			write := func(text string, path ...string) {
				file := filepath.Join(append([]string{proc}, path...)...)
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if tt.children != "-" {
				write(tt.children, "10", "task", "10", "children")
			}
			for pid, name := range tt.names {
				write(name+"\n", pid, "comm")
			}
			got, err := apptainer.InImage(proc, 10)
			if got != tt.want || (err != nil) != (tt.want == 0) {
				t.Errorf("%d, %v", got, err)
			}
		})
	}
}
