package payloadrun_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/payload"
	"podstarter/starter/payloadrun"
)

// TestBindPaths: what Apptainer would mount under another name gets a link, and what cannot have one is named.
func TestBindPaths(t *testing.T) {
	link := func(at, to string) payload.Link { return payload.Link{At: at, To: to} }
	for name, tt := range map[string]struct {
		knob, machine, job string
		registry           bool // the image is in one
		asked              bool // the site asks the job
		want               []payload.Link
		err                string
	}{
		"none":                      {},
		"the job's alone":           {job: "/c:/d"},
		"the job's":                 {asked: true, job: "/data/set1:/input", want: []payload.Link{link("/input", "/data/set1")}},
		"the slot's before it":      {machine: "/a:/b", job: "/c:/d", want: []payload.Link{link("/b", "/a")}},
		"the site's instead":        {knob: `strcat("/cvmfs,/scratch:/", TARGET.Owner, ":rw")`, job: "/c:/d", want: []payload.Link{link("/alice", "/scratch")}},
		"the site's, undefined":     {knob: "TARGET.NoSuchThing", job: "/c:/d"},
		"own names need nothing":    {asked: true, job: "/cvmfs /etc/hosts:/etc/hosts:ro,/a/../b:/b/"},
		"several":                   {asked: true, job: "/a:/b:ro, /c:/d\t/e/:/f/", want: []payload.Link{link("/b", "/a"), link("/d", "/c"), link("/f", "/e")}},
		"in an image of a registry": {asked: true, job: "/a:/b", registry: true},
		"twice":                     {asked: true, job: "/a:/b, /a:/b:ro", want: []payload.Link{link("/b", "/a")}},
		"relative":                  {job: "data", err: `the bind path "data"`},
		"to a relative name":        {job: "/data:input", err: `the bind path "/data:input"`},
		"from a relative name":      {job: "data:/input", err: `the bind path "data:/input"`},
		"over everything":           {job: "/data:/", err: "not possible here"},
		"into itself":               {job: "/data:/data/x", err: "not possible here"},
		"too many":                  {job: many(payload.MaxLinks + 1), err: "at most"},
	} {
		t.Run(name, func(t *testing.T) {
			knobs := map[string]string{}
			if tt.knob != "" {
				knobs["SINGULARITY_BIND_EXPR"] = tt.knob
			}
			if tt.err != "" || tt.asked {
				knobs["SINGULARITY_BIND_EXPR"] = "TARGET.SingularityBind"
			}
			j := aJob(t, `Owner = "alice"`, knobs)
			if tt.machine != "" {
				j.Machine.SetString("SingularityBind", tt.machine)
			}
			if tt.job != "" {
				j.Ad.SetString("SingularityBind", tt.job)
			}
			if !tt.registry {
				j.Unpacked = &payloadrun.Unpacked{Name: "x.sif", Path: "/x.sif"}
			}
			_, spec, err := j.Main("a", "", nil)
			if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Fatalf("error %v, want %q", err, tt.err)
			}
			if diff := cmp.Diff(tt.want, spec.Links); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// many are so many bind paths.
func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "/a:/b%d,", i)
	}
	return b.String()
}
