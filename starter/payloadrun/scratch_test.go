package payloadrun_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/condor/shadow"
	"podstarter/payload"
	"podstarter/starter/failure"
	"podstarter/starter/payloadrun"
	"podstarter/starter/settings"
)

// TestUnderScratch is what becomes of mount_under_scratch: directories in the sandbox, and links to them.
func TestUnderScratch(t *testing.T) {
	for name, tt := range map[string]struct {
		asks    string
		plain   bool // no image
		cvmfs   bool // an image that only SingularityImage names
		file    bool // the image is a file
		local   bool // no pod
		input   map[string]string
		dirs    []string
		links   []string
		err     string
		code    int
		subcode int
	}{
		"none":                    {},
		"two":                     {asks: "/home,/opt", dirs: []string{"home", "opt"}, links: []string{"/home", "/opt"}},
		"deep, twice, odd marks":  {asks: " /var/lib/x/ , /var/lib//x\t/home", dirs: []string{"home", "var", "var/lib", "var/lib/x"}, links: []string{"/home", "/var/lib/x"}},
		"one in another":          {asks: "/home/a/b,/home-2,/home", dirs: []string{"home", "home/a", "home/a/b", "home-2"}, links: []string{"/home", "/home-2"}},
		"an image that is a file": {asks: "/home", plain: true, file: true, dirs: []string{"home"}, links: []string{"/home"}},
		"an image of Apptainer's": {asks: "/home", plain: true, cvmfs: true, dirs: []string{"home"}, links: []string{"/home"}},
		"without an image":        {asks: "/home", plain: true},
		"without a pod":           {asks: "/home", local: true},
		"relative":                {asks: "home", err: `mount_under_scratch names "home"`, code: shadow.HoldFailedToCreateProcess},
		"up":                      {asks: "/home/../etc", err: "mount_under_scratch", code: shadow.HoldFailedToCreateProcess},
		"everything":              {asks: "//", err: "mount_under_scratch", code: shadow.HoldFailedToCreateProcess},
		"where the sandbox is":    {asks: "SANDBOX/below", err: "mount_under_scratch", code: shadow.HoldFailedToCreateProcess},
		"above the sandbox":       {asks: "/opt SANDBOX/..", err: "mount_under_scratch", code: shadow.HoldFailedToCreateProcess},
		"the root of the sandbox": {asks: "/tmp", err: "where the sandbox is", code: shadow.HoldFailedToCreateProcess},
		"a long name":             {asks: "/" + strings.Repeat("x", 300), err: "mount_under_scratch", code: shadow.HoldFailedToCreateProcess, subcode: 20},
		"a file of the input":     {asks: "/home/x", input: map[string]string{"home": "text"}, err: "mount_under_scratch names /home/x", code: shadow.HoldFailedToCreateProcess, subcode: 20},
		"too many":                {err: "at most"},
	} {
		t.Run(name, func(t *testing.T) {
			attributes := "WantContainer = true\nContainerImage = \"busybox\""
			if tt.plain {
				attributes = ""
			}
			if tt.cvmfs {
				attributes = `SingularityImage = "/cvmfs/images/a"`
			}
			j := aJob(t, attributes, nil)
			if !tt.local {
				j.Settings.Backend = settings.BackendPod
			}
			if tt.file {
				j.Unpacked = &payloadrun.Unpacked{Name: "x.sif", Path: "/x.sif"}
			}
			if name == "too many" {
				tt.asks = ""
				for i := range payload.MaxLinks + 1 {
					tt.asks += " /d" + strings.Repeat("x", i)
				}
			}
			if tt.asks != "" {
				j.Ad.SetString("MountUnderScratch", strings.ReplaceAll(tt.asks, "SANDBOX", j.Sandbox.Scratch()))
			}
			for name, text := range tt.input {
				must(t, os.WriteFile(j.Sandbox.Scratch()+"/"+name, []byte(text), 0o644))
			}
			c, _, _, _ := container(t, &wrapper{})
			err := j.MakeUnderScratch(c)
			var spec payload.Spec
			if err == nil {
				_, spec, err = j.Main("a", "", nil)
			}
			if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Fatalf("error %v, want %q", err, tt.err)
			}
			if f := failure.Of(err); err != nil {
				if tt.code != 0 && (f.Code != tt.code || f.Subcode != tt.subcode) {
					t.Errorf("%d/%d, want %d/%d: %v", f.Code, f.Subcode, tt.code, tt.subcode, err)
				}
				return
			}
			var at []string
			for _, l := range spec.Links {
				at = append(at, l.At)
				if l.To != j.Sandbox.Scratch()+l.At {
					t.Errorf("%s leads to %s", l.At, l.To)
				}
			}
			if diff := cmp.Diff(tt.links, at); diff != "" {
				t.Errorf("links (-want +got):\n%s", diff)
			}
			for _, dir := range tt.dirs {
				if info, err := os.Stat(j.Sandbox.Scratch() + "/" + dir); err != nil || info.Mode() != os.ModeDir|0o777 {
					t.Errorf("%s: %v, %v", dir, info, err)
				}
			}
			must(t, j.MakeUnderScratch(c)) // after a checkpoint
		})
	}
}
