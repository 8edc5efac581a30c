//go:build pool

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podstarter/condor/image"
	"podstarter/integration/harness"
	"podstarter/starter/settings"
)

// imagePlace is a directory of the pilot container with images.
const imagePlace = "/srv/e2e-images"

// TestImageFiles: an image can be a file that came with the job, or a path that the site allows. Whatever else a job
// names is refused, and says what to do.
func TestImageFiles(t *testing.T) {
	oursOnly(t)
	if pool.Mode == harness.Rootless {
		t.Skip("a pilot without root cannot write an image's files")
	}
	script := `mkdir -p "$1"/tool/bin "$1"/large && cd "$1" && echo tool >tool/image-name && ln -s tool latest && ln -s "$1"/tool absolute && ln -s /etc out &&
		dd if=/dev/urandom of=large/file bs=1M count=3 2>/dev/null && echo secret >tool/closed && chmod 600 tool/closed`
	if out, err := pool.EP(t.Context(), side, "sh", "-c", script, "make", imagePlace); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Cleanup(func() {
		if _, err := pool.EP(background(t), side, "rm", "-rf", imagePlace); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { reconfigure(t, false) }) // after the configuration is as it was
	plugin := imagePlace + "/osdf_plugin"
	if out, err := pool.EPInput(t.Context(), side, strings.NewReader(harness.OSDFPlugin), "sh", "-c", `cat >"$1" && chmod 755 "$1"`, "plugin", plugin); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	configure(t, image.KnobCarrier+" = "+pool.Image("empty"), image.KnobPaths+" = "+imagePlace, settings.KnobMaxImageFile.Name+" = 2",
		"FILETRANSFER_PLUGINS = $(FILETRANSFER_PLUGINS), "+plugin)
	reconfigure(t, true)
	fixture := func(name string) []byte {
		t.Helper()
		data, err := os.ReadFile(filepath.Join("../../unpacker/testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	whole := fixture("gzip.squashfs")
	files := []harness.File{
		{Name: "whole.sif", Content: whole}, {Name: "cut.sif", Content: whole[:len(whole)/2]}, {Name: "old.sif", Content: fixture("lzo.squashfs")},
		{Name: "text.sif", Content: []byte("no image\n")}, {Name: "signed.sif", Content: fixture("apptainer.sif")},
	}
	web, err := pool.Web()
	if err == nil {
		err = web.Put("e2e/whole.sif", whole)
	}
	if err != nil {
		t.Fatal(err)
	}
	transferred := func(name string) string { return "universe = container\ncontainer_image = " + name }
	path := func(name string) string {
		return "universe = container\ntransfer_container = False\ncontainer_image = " + name
	}
	cases := map[string]struct {
		commands string
		image    string // what the job finds to be its image; "-" for one that does not say
		subcode  int    // of a hold, if there is no image
		words    []string
	}{
		"transferred":         {commands: transferred("whole.sif"), image: "-"},
		"by osdf://":          {commands: web.Macros("$(WEB_HOST)") + transferred("osdf:///$(WEB_HOST)/e2e/whole.sif"), image: "-"},
		"of Apptainer":        {commands: transferred("signed.sif"), image: "-"},
		"by its attribute":    {commands: "transfer_input_files = whole.sif\n+SingularityImage = \"./whole.sif\"", image: "-"},
		"path":                {commands: path(imagePlace + "/tool"), image: "tool"},
		"path of a link":      {commands: path(imagePlace + "/latest"), image: "tool"},
		"of an absolute link": {commands: path(imagePlace + "/absolute"), image: "tool"},
		"path for all jobs":   {commands: "+SingularityImage = \"" + imagePlace + "/tool\"", image: "tool"},
		"leads out":           {commands: path(imagePlace + "/out"), subcode: image.SubcodeNoFile},
		"secrets":             {commands: path("/var/run/secrets/kubernetes.io/serviceaccount"), subcode: image.SubcodeNotAllowed, words: []string{image.KnobPaths}},
		"the pilot itself":    {commands: path("/"), subcode: image.SubcodeNotAllowed},
		"not there":           {commands: path(imagePlace + "/none"), subcode: image.SubcodeNoFile},
		"not transferred":     {commands: path("none.sif"), subcode: image.SubcodeNoFile, words: []string{"docker://"}},
		"too large":           {commands: path(imagePlace + "/large"), subcode: image.SubcodeFileTooLarge},
		"cut off":             {commands: transferred("cut.sif"), subcode: image.SubcodeBadFile},
		"unknown compression": {commands: transferred("old.sif"), subcode: image.SubcodeBadFile, words: []string{"lzo"}},
		"no image":            {commands: transferred("text.sif"), subcode: image.SubcodeBadFile},
	}
	jobs := map[string]harness.Job{}
	for name, c := range cases {
		s := job("facts", c.commands)
		s.Name = "image-file-" + strings.ReplaceAll(name, " ", "-")
		s.Files = append(s.Files, files...)
		jobs[name] = submit(t, s)[0]
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			submitted := jobs[name]
			if c.image == "" {
				end := ending(t, submitted)
				if !end.Held || end.Code != holdInvalidDockerImage || end.Subcode != c.subcode {
					t.Errorf("%s; want held with code %d, subcode %d", end, holdInvalidDockerImage, c.subcode)
				}
				for _, word := range c.words {
					if !strings.Contains(end.Reason, word) {
						t.Errorf("the reason %q does not contain %q", end.Reason, word)
					}
				}
				t.Log(end.Reason)
				return
			}
			mustExit(t, submitted, 0)
			seen, err := submitted.Facts("out")
			if err != nil {
				t.Fatal(err)
			}
			if want := strings.TrimPrefix(c.image, "-"); seen.Image != want {
				t.Errorf("ran in %q, want %q", seen.Image, want)
			}
		})
	}
	t.Run("only allowed images", func(t *testing.T) {
		configure(t, image.KnobCarrier+" = "+pool.Image("empty"), image.KnobPaths+" = "+imagePlace, image.KnobAllowed+" = ghcr.io")
		s := job("facts", transferred("whole.sif"))
		s.Files = append(s.Files, files...)
		if end := ending(t, submit(t, s)[0]); !end.Held || end.Subcode != image.SubcodeNotAllowed {
			t.Errorf("%s; want held with subcode %d", end, image.SubcodeNotAllowed)
		}
	})
}
