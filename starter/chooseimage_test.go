package main

import (
	"log/slog"
	"strings"
	"testing"

	"podstarter/classads"
	"podstarter/condor/config"
	"podstarter/condor/image"
	"podstarter/condor/shadow"
	"podstarter/starter/failure"
	"podstarter/starter/settings"
)

// TestChooseImage: whose fault it is decides what becomes of the job.
func TestChooseImage(t *testing.T) {
	for name, tt := range map[string]struct {
		knobs   map[string]string
		backend string
		ad      string
		image   string
		code    int // 0 for no failure
		subcode int
		words   string
	}{
		"the job's":            {backend: settings.BackendPod, ad: `SingularityImage = "docker://debian:12"`, image: "docker.io/library/debian:12"},
		"not allowed":          {backend: settings.BackendPod, ad: `SingularityImage = "debian"`, knobs: map[string]string{image.KnobDenied: "docker.io"}, code: shadow.HoldInvalidDockerImage, subcode: image.SubcodeNotAllowed, words: image.KnobDenied},
		"not taken":            {backend: settings.BackendPod, ad: "", knobs: map[string]string{image.KnobPolicy: "required"}, code: shadow.VacateContainerError, words: image.KnobPolicy},
		"the site's mistake":   {backend: settings.BackendPod, ad: "", knobs: map[string]string{image.KnobDefault: "1 + 1"}, code: shadow.VacateContainerError, words: image.KnobDefault},
		"no containers":        {backend: settings.BackendLocal, ad: "WantDocker = true\nDockerImage = \"debian\"", code: shadow.VacateContainerError, words: "no containers"},
		"no matter there":      {backend: settings.BackendLocal, ad: `SingularityImage = "/some/where.sif"`},
		"no default there":     {backend: settings.BackendLocal, knobs: map[string]string{image.KnobDefault: "debian"}},
		"the pod's own":        {backend: settings.BackendPod},
		"a default of the pod": {backend: settings.BackendPod, knobs: map[string]string{image.KnobDefault: "debian"}, image: "docker.io/library/debian:latest"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config.FromMap(tt.knobs)
			images, err := image.NewSite(cfg)
			if err != nil {
				t.Fatal(err)
			}
			ad, err := classads.ParseOld(tt.ad)
			if err != nil {
				t.Fatal(err)
			}
			a := &activation{cfg: cfg, ad: ad, machine: classads.NewAd(), set: settings.Settings{Backend: tt.backend, Images: images}, log: slog.New(slog.DiscardHandler)}
			err = a.chooseImage()
			if (err != nil) != (tt.code != 0) {
				t.Fatal(err)
			}
			if err != nil {
				if f := failure.Of(err); f.Code != tt.code || f.Subcode != tt.subcode || !strings.Contains(f.Error(), tt.words) {
					t.Errorf("code %d, subcode %d: %v; want %d, %d and %q", f.Code, f.Subcode, f, tt.code, tt.subcode, tt.words)
				}
				return
			}
			if got := a.image; got.Default() != (tt.image == "") || tt.image != "" && got.Image.String() != tt.image {
				t.Errorf("%+v, want %q", got, tt.image)
			}
		})
	}
}
