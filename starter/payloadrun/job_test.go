package payloadrun_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/condor/config"
	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/payload"
	"podstarter/sandbox"
	"podstarter/starter/failure"
	"podstarter/starter/payloadrun"
	"podstarter/starter/settings"
)

func parsed(t *testing.T, text string) *classads.Ad {
	t.Helper()
	ad, err := classads.ParseOld(text)
	must(t, err)
	return ad
}

// aJob is a job with these attributes, whose files are transferred, on a pod with these
// knobs that has no container for it.
func aJob(t *testing.T, attributes string, knobs map[string]string) *payloadrun.Job {
	t.Helper()
	box, err := sandbox.Create(t.Context(), sandbox.Options{Execute: t.TempDir(), PID: os.Getpid(), Payload: sandbox.Self(), Condor: sandbox.Self()})
	must(t, err)
	all := map[string]string{"STARTER_ALLOW_JOB_PRE_AND_POST_CMD": "true"}
	maps.Copy(all, knobs)
	set, err := settings.Read(config.FromMap(all))
	must(t, err)
	set.Backend, set.MaxTasks = settings.BackendLocal, 0
	ad := parsed(t, `Cmd = "/bin/job"`+"\n"+`Iwd = "/home/alice"`+"\nTransferExecutable = false")
	ad.Update(parsed(t, attributes))
	return &payloadrun.Job{
		Name: "activation", Slot: "slot1_1", Settings: set, Environ: []string{"PATH=/site/bin"}, Log: quiet,
		Ad: ad, Machine: classads.NewAd(), Info: job.Info{Iwd: "/home/alice", FileTransfer: true}, UID: nobodys, GID: nobodys, Sandbox: box,
		Given: func() payloadrun.Given { return payloadrun.Given{} },
	}
}

// environ is a variable of a list.
func environ(list []string, name string) string {
	for _, entry := range list {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// TestMainProcess is what becomes of a job in the words of the wrapper.
func TestMainProcess(t *testing.T) {
	j := aJob(t, `Arguments = "one 'two three'"`+"\n"+`In = "in"`+"\n"+`Out = "o"`+"\n"+`Err = "/dev/null"`+"\nCoreSize = 0\nStackSize = 1000\n"+`Environment = "A=b"`,
		map[string]string{"JOB_RENICE_INCREMENT": "3", "STARTER_RLIMIT_AS": "2"})
	box := j.Sandbox.Scratch()
	cmd, spec, err := j.Main("activation.1", "", []string{"POD_*"})
	must(t, err)
	want := payload.Spec{
		Activation: "activation.1", UID: nobodys, GID: nobodys, Groups: []int{nobodys},
		Path: "/bin/job", Args: []string{"/bin/job", "one", "two three"}, HideEnv: []string{"POD_*"},
		Dir: box, Umask: 0o022, Stdin: box + "/in", Stdout: box + "/o", Nice: 3,
		Limits: []payload.Limit{{Resource: "core"}, {Resource: "stack", Soft: 1000, Hard: 1000}, {Resource: "as", Soft: 2 << 20, Hard: 2 << 20}},
	}
	env := spec.Env
	spec.Env = nil
	if diff := cmp.Diff(want, spec); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, value := range map[string]string{"A": "b", "_CONDOR_SCRATCH_DIR": box, "_CONDOR_SLOT": "slot1_1", "HOME": box} {
		if got := environ(env, name); got != value {
			t.Errorf("%s is %q, want %q", name, got, value)
		}
	}
	if cmd.Path != "/bin/job" {
		t.Errorf("the command is %+v", cmd)
	}
	_, wrapped, err := j.Main("activation.2", "/site/wrapper", nil)
	must(t, err)
	if diff := cmp.Diff([]string{"/site/wrapper", "/bin/job", "one", "two three"}, wrapped.Args); wrapped.Path != "/site/wrapper" || diff != "" {
		t.Errorf("%s (-want +got):\n%s", wrapped.Path, diff)
	}
}

// TestMainInPod: in a container of its own the job has the image's environment, and the
// sandbox a name of its choice.
func TestMainInPod(t *testing.T) {
	j := aJob(t, `ContainerTargetDir = "/srv"`, nil)
	j.Settings.Backend, j.Settings.MaxTasks = settings.BackendPod, 10
	_, spec, err := j.Main("a", "", nil)
	must(t, err)
	box := j.Sandbox.Scratch()
	if !spec.ImageEnv || !cmp.Equal(spec.Links, []payload.Link{{At: "/srv", To: box}}) || environ(spec.Env, "PWD") != "/srv" || environ(spec.Env, "_CONDOR_SCRATCH_DIR") != "/srv" || spec.MaxTasks != 10 {
		t.Errorf("%+v", spec)
	}
	// Where the kernel counts the processes of other pods as well, it allows more.
	limit := uint64(10)
	if ids, err := os.ReadFile("/proc/self/uid_map"); os.Getuid() != 0 || err != nil || cmp.Equal(strings.Fields(string(ids)), []string{"0", "0", "4294967295"}) {
		limit = 640
	}
	if !slices.Contains(spec.Limits, payload.Limit{Resource: "nproc", Soft: limit, Hard: limit}) {
		t.Errorf("no limit of %d processes: %+v", limit, spec.Limits)
	}
	j.Settings.Backend = settings.BackendLocal
	_, spec, err = j.Main("a", "", nil)
	must(t, err)
	if spec.Links != nil || spec.ImageEnv {
		t.Errorf("beside the starter: %+v", spec)
	}
	// The user is the pilot's, with all of its processes, if the pilot has no other.
	if has := slices.ContainsFunc(spec.Limits, func(l payload.Limit) bool { return l.Resource == "nproc" }); has != (os.Getuid() == 0) {
		t.Errorf("a limit of processes: %+v", spec.Limits)
	}
}

// TestMainIsHeld: what the user has to mend holds the job.
func TestMainIsHeld(t *testing.T) {
	for name, tt := range map[string]struct{ job, words string }{
		"no command":      {`Cmd = ""` + "\nWantContainer = true", "names no executable"},
		"odd arguments":   {`Arguments = "'x"`, "Arguments"},
		"odd environment": {`Environment = "'x"`, "build the job's environment"},
		"target":          {`ContainerTargetDir = "srv"`, "not an absolute path"},
	} {
		j := aJob(t, tt.job, nil)
		j.Settings.Backend = settings.BackendPod
		_, _, err := j.Main("a", "", nil)
		if f := failure.Of(err); err == nil || f.Code != shadow.HoldFailedToCreateProcess || !strings.Contains(err.Error(), tt.words) {
			t.Errorf("%s: %v, want %q", name, err, tt.words)
		}
	}
}

// TestTargetDir is where the job wants to find its sandbox.
func TestTargetDir(t *testing.T) {
	for name, tt := range map[string]struct{ job, site, want, err string }{
		"none":             {},
		"the job's":        {job: "/srv", want: "/srv"},
		"not clean":        {job: " /srv//job/./ ", want: "/srv/job"},
		"the site's wins":  {job: "/srv", site: "/site", want: "/site"},
		"relative":         {job: "srv", err: "not an absolute path"},
		"root":             {job: "/./", err: "not an absolute path"},
		"upwards":          {job: "/srv/..", err: "not an absolute path"},
		"the sandbox":      {job: "BOX", err: "already"},
		"in the sandbox":   {job: "BOX/x", err: "already"},
		"over the sandbox": {job: "BOX/../..", err: "already"},
	} {
		t.Run(name, func(t *testing.T) {
			knobs := map[string]string{}
			if tt.site != "" {
				knobs["SINGULARITY_TARGET_DIR"] = tt.site
			}
			j := aJob(t, "", knobs)
			j.Settings.Backend = settings.BackendPod
			box := j.Sandbox.Scratch()
			target := strings.Replace(tt.job, "BOX", box, 1)
			if name == "over the sandbox" {
				target = filepath.Clean(target)
			}
			j.Ad.SetString("ContainerTargetDir", target)
			j.Ad.SetString("Environment", "F="+box+"/f:"+box+"/g")
			_, spec, err := j.Main("a", "", nil)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("error %v, want %q", err, tt.err)
				}
				return
			}
			must(t, err)
			var want []payload.Link
			if tt.want != "" {
				want = []payload.Link{{At: tt.want, To: box}}
			}
			if diff := cmp.Diff(want, spec.Links); diff != "" {
				t.Errorf("links (-want +got):\n%s", diff)
			}
			if tt.want == "" {
				if environ(spec.Env, "_CONDOR_SCRATCH_DIR_OUTSIDE_CONTAINER") != "" {
					t.Errorf("%q", spec.Env)
				}
				return
			}
			if environ(spec.Env, "F") != tt.want+"/f:"+box+"/g" || environ(spec.Env, "_CONDOR_SCRATCH_DIR_OUTSIDE_CONTAINER") != box || environ(spec.Env, "PWD") != tt.want {
				t.Errorf("%q", spec.Env)
			}
			// A job that begins elsewhere is told of no working directory.
			j.Info.RemoteIwd = "/elsewhere"
			_, spec, err = j.Main("a", "", nil)
			must(t, err)
			if environ(spec.Env, "PWD") != "" || spec.Dir != "/elsewhere" {
				t.Errorf("in %s: %q", spec.Dir, spec.Env)
			}
		})
	}
}

// TestPlace is where the job begins, and what it and programs of the site are told.
func TestPlace(t *testing.T) {
	for name, tt := range map[string]struct {
		transfer          bool
		remote, dir, told string
	}{
		"transfer":           {true, "", "BOX", "BOX"},
		"no transfer":        {false, "", "/home/alice", "/home/alice"},
		"another directory":  {true, "/data", "/data", "/data"},
		"one of the sandbox": {true, "sub", "BOX/sub", "sub"},
	} {
		j := aJob(t, "", nil)
		j.Info.FileTransfer, j.Info.RemoteIwd = tt.transfer, tt.remote
		box := j.Sandbox.Scratch()
		dir, told := strings.Replace(tt.dir, "BOX", box, 1), strings.Replace(tt.told, "BOX", box, 1)
		if got := j.Place().Iwd; got != dir {
			t.Errorf("%s: in %q, want %q", name, got, dir)
		}
		if got := j.Surroundings().Iwd; got != told {
			t.Errorf("%s: told of %q, want %q", name, got, told)
		}
		env, err := j.Published()
		must(t, err)
		if environ(env, "PATH") != "/site/bin" || environ(env, "_CONDOR_SCRATCH_DIR") != box {
			t.Errorf("%s: programs of the site are told\n%s", name, strings.Join(env, "\n"))
		}
	}
}

// TestGiven: the job is told of its credentials, and programs of the site of its
// processes, or of its end.
func TestGiven(t *testing.T) {
	j := aJob(t, "", nil)
	j.Home = "/home/payload"
	run := &payloadrun.Run{Started: payload.Started{PID: 4711}}
	j.Given = func() payloadrun.Given {
		return payloadrun.Given{Tokens: "/t", Tickets: "/k", Proxy: "/p", Chirp: "/c", Run: run}
	}
	around := j.Surroundings()
	if around.CredDir != "/t" || around.KerberosCache != "/k" || around.Proxy != "/p" || around.ChirpConfig != "/c" || around.Home != "/home/payload" ||
		!cmp.Equal(around.PIDs, []int{4711}) || around.Ended != nil {
		t.Errorf("%+v", around)
	}
	run.Exit = &payload.Exit{WaitStatus: 7 << 8}
	if around = j.Surroundings(); around.PIDs != nil || around.Ended == nil || around.Ended.ExitStatus() != 7 {
		t.Errorf("after its end: %+v", around)
	}
}
