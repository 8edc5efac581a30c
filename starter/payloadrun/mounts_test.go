package payloadrun_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/condor/shadow"
	"podstarter/payload"
	"podstarter/sandbox"
	"podstarter/starter/failure"
	"podstarter/starter/payloadrun"
	"podstarter/starter/settings"
)

// TestOwnMounts is what becomes of MOUNT_UNDER_SCRATCH and MOUNT_PRIVATE_DEV_SHM for jobs without an image.
func TestOwnMounts(t *testing.T) {
	machine := t.TempDir() // sandboxes are elsewhere
	for _, dir := range []string{"/a", "/a/b", "/c"} {
		must(t, os.Mkdir(machine+dir, 0o755))
	}
	must(t, os.WriteFile(machine+"/file", nil, 0o644))
	for name, tt := range map[string]struct {
		knob, job string
		shared    string // MOUNT_PRIVATE_DEV_SHM
		pod       bool
		image     bool
		powerless bool
		input     bool                  // a file of the input is where a directory belongs
		want      func(*payload.Mounts) // nil: nothing is mounted
		dirs      []string
		temporary string
		code      int
		says      string
	}{
		"plain text":             {knob: "M/a,M/c", want: dirs("M/a", "M/c"), dirs: []string{"M/a", "M/c"}},
		"a string":               {knob: `"M/a, M/c"`, want: dirs("M/a", "M/c")},
		"of the job":             {knob: `ifThenElse(Wants =?= true, "M/a", "M/c")`, job: "Wants = true", want: dirs("M/a")},
		"hostile, of the job":    {knob: `Where`, job: `Where = "/proc/.. , ../etc, /no/such, M/a/../c"`, want: dirs("M/c")},
		"too many, of the job":   {knob: `Where`, job: `Where = "` + strings.Repeat("/x ", 65) + `"`, code: shadow.VacateScratchDirError, says: "65 directories"},
		"undefined":              {knob: "Undefined", code: shadow.VacateScratchDirError, says: "MOUNT_UNDER_SCRATCH is no list of directories for this job: Undefined gives undefined"},
		"no string":              {knob: "17", code: shadow.VacateScratchDirError, says: "gives 17"},
		"an empty string":        {knob: `""`},
		"not set":                {},
		"one below another":      {knob: "M/a/b,M/a,M/a", want: dirs("M/a"), dirs: []string{"M/a/b"}},
		"missing, and a file":    {knob: "M/none,M/file,relative", want: dirs()},
		"nothing, and no memory": {knob: "M/none", shared: "false"},
		"memory is shared":       {knob: "M/a", shared: "False", want: func(m *payload.Mounts) { dirs("M/a")(m); m.SharedMemory = false }},
		"memory is misspelt":     {knob: "M/a", shared: "nope nope", want: dirs("M/a")},
		"above the sandbox":      {knob: "/,SANDBOX/..,SANDBOX,SANDBOX/x,M/a", want: dirs("M/a")},
		"/var/tmp alone":         {knob: "/var/tmp", want: dirs("/var/tmp"), dirs: []string{"/var/tmp"}},
		"a file is there":        {knob: "M/a", input: true, code: shadow.HoldFailedToCreateProcess, says: "MOUNT_UNDER_SCRATCH of this execution point names"},
		"without the rights":     {knob: "M/a", powerless: true},
		"in a pod":               {knob: "M/a", pod: true},
		"in an image":            {knob: "M/a", image: true},
	} {
		t.Run(name, func(t *testing.T) {
			knobs := map[string]string{}
			j := aJob(t, "", nil)
			real := strings.NewReplacer("M/", machine+"/", "SANDBOX", j.Sandbox.Scratch()).Replace
			if tt.knob != "" {
				knobs["MOUNT_UNDER_SCRATCH"] = real(tt.knob)
			}
			if tt.shared != "" {
				knobs["MOUNT_PRIVATE_DEV_SHM"] = tt.shared
			}
			j.Settings = aJob(t, "", knobs).Settings
			j.Ad.Update(parsed(t, real(tt.job)))
			if tt.pod {
				j.Settings.Backend = settings.BackendPod
			}
			if tt.image {
				j.Contained = new(payloadrun.Contained)
			}
			if tt.input {
				must(t, os.WriteFile(j.Sandbox.Scratch()+"/"+strings.Split(machine, "/")[1], nil, 0o644))
			}
			w := &wrapper{mounts: !tt.powerless}
			c, _, _, _ := container(t, w)
			err := j.MakeUnderScratch(c)
			if tt.code != 0 {
				if f := failure.Of(err); err == nil || f.Code != tt.code || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("%v", err)
				}
				return
			}
			must(t, err)
			if _, err := c.Start(t.Context(), payload.Spec{}); err != nil {
				t.Fatal(err)
			}
			var want *payload.Mounts
			if tt.want != nil {
				want = &payload.Mounts{Sandbox: j.Sandbox.Scratch(), SharedMemory: true}
				tt.want(want)
				for i := range want.Dirs {
					want.Dirs[i] = real(want.Dirs[i])
				}
			}
			if diff := cmp.Diff(want, w.specs[0].Mounts); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, dir := range tt.dirs {
				if info, err := os.Stat(j.Sandbox.Scratch() + real(dir)); err != nil || info.Mode() != os.ModeDir|0o700 {
					t.Errorf("%s: %v, %v", dir, info, err)
				}
			}
			if got := j.Surroundings().TmpDir; got != tt.temporary {
				t.Errorf("temporary files go to %q", got)
			}
		})
	}
}

func dirs(all ...string) func(*payload.Mounts) {
	return func(m *payload.Mounts) { m.Dirs = append([]string(nil), all...) }
}

// TestOwnMountsByLinks: nothing is mounted over a directory in which the sandbox is by another name.
func TestOwnMountsByLinks(t *testing.T) {
	machine, links := t.TempDir(), t.TempDir()
	for _, dir := range []string{"/a", "/execute"} {
		must(t, os.Mkdir(machine+dir, 0o755))
	}
	must(t, os.Symlink(machine+"/execute", links+"/execute"))
	must(t, os.Symlink(machine, links+"/machine"))
	j := aJob(t, "", map[string]string{"MOUNT_UNDER_SCRATCH": machine + "," + machine + "/execute," + links + "/machine," + links + "/inside," + machine + "/a"})
	var err error
	j.Sandbox, err = sandbox.Create(t.Context(), sandbox.Options{Execute: links + "/execute", PID: os.Getpid(), Payload: sandbox.Self(), Condor: sandbox.Self()})
	must(t, err)
	inside := j.Sandbox.Scratch() + "/inside"
	must(t, os.Mkdir(inside, 0o755))
	must(t, os.Symlink(inside, links+"/inside"))
	w := &wrapper{mounts: true}
	c, _, _, _ := container(t, w)
	must(t, j.MakeUnderScratch(c))
	_, err = c.Start(t.Context(), payload.Spec{})
	must(t, err)
	if diff := cmp.Diff(&payload.Mounts{Sandbox: j.Sandbox.Scratch(), Dirs: []string{machine + "/a"}, SharedMemory: true}, w.specs[0].Mounts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestFilesOnTheMachine: standard files that are not in the sandbox are those of the machine, whatever is mounted for the job.
func TestFilesOnTheMachine(t *testing.T) {
	machine := t.TempDir()
	must(t, os.WriteFile(machine+"/in", []byte("text"), 0o644))
	must(t, os.WriteFile(machine+"/out", []byte("old"), 0o644))
	for name, tt := range map[string]struct {
		job     string
		mounts  bool
		sandbox bool // its output goes there
		passed  []string
		content string // of out
		code    int
		subcode int
	}{
		"all":           {job: `In = "M/in"` + "\n" + `Out = "M/out"` + "\n" + `Err = "M/out"`, mounts: true, passed: []string{"stdin", "stdout", "stderr"}, content: "one\ntwo\n"},
		"apart":         {job: `Out = "M/out"` + "\n" + `Err = "M/err"`, mounts: true, passed: []string{"stdout", "stderr"}, content: "one\n"},
		"errors alone":  {job: `Err = "M/out"`, mounts: true, passed: []string{"stderr"}, content: "two\n"},
		"none":          {mounts: true, content: "old"},
		"the sandbox's": {job: `Err = "M/out"`, sandbox: true, mounts: true, passed: []string{"stderr"}, content: "two\n"},
		"no mounts":     {job: `Out = "M/out"`, content: "old"},
		"no input":      {job: `In = "M/none"`, mounts: true, code: shadow.HoldUnableToOpenInput, subcode: 2},
		"a directory":   {job: `In = "M"`, mounts: true, code: shadow.HoldUnableToOpenInput, subcode: 21},
		"no such place": {job: `Out = "M/none/out"`, mounts: true, code: shadow.HoldUnableToOpenOutput, subcode: 2},
	} {
		t.Run(name, func(t *testing.T) {
			must(t, os.WriteFile(machine+"/out", []byte("old"), 0o644))
			j := aJob(t, strings.ReplaceAll(tt.job, "M", machine), map[string]string{"MOUNT_UNDER_SCRATCH": "/var/tmp"})
			j.Info.FileTransfer = false
			if tt.sandbox {
				j.Ad.SetString("Out", j.Sandbox.Scratch()+"/out")
			}
			w := &wrapper{mounts: tt.mounts}
			c, _, _, _ := container(t, w)
			must(t, j.MakeUnderScratch(c))
			_, spec, err := j.Main("a", "", nil)
			must(t, err)
			must(t, j.Rehearse(t.Context(), c, spec))
			if tt.mounts && len(w.specs) > 0 {
				t.Errorf("a rehearsal in the job's mounts: %+v", w.specs)
			}
			s, files, err := j.OpenStreams(t.Context(), nil, &spec)
			if tt.code != 0 {
				if f := failure.Of(err); err == nil || f.Code != tt.code || f.Subcode != tt.subcode {
					t.Errorf("%v", err)
				}
				return
			}
			must(t, err)
			if diff := cmp.Diff(tt.passed, spec.Passed); diff != "" || len(files) != len(tt.passed) {
				t.Errorf("%d files (-want +got):\n%s", len(files), diff)
			}
			must(t, spec.Validate())
			must(t, runWith(t, s, &spec, files, "echo one; echo two >&2").Wait())
			if text, err := os.ReadFile(machine + "/out"); err != nil || string(text) != tt.content {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
}
