package image

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/condor/config"
	"podstarter/condor/job"
)

// TestFiles: images that are files, at a site that has a carrier for them.
func TestFiles(t *testing.T) {
	const (
		sif     = "WantContainer = true\nWantSIF = true\n"
		sandbox = "WantContainer = true\nWantSandboxImage = true\n"
		carrier = "registry.example.org/carrier:1"
	)
	in := func(root, path string) File { return File{Root: root, Path: path} }
	paths := map[string]string{KnobPaths: "/cvmfs, /images/", KnobMap: mapFile(t, "* tools.sif docker://registry.example.org/tools:2")}
	for name, tt := range map[string]struct {
		knobs map[string]string
		ad    string
		want  File
		image string // if not the carrier
		code  int    // 35 for a hold
		sub   int
		words string
	}{
		"transferred":           {ad: sif + `ContainerImage = "x.sif"`, want: in("", "x.sif")},
		"without the ending":    {ad: sif + `ContainerImage = "x"`, want: in("", "x")},
		"a directory":           {ad: sandbox + `ContainerImage = "dir/"`, want: in("", "dir")},
		"OSPool's attribute":    {ad: `SingularityImage = "./a/../my.sif"`, want: in("", "my.sif")},
		"leads out":             {ad: sif + `ContainerImage = "../x.sif"`, code: 35, sub: SubcodeInvalidReference, words: "does not lead to a file in the job's directory"},
		"the sandbox itself":    {ad: sandbox + `ContainerImage = "./"`, code: 35, sub: SubcodeInvalidReference, words: "does not lead"},
		"path":                  {knobs: paths, ad: sandbox + `ContainerImage = "/cvmfs/a.org/./b//c/"`, want: in("/cvmfs", "a.org/b/c")},
		"path of another":       {knobs: paths, ad: sandbox + `ContainerImage = "/cvmfs2/a"`, code: 35, sub: SubcodeNotAllowed, words: "only from /cvmfs, /images"},
		"path that leads out":   {knobs: paths, ad: sandbox + `ContainerImage = "/cvmfs/../etc"`, code: 35, sub: SubcodeNotAllowed, words: KnobPaths},
		"path of tokens":        {ad: sandbox + `ContainerImage = "/var/run/secrets/kubernetes.io/serviceaccount"`, code: 35, sub: SubcodeNotAllowed, words: "takes no images from there; transfer"},
		"a whole place":         {knobs: paths, ad: sandbox + `ContainerImage = "/images"`, want: in("/images", ".")},
		"no file transfer":      {knobs: paths, ad: sif + "ContainerImage = \"x.sif\"\nIwd = \"/images/u\"\nShouldTransferFiles = \"NO\"", want: in("/images", "u/x.sif")},
		"none, and elsewhere":   {knobs: paths, ad: sif + "ContainerImage = \"x.sif\"\nIwd = \"/home/u\"\nShouldTransferFiles = \"NO\"", code: 35, sub: SubcodeNotAllowed},
		"the map comes first":   {knobs: paths, ad: sif + `ContainerImage = "tools.sif"`, image: "registry.example.org/tools:2"},
		"not for docker":        {ad: "WantDocker = true\nDockerImage = \"x.sif\"", code: 35, sub: SubcodeNotInRegistry},
		"a URL":                 {ad: sif + `ContainerImage = "osdf:///a.sif"`, code: 35, sub: SubcodeNotInRegistry, words: "osdf://"},
		"a home":                {ad: sif + `ContainerImage = "~u/a.sif"`, code: 35, sub: SubcodeNotInRegistry},
		"allowed ones only":     {knobs: map[string]string{KnobAllowed: "ghcr.io"}, ad: sif + `ContainerImage = "x.sif"`, code: 35, sub: SubcodeNotAllowed, words: KnobAllowed},
		"path beside allowed":   {knobs: map[string]string{KnobAllowed: "ghcr.io", KnobPaths: "/cvmfs"}, ad: sandbox + `ContainerImage = "/cvmfs/a"`, want: in("/cvmfs", "a")},
		"carrier needs no rule": {knobs: map[string]string{KnobDenied: "registry.example.org"}, ad: sif + `ContainerImage = "x.sif"`, want: in("", "x.sif")},
	} {
		t.Run(name, func(t *testing.T) {
			knobs := map[string]string{KnobCarrier: carrier}
			for k, v := range tt.knobs {
				knobs[k] = v
			}
			d, err := mustSite(t, knobs).Choose(mustAd(t, tt.ad), mustAd(t, ""))
			f := (*job.Failure)(nil)
			if errors.As(err, &f) {
				if f.Code != tt.code || f.Subcode != tt.sub || !strings.Contains(err.Error(), tt.words) {
					t.Errorf("%d/%d %v, want %d/%d with %q", f.Code, f.Subcode, err, tt.code, tt.sub, tt.words)
				}
				return
			}
			if err != nil || tt.code != 0 {
				t.Fatalf("error %v, want a hold %d", err, tt.code)
			}
			image := carrier
			if tt.image != "" {
				image = tt.image
			}
			d.File.Written = ""
			if diff := cmp.Diff(tt.want, d.File); diff != "" || d.Image.String() != image || d.Docker {
				t.Errorf("image %s, docker %v, file (-want +got):\n%s", d.Image, d.Docker, diff)
			}
		})
	}
	for name, knobs := range map[string]map[string]string{
		"carrier":       {KnobCarrier: "No Image"},
		"relative":      {KnobPaths: "cvmfs"},
		"everything":    {KnobPaths: "/a, /b/.."},
		"default image": {KnobCarrier: carrier, KnobDefault: "/etc/x.sif"},
	} {
		t.Run("wrong: "+name, func(t *testing.T) {
			if _, err := NewSite(config.FromMap(knobs)); err == nil {
				t.Error("no error")
			}
		})
	}
}
