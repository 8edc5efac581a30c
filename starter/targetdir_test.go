package main

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/condor/config"
	"podstarter/sandbox"
	"podstarter/starter/settings"
)

func TestTargetDir(t *testing.T) {
	box, err := sandbox.Create(context.Background(), sandbox.Options{Execute: t.TempDir(), PID: os.Getpid(), Payload: sandbox.Self(), Condor: sandbox.Self()})
	if err != nil {
		t.Fatal(err)
	}
	scratch := box.Scratch()
	for name, tt := range map[string]struct {
		job, site, backend string
		want               string
		err                string
	}{
		"none":             {backend: settings.BackendPod},
		"the job's":        {job: "/srv", backend: settings.BackendPod, want: "/srv"},
		"not clean":        {job: " /srv//job/./ ", backend: settings.BackendPod, want: "/srv/job"},
		"the site's wins":  {job: "/srv", site: "/site", backend: settings.BackendPod, want: "/site"},
		"no container":     {job: "/srv", backend: settings.BackendLocal},
		"relative":         {job: "srv", backend: settings.BackendPod, err: "not an absolute path"},
		"root":             {job: "/./", backend: settings.BackendPod, err: "not an absolute path"},
		"upwards":          {job: "/srv/..", backend: settings.BackendPod, err: "not an absolute path"},
		"the sandbox":      {job: scratch, backend: settings.BackendPod, err: "already"},
		"in the sandbox":   {job: scratch + "/x", backend: settings.BackendPod, err: "already"},
		"over the sandbox": {job: strings.SplitAfterN(scratch, "/", 3)[0] + strings.SplitAfterN(scratch, "/", 3)[1], backend: settings.BackendPod, err: "already"},
	} {
		t.Run(name, func(t *testing.T) {
			ad := classads.NewAd()
			if tt.job != "" {
				ad.SetString("ContainerTargetDir", tt.job)
			}
			a := &activation{ad: ad, sandbox: box, set: settings.Settings{Backend: tt.backend}}
			a.useKnobs(config.FromMap(map[string]string{"SINGULARITY_TARGET_DIR": tt.site}))
			got, err := a.targetDir()
			if got.at != tt.want || (got.to != "") != (tt.want != "") {
				t.Errorf("%+v, want %q", got, tt.want)
			}
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
		})
	}
	env := []string{"_CONDOR_SCRATCH_DIR=/x/dir_1", "A=/x/dir_1/f:/x/dir_1/g", "B=1"}
	want := []string{"PWD=/srv", "_CONDOR_SCRATCH_DIR=/srv", "A=/srv/f:/x/dir_1/g", "B=1", "_CONDOR_SCRATCH_DIR_OUTSIDE_CONTAINER=/x/dir_1"}
	if diff := cmp.Diff(want, targetDir{"/srv", "/x/dir_1"}.retarget(env, "/x/dir_1")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[1:], targetDir{"/srv", "/x/dir_1"}.retarget(env, "/home/u")); diff != "" {
		t.Errorf("elsewhere (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(env, targetDir{}.retarget(env, "/")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
