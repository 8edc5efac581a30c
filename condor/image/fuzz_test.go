package image

import (
	"testing"

	"podstarter/classads"
)

// FuzzParse reads image names as jobs write them; parsing the printed reference
// gives the same image.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"debian", "debian:13", "docker://Example.org:5000/a/b:c", "localhost/x@sha256:5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e", "a//b", "docker.io/x:", "[::1]:5000/x",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(r.String())
		if err != nil || again != r {
			t.Errorf("%q is %q, which is %+v, %v", text, r, again, err)
		}
	})
}

// FuzzChoose decides on the image of jobs with any ad: never one of a registry
// that the site does not allow.
func FuzzChoose(f *testing.F) {
	for _, text := range []string{
		"DockerImage = \"allowed.example/a/b:c\"\nWantDocker = true\n", "ContainerImage = \"docker://other.example/x\"\nWantContainer = true\nWantDockerImage = true\n",
		"SingularityImage = \"/cvmfs/x\"\n", "ContainerImage = \"x.sif\"\nWantContainer = true\nWantSIF = true\n", "DockerImage = strcat(\"a\", 1)\n", "WantContainer = ContainerImage\nContainerImage = WantContainer\n",
	} {
		f.Add(text)
	}
	site := mustSite(f, map[string]string{KnobAllowed: "allowed.example/*", KnobDefault: `"allowed.example/default:1"`})
	machine := classads.NewAd()
	f.Fuzz(func(t *testing.T, text string) {
		ad, err := classads.ParseOld(text)
		if err != nil {
			return
		}
		d, err := site.Choose(ad, machine)
		if err == nil && !d.Default() && d.Image.Registry != "allowed.example" {
			t.Errorf("%q gets %q", text, d.Image)
		}
	})
}
