package image

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/condor/config"
	"podstarter/condor/job"
)

func mustAd(t testing.TB, text string) *classads.Ad {
	t.Helper()
	ad, err := classads.ParseOld(text)
	if err != nil {
		t.Fatal(err)
	}
	return ad
}

func mustSite(t testing.TB, knobs map[string]string) *Site {
	t.Helper()
	s, err := NewSite(config.FromMap(knobs))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// mapFile makes a map file and gives its path.
func mapFile(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "images.map")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// outcome is what a test expects of Choose.
type outcome struct {
	image   string // empty for the pod's own
	docker  bool
	knob    string
	code    int // of a job.Failure
	subcode int
	mistake string // knob of a *Mistake
	words   string // in the error, or in Says
}

func check(t *testing.T, s *Site, ad, machine *classads.Ad, want outcome) {
	t.Helper()
	d, err := s.Choose(ad, machine)
	got := outcome{docker: d.Docker, knob: d.Knob, words: want.words}
	if !d.Default() {
		got.image = d.Image.String()
	}
	text := d.Says
	if err != nil {
		text = err.Error()
		got.image, got.docker, got.knob = "", false, ""
		if f := (*job.Failure)(nil); errors.As(err, &f) {
			got.code, got.subcode = f.Code, f.Subcode
		} else if m := (*Mistake)(nil); errors.As(err, &m) {
			got.mistake = m.Knob
		} else {
			t.Errorf("%v is neither a failure nor a mistake", err)
		}
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(outcome{})); diff != "" {
		t.Errorf("%s (-want +got):\n%s", text, diff)
	}
	if !strings.Contains(text, want.words) {
		t.Errorf("%q does not contain %q", text, want.words)
	}
}

const (
	held    = 35
	vacated = 1021
)

// TestAttributes: what condor_submit of 25.14 and 23.9 writes, and what users of
// GlideinWMS and the OSPool write themselves.
func TestAttributes(t *testing.T) {
	const (
		docker   = "WantDocker = true\n"                            // universe = docker
		repo     = "WantContainer = true\nWantDockerImage = true\n" // docker:// or docker_image in universe = container
		sif      = "WantContainer = true\nWantSIF = true\n"
		sandbox  = "WantContainer = true\nWantSandboxImage = true\n"
		debian12 = "docker.io/library/debian:12"
	)
	s := mustSite(t, nil)
	for name, tt := range map[string]struct {
		ad   string
		want outcome
	}{
		"nothing":                {"", outcome{}},
		"docker universe":        {docker + `DockerImage = "debian:12"`, outcome{image: debian12, docker: true}},
		"docker, with scheme":    {docker + `DockerImage = "docker://r.example:5000/debian"`, outcome{image: "r.example:5000/debian:latest", docker: true}},
		"docker, blanks around":  {docker + `DockerImage = " debian:12 "`, outcome{image: debian12, docker: true}},
		"container universe":     {repo + `ContainerImage = "docker://debian:12"`, outcome{image: debian12, docker: true}},
		"docker_image there":     {repo + `DockerImage = "debian:12"`, outcome{image: debian12, docker: true}},
		"docker's order":         {repo + "DockerImage = \"a\"\nContainerImage = \"b\"\nSingularityImage = \"c\"", outcome{image: "docker.io/library/a:latest", docker: true}},
		"singularity's order":    {"WantContainer = true\nDockerImage = \"a\"\nContainerImage = \"b\"\nSingularityImage = \"c\"", outcome{image: "docker.io/library/c:latest"}},
		"container before":       {"WantContainer = true\nDockerImage = \"a\"\nContainerImage = \"b\"", outcome{image: "docker.io/library/b:latest"}},
		"docker at last":         {"WantContainer = true\nDockerImage = \"a\"", outcome{image: "docker.io/library/a:latest"}},
		"digest":                 {docker + `DockerImage = "debian@` + digest + `"`, outcome{image: "docker.io/library/debian@" + digest, docker: true}},
		"no name":                {"WantContainer = true", outcome{code: held, subcode: SubcodeNoImage, words: "names no image"}},
		"no name, docker":        {docker, outcome{code: held, subcode: SubcodeNoImage, words: "names no image"}},
		"not a string":           {docker + "DockerImage = 5", outcome{code: held, subcode: SubcodeNoImage, words: "names no image"}},
		"blanks":                 {docker + `DockerImage = "a b"`, outcome{code: held, subcode: SubcodeInvalidReference, words: "is not valid"}},
		"scheme alone":           {docker + `DockerImage = "docker://"`, outcome{code: held, subcode: SubcodeInvalidReference, words: "it is empty"}},
		"capitals":               {docker + `DockerImage = "UPPER/Case:::tag"`, outcome{code: held, subcode: SubcodeInvalidReference, words: "UPPER/Case:::tag"}},
		"two schemes":            {docker + `DockerImage = "docker://https://x/y"`, outcome{code: held, subcode: SubcodeNotInRegistry, words: "https://"}},
		"huge":                   {docker + `DockerImage = "` + strings.Repeat("a", 1<<20) + `"`, outcome{code: held, subcode: SubcodeInvalidReference, words: "bytes long"}},
		"sif":                    {sif + `ContainerImage = "x.sif"`, outcome{code: held, subcode: SubcodeNotInRegistry, words: "a .sif file"}},
		"sif without the ending": {sif + `ContainerImage = "x"`, outcome{code: held, subcode: SubcodeNotInRegistry, words: "a .sif file"}},
		"oras":                   {sandbox + `ContainerImage = "oras://ghcr.io/a/b:1"`, outcome{code: held, subcode: SubcodeNotInRegistry, words: "oras://"}},
		"osdf":                   {sif + `ContainerImage = "osdf:///a.sif"`, outcome{code: held, subcode: SubcodeNotInRegistry, words: "osdf://"}},
		"directory":              {sandbox + `ContainerImage = "dir"`, outcome{code: held, subcode: SubcodeNotInRegistry, words: "a directory"}},
		"forgot docker://":       {sandbox + `ContainerImage = "debian:12"`, outcome{code: held, subcode: SubcodeNotInRegistry, words: "container_image = docker://"}},
		"path":                   {sandbox + `ContainerImage = "/images/debian"`, outcome{code: held, subcode: SubcodeNotInRegistry, words: "a path"}},
		"cvmfs":                  {sandbox + `ContainerImage = "/cvmfs/unpacked.cern.ch/registry.hub.docker.com/library/debian:12"`, outcome{image: debian12, words: "built-in map"}},
		"OSPool":                 {`SingularityImage = "/cvmfs/singularity.opensciencegrid.org/library/debian:12"`, outcome{image: debian12, words: "SingularityImage"}},
		"OSPool, docker":         {`SingularityImage = "docker://debian:12"`, outcome{image: debian12}},
		"OSPool, plain":          {`SingularityImage = "debian:12"`, outcome{image: debian12}},
		"OSPool, local":          {`SingularityImage = "./my.sif"`, outcome{code: held, subcode: SubcodeNotInRegistry, words: "SingularityImage"}},
		"OSPool, empty":          {`SingularityImage = ""`, outcome{}},
		"OSPool, no string":      {`SingularityImage = 7`, outcome{}},
		"plain job":              {"DockerImage = \"a\"\nContainerImage = \"b\"", outcome{}},
	} {
		t.Run(name, func(t *testing.T) { check(t, s, mustAd(t, tt.ad), mustAd(t, ""), tt.want) })
	}
	t.Run("SINGULARITY_IMAGE_EXPR", func(t *testing.T) {
		s := mustSite(t, map[string]string{"SINGULARITY_IMAGE_EXPR": "TARGET.MyImage"})
		check(t, s, mustAd(t, "MyImage = \"debian:12\"\nSingularityImage = \"no\""), mustAd(t, ""), outcome{image: debian12})
		check(t, s, mustAd(t, "SingularityImage = \"no\""), mustAd(t, ""), outcome{})
	})
}

const digest = "sha256:" + "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestMapped(t *testing.T) {
	path := mapFile(t, strings.Join([]string{
		`# a site's own`,
		`* /^osdf:\/\/\/ospool\/.*\/([^\/]+)__([^\/]+)__([^\/]+)\.sif$/ hub.opensciencegrid.org/\1/\2:\3`,
		`ContainerImage tools.sif docker://registry.example.org/tools:2`,
		`* "/cvmfs/singularity.opensciencegrid.org/library/debian:12" registry.example.org/debian:12`,
		`SingularityImage /^bad/ Not//Valid`,
	}, "\n"))
	s := mustSite(t, map[string]string{KnobMap: path})
	for name, tt := range map[string]struct {
		ad   string
		want outcome
	}{
		"sif":              {"WantSIF = true\nContainerImage = \"tools.sif\"", outcome{image: "registry.example.org/tools:2", words: "images.map:3"}},
		"of another kind":  {"SingularityImage = \"tools.sif\"", outcome{code: held, subcode: SubcodeNotInRegistry, words: KnobMap}},
		"by its full path": {"WantSIF = true\nContainerImage = \"htc__debian__12.sif\"\nContainerImageFullPath = \"osdf:///ospool/x/y/htc__debian__12.sif\"", outcome{image: "hub.opensciencegrid.org/htc/debian:12"}},
		"another's path":   {"WantSIF = true\nContainerImage = \"mine.sif\"\nContainerImageFullPath = \"osdf:///ospool/x/y/htc__debian__12.sif\"", outcome{code: held, subcode: SubcodeNotInRegistry}},
		"before built-in":  {"SingularityImage = \"//cvmfs/./singularity.opensciencegrid.org/library/debian:12/\"", outcome{image: "registry.example.org/debian:12", words: "images.map:4"}},
		"to nonsense":      {"SingularityImage = \"bad\"", outcome{code: held, subcode: SubcodeInvalidReference, words: "images.map:5"}},
	} {
		t.Run(name, func(t *testing.T) { check(t, s, mustAd(t, tt.ad), mustAd(t, ""), tt.want) })
	}
}

func TestDefaults(t *testing.T) {
	machine := mustAd(t, "HasGPU = true\nMemory = 100")
	stock := map[string]string{"USE_DEFAULT_CONTAINER": "MY.Memory == 100", "DEFAULT_CONTAINER_IMAGE": `strcat("docker://site.example/", TARGET.Owner)`}
	gpus := map[string]string{KnobDefault: `ifThenElse(TARGET.RequestGPUs > 0, "cuda:12", "debian:12")`}
	for name, tt := range map[string]struct {
		knobs map[string]string
		ad    string
		want  outcome
	}{
		"plain":                {map[string]string{KnobDefault: "docker.io/library/debian:12"}, "", outcome{image: "docker.io/library/debian:12", knob: KnobDefault}},
		"plain, one word":      {map[string]string{KnobDefault: "debian"}, "debian = \"evil\"", outcome{image: "docker.io/library/debian:latest", knob: KnobDefault}},
		"plain, with scheme":   {map[string]string{KnobDefault: "docker://debian:12"}, "", outcome{image: "docker.io/library/debian:12", knob: KnobDefault}},
		"not for this job":     {map[string]string{KnobDefault: "debian:12"}, "SingularityImage = \"alpine\"", outcome{image: "docker.io/library/alpine:latest"}},
		"expression, GPUs":     {gpus, "RequestGPUs = 1", outcome{image: "docker.io/library/cuda:12", knob: KnobDefault}},
		"expression, no GPUs":  {gpus, "RequestGPUs = 0", outcome{image: "docker.io/library/debian:12", knob: KnobDefault}},
		"undefined":            {gpus, "", outcome{}},
		"of the slot":          {map[string]string{KnobDefault: `(MY.HasGPU ? "a" : "b")`}, "", outcome{image: "docker.io/library/a:latest", knob: KnobDefault}},
		"a string":             {map[string]string{KnobDefault: `"debian:12"`}, "", outcome{image: "docker.io/library/debian:12", knob: KnobDefault}},
		"a number":             {map[string]string{KnobDefault: "TARGET.RequestGPUs"}, "RequestGPUs = 1", outcome{mistake: KnobDefault, words: "not a string"}},
		"an error":             {gpus, `RequestGPUs = "x"`, outcome{mistake: KnobDefault, words: "not a string"}},
		"a path":               {map[string]string{KnobDefault: `strcat("/cvmfs/unpacked.cern.ch/ghcr.io/", "a/b:1")`}, "", outcome{image: "ghcr.io/a/b:1", knob: KnobDefault, words: "built-in map"}},
		"nonsense":             {map[string]string{KnobDefault: `"No Image"`}, "", outcome{mistake: KnobDefault, words: "is not valid"}},
		"not allowed":          {map[string]string{KnobDefault: "TARGET.Wish", KnobAllowed: "docker.io/library/*"}, `Wish = "evil.net/x"`, outcome{mistake: KnobDefault, words: KnobAllowed}},
		"stock's":              {stock, `Owner = "u"`, outcome{image: "site.example/u:latest", docker: true, knob: "DEFAULT_CONTAINER_IMAGE"}},
		"stock's, own wish":    {stock, "Owner = \"u\"\nWantDocker = true\nDockerImage = \"debian\"", outcome{image: "docker.io/library/debian:latest", docker: true}},
		"stock's before ours":  {map[string]string{"USE_DEFAULT_CONTAINER": "true", "DEFAULT_CONTAINER_IMAGE": `"debian:12"`, KnobDefault: "alpine"}, "", outcome{image: "docker.io/library/debian:12", knob: "DEFAULT_CONTAINER_IMAGE"}},
		"stock's is undefined": {map[string]string{"USE_DEFAULT_CONTAINER": "true", "DEFAULT_CONTAINER_IMAGE": "TARGET.X", KnobDefault: "alpine"}, "", outcome{image: "docker.io/library/alpine:latest", knob: KnobDefault}},
		"stock's is a sif":     {map[string]string{"USE_DEFAULT_CONTAINER": "true", "DEFAULT_CONTAINER_IMAGE": `"/cvmfs/x.sif"`}, "", outcome{mistake: "DEFAULT_CONTAINER_IMAGE", words: ".sif"}},
		"stock's is nonsense":  {map[string]string{"USE_DEFAULT_CONTAINER": "("}, "", outcome{mistake: "USE_DEFAULT_CONTAINER"}},
	} {
		t.Run(name, func(t *testing.T) { check(t, mustSite(t, tt.knobs), mustAd(t, tt.ad), machine, tt.want) })
	}
}

func TestPolicy(t *testing.T) {
	const names = "WantDocker = true\nDockerImage = \"debian:12\""
	byOwner := `ifThenElse((TARGET.Owner ?: "") == "alice", "Never", "optional")`
	debian := outcome{image: "docker.io/library/debian:12", docker: true}
	for name, tt := range map[string]struct {
		policy, ad string
		want       outcome
	}{
		"optional, named":           {"optional", names, debian},
		"optional, none":            {"Optional", "", outcome{}},
		"required, named":           {"REQUIRED", names, debian},
		"required, by path":         {"required", `SingularityImage = "/cvmfs/unpacked.cern.ch/ghcr.io/a/b:1"`, outcome{image: "ghcr.io/a/b:1"}},
		"required, none":            {"required", "", outcome{code: vacated, words: "names none"}},
		"required, asks for one":    {"required", "WantContainer = true", outcome{code: held, subcode: SubcodeNoImage}},
		"never, named":              {"never", names, outcome{code: vacated, words: KnobPolicy}},
		"never, none":               {"never", "", outcome{}},
		"never, SingularityImage":   {"never", `SingularityImage = "debian"`, outcome{code: vacated, words: "SingularityImage"}},
		"never, no sense":           {"never", `SingularityImage = "/a/b"`, outcome{code: vacated}},
		"never, asks for one":       {"never", "WantContainer = true", outcome{code: vacated}},
		"expression, never":         {byOwner, names + "\nOwner = \"alice\"", outcome{code: vacated}},
		"expression, optional":      {byOwner, names + "\nOwner = \"bob\"", debian},
		"expression, undefined":     {"(TARGET.Policy)", names, outcome{mistake: KnobPolicy, words: "undefined"}},
		"expression, no such word":  {`strcat("some", "times")`, names, outcome{mistake: KnobPolicy, words: `"sometimes"`}},
		"expression, not a string":  {"1 + 1", names, outcome{mistake: KnobPolicy}},
		"expression over the slot":  {`MY.Memory > 50 ? "required" : "optional"`, "", outcome{code: vacated}},
		"expression, both say none": {`MY.Memory > 500 ? "required" : "optional"`, "", outcome{}},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, mustSite(t, map[string]string{KnobPolicy: tt.policy}), mustAd(t, tt.ad), mustAd(t, "Memory = 100"), tt.want)
		})
	}
}

func TestMistakes(t *testing.T) {
	for name, tt := range map[string]struct {
		knobs map[string]string
		words []string
	}{
		"all at once": {map[string]string{KnobMap: "/no/such/file", KnobPolicy: "nevr", KnobAllowed: "debian", KnobDenied: "x/", KnobMirrors: "docker.io", KnobDefault: "Debian:12"},
			[]string{KnobMap, "/no/such/file", KnobPolicy, "nevr", KnobAllowed, "docker.io/library/debian", KnobDenied, KnobMirrors, "FROM=TO", KnobDefault, "Debian:12"}},
		"relative map":        {map[string]string{KnobMap: "images.map"}, []string{KnobMap, "absolute"}},
		"default not allowed": {map[string]string{KnobDefault: "debian:12", KnobAllowed: "ghcr.io"}, []string{KnobDefault, KnobAllowed}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewSite(config.FromMap(tt.knobs))
			if err == nil {
				t.Fatal("no error")
			}
			for _, word := range tt.words {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%q does not contain %q", err, word)
				}
			}
		})
	}
	// $ENV() of an unset variable counts as no value.
	s := mustSite(t, map[string]string{KnobMap: "UNDEFINED", KnobPolicy: "UNDEFINED", KnobDefault: "undefined"})
	if s.HasMap() || s.Policy() != PolicyOptional {
		t.Errorf("map %v, policy %q", s.HasMap(), s.Policy())
	}
}
