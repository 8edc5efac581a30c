package payloadrun_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/payload"
	"podstarter/starter/payloadrun"
)

// TestUnpacked: what a job gets of an image that is a file, with the machine's own shell. The
// image's directory of scripts is the test's, since nothing is mounted here.
func TestUnpacked(t *testing.T) {
	scripts := t.TempDir()
	must(t, os.WriteFile(filepath.Join(scripts, "10-a.sh"), []byte("export GREETING=\"hello $MINE\" BOTH=image PATH=/only:/bin DEFAULT=\"${DEFAULT:-image}\" __n=7\n"), 0o644))
	must(t, os.WriteFile(filepath.Join(scripts, "90-b.sh"), []byte("LATER=\"after $GREETING\"; export LATER; set -- x y; false\n"), 0o644))
	must(t, os.WriteFile(filepath.Join(scripts, "notes"), []byte("exit 9\n"), 0o644))
	j := aJob(t, `Arguments = "one 'two three' '' '$HOME'"`, nil)
	j.Ad.SetString("Environment", "MINE='a b''c' BOTH=job DEFAULT=job A.B=odd LINES='x\ny' APPTAINER_BIND=/etc APPTAINERENV_INSIDE=yes SINGULARITY_NV=1 HOME=/evil UID=7 __n=5 BASH_ENV=/dev/stdin LD_LIBRARY_PATH=/mine")
	j.Machine.SetString("Name", "slot1_1@pilot")
	j.Environ = append(j.Environ, "_CONDOR_ANCESTOR_1=2:3:4")
	j.Unpacked = &payloadrun.Unpacked{Name: "x.sif", Path: j.Sandbox.Scratch() + "/x.sif"}
	_ = j.Ad.SetExpr("Cmd", `"/usr/bin/env"`)
	cmd, spec, err := j.Main("run", "", nil)
	must(t, err)
	if cmd.Path != "/usr/bin/env" || spec.Path != "/bin/sh" {
		t.Fatalf("runs %s by %s", cmd.Path, spec.Path)
	}
	show := func(spec payload.Spec) []string {
		t.Helper()
		spec.Args[4] = strings.ReplaceAll(spec.Args[4], "/.singularity.d/env", scripts)
		c := exec.Command(spec.Path, spec.Args[1:]...)
		c.Env = spec.Env
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	}
	at := slices.Index(spec.Args, "/usr/bin/env")
	if diff := cmp.Diff([]string{"/usr/bin/env", "one", "two three", "", "$HOME"}, spec.Args[at:]); diff != "" {
		t.Errorf("the job's arguments (-want +got):\n%s", diff)
	}
	for _, arg := range spec.Args[:at] { // everybody in the pod can read arguments
		if strings.Contains(arg, "a b'c") || strings.Contains(arg, "/evil") {
			t.Errorf("an argument has a variable's value: %q", arg)
		}
	}
	spec.Args = spec.Args[:at+1]
	got := show(spec)
	box := j.Sandbox.Scratch()
	for name, want := range map[string]string{
		"PATH": "/only:/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin", "MINE": "a b'c", "GREETING": "hello a b'c", "LATER": "after hello a b'c", "BOTH": "job", "DEFAULT": "job", "INSIDE": "yes", "HOME": box, "LANG": "C",
		"APPTAINER_NAME": "x.sif", "SINGULARITY_CONTAINER": box + "/x.sif", "APPTAINER_COMMAND": "exec", "APPTAINER_BIND": j.Sandbox.Dir(), "SINGULARITY_BIND": j.Sandbox.Dir(),
		"APPTAINER_ENVIRONMENT": "/.singularity.d/env/91-environment.sh", "APPTAINER_TMPDIR": box, "LD_LIBRARY_PATH": "/mine:/.singularity.d/libs", "PS1": "slot1_1@pilot$ ", "PROMPT_COMMAND": `PS1="slot1_1@pilot$ "; unset PROMPT_COMMAND`,
		"__f": "", "__value_MINE": "", "__value_BOTH": "", "BASH_ENV": "/dev/stdin", "APPTAINERENV_INSIDE": "", "SINGULARITY_NV": "", "SINGULARITY_CACHEDIR": "", "_CONDOR_ANCESTOR_1": "",
	} {
		if value := environ(got, name); value != want {
			t.Errorf("%s=%q, want %q", name, value, want)
		}
	}

	t.Run("a longer PATH", func(t *testing.T) {
		was := j.Ad.StringOr("Environment", "")
		defer j.Ad.SetString("Environment", was)
		for more, want := range map[string]string{
			"APPTAINERENV_PREPEND_PATH=/pre APPTAINERENV_APPEND_PATH=/post": "/pre:/only:/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/post",
			"SINGULARITYENV_APPEND_PATH=/post":                              "/only:/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/post",
			"APPTAINERENV_PREPEND_PATH=/pre PATH=/mine:/bin":                "/mine:/bin",
		} {
			j.Ad.SetString("Environment", more)
			_, spec, err := j.Main("run", "", nil)
			must(t, err)
			spec.Args = spec.Args[:slices.Index(spec.Args, "/usr/bin/env")+1]
			got := show(spec)
			if path := environ(got, "PATH"); path != want {
				t.Errorf("%s: PATH=%s, want %s", more, path, want)
			}
			for _, name := range []string{"PREPEND_PATH", "APPEND_PATH", "__prepend", "__append"} {
				if value := environ(got, name); value != "" {
					t.Errorf("%s: %s=%s", more, name, value)
				}
			}
		}
	})
	t.Run("no program", func(t *testing.T) {
		_ = j.Ad.SetExpr("Cmd", `""`)
		cmd, spec, err := j.Main("run", "", nil)
		must(t, err)
		if cmd.Path != "/.singularity.d/runscript" || environ(spec.Env, "APPTAINER_COMMAND") != "run" || !slices.Equal(spec.Args[len(spec.Args)-4:], []string{"one", "two three", "", "$HOME"}) {
			t.Errorf("%+v, %q", cmd, spec.Args)
		}
		// The image has no runscript, so a shell gets the arguments.
		spec.Args = append(spec.Args[:len(spec.Args)-4], "-c", `echo "$GREETING $1"`, "sh", "x  y")
		if got := show(spec); got[0] != "hello a b'c x  y" {
			t.Errorf("%q", got)
		}
	})
	t.Run("no shell", func(t *testing.T) {
		missing := &payload.StartError{Stage: payload.StageExec, Path: "/bin/sh", Errno: syscall.ENOENT}
		other := &payload.StartError{Stage: payload.StageExec, Path: "/bin/job", Errno: syscall.ENOENT}
		if u := j.Unpacked; !u.LacksShell(missing) || u.LacksShell(other) || u.LacksShell(nil) || (*payloadrun.Unpacked)(nil).LacksShell(missing) {
			t.Error("it is not seen that the shell is missing, and nothing else")
		}
		j.Unpacked.NoShell = true
		if j.Unpacked.LacksShell(missing) {
			t.Error("it would be tried for ever")
		}
		if _, _, err := j.Main("run", "", nil); err == nil || !strings.Contains(err.Error(), "name one in the submit file") {
			t.Errorf("without a program: %v", err)
		}
		_ = j.Ad.SetExpr("Cmd", `"/bin/job"`)
		j.Ad.SetString("Environment", j.Ad.StringOr("Environment", "")+" APPTAINERENV_PREPEND_PATH=/pre")
		_, spec, err := j.Main("run", "", nil)
		must(t, err)
		if spec.Path != "/bin/job" || environ(spec.Env, "BOTH") != "job" || environ(spec.Env, "__prepend") != "" || environ(spec.Env, "APPTAINER_NAME") != "x.sif" {
			t.Errorf("%+v", spec)
		}
	})
	t.Run("under the site's wrapper", func(t *testing.T) {
		j.Unpacked.NoShell = false
		cmd, spec, err := j.Main("run", "/wrap", nil)
		must(t, err)
		if cmd.Path != "/wrap" || spec.Path != "/wrap" || spec.Args[1] != "/bin/sh" {
			t.Errorf("%+v, %q", cmd, spec.Args)
		}
	})
	t.Run("with a name for the sandbox", func(t *testing.T) {
		_ = j.Ad.SetExpr("ContainerTargetDir", `"/srv"`)
		j.Settings.Backend = "pod"
		_, spec, err := j.Main("run", "", nil)
		must(t, err)
		for name, want := range map[string]string{"HOME": "/srv", "APPTAINER_BIND": "/srv", "APPTAINER_CONTAINER": "/srv/x.sif", "_CONDOR_SCRATCH_DIR": "/srv"} {
			if got := environ(spec.Env, name); got != want {
				t.Errorf("%s=%q, want %q", name, got, want)
			}
		}
	})
}
