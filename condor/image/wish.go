package image

import (
	"path"
	"strings"

	"podstarter/classads"
)

// Attributes of job ads.
const (
	attrDocker      = "DockerImage"
	attrContainer   = "ContainerImage"
	attrSingularity = "SingularityImage"
	// attrFullPath holds the value of container_image before condor_submit
	// replaced it with the base name, because the file is transferred
	// (condor_utils/submit_utils.cpp:process_container_input_files).
	attrFullPath = "ContainerImageFullPath"
)

// wish is the image that a job or a knob names.
type wish struct {
	text string
	// more are other spellings of it that a map may know.
	more   []string
	source string // attribute or knob
	docker bool   // docker's rules apply to the command
	// iwd is the job's initial directory if its files are not transferred: a name is
	// relative to that then (singularity.cpp:Singularity::setup).
	iwd string
	// notRegistry describes an image that, by the ad itself, is not in a
	// registry: "a .sif file".
	notRegistry string
}

// AsksForContainer reports whether HTCondor would run the job in a container if
// it can choose (starter.cpp:Starter::SpawnJob,
// singularity.cpp:Singularity::job_enabled).
func AsksForContainer(ad *classads.Ad) bool {
	for _, attr := range []string{"WantDocker", "WantContainer", "WantDockerImage", "WantSIF", "WantSandboxImage"} {
		if ad.BoolOr(attr, false) {
			return true
		}
	}
	return false
}

// wishOf reads what a job wants; nil if it names no image and asks for no
// container. A wish without text only asks for a container.
//
// If an ad names several, the order is that of the program that stock would use:
// docker prefers DockerImage to ContainerImage (docker_proc.cpp:StartJob),
// singularity prefers SingularityImage to ContainerImage
// (singularity.cpp:Singularity::setup). condor_submit writes WantDockerImage for
// docker://, WantSIF for .sif and WantSandboxImage for everything else, including
// oras:// (submit_utils.cpp:image_type_from_string).
func wishOf(ad, machine *classads.Ad, k Knobs) *wish {
	w := wishIn(ad, machine, k)
	if w != nil && strings.EqualFold(ad.StringOr("ShouldTransferFiles", ""), "NO") {
		w.iwd = ad.StringOr("Iwd", "")
	}
	return w
}

func wishIn(ad, machine *classads.Ad, k Knobs) *wish {
	docker := ad.BoolOr("WantDocker", false)
	image := ad.BoolOr("WantDockerImage", false)
	sif, sandbox := ad.BoolOr("WantSIF", false), ad.BoolOr("WantSandboxImage", false)

	named := func(attr string) *wish {
		text, err := ad.GetString(attr)
		if err != nil || strings.TrimSpace(text) == "" {
			return nil
		}
		w := &wish{text: strings.TrimSpace(text), source: attr, docker: docker || image}
		if attr != attrContainer {
			return w
		}
		if full := ad.StringOr(attrFullPath, ""); len(full) <= maxName && path.Base(full) == path.Base(w.text) {
			w.more = append(w.more, full)
		}
		switch {
		case sif:
			w.notRegistry = "a .sif file"
		case sandbox && !strings.HasPrefix(w.text, dockerScheme):
			w.notRegistry = "a directory"
		}
		return w
	}
	var order []func() *wish
	try := func(attr string) { order = append(order, func() *wish { return named(attr) }) }
	singularity := func() *wish { return singularityWish(ad, machine, k) }
	switch {
	case docker || image:
		try(attrDocker)
		try(attrContainer)
	case AsksForContainer(ad):
		order = append(order, singularity)
		try(attrContainer)
		try(attrDocker)
	default:
		// A plain job that names an image: jobs for GlideinWMS and the OSPool
		// look like that, and so do those of pools with SINGULARITY_JOB.
		return singularity()
	}
	for _, next := range order {
		if w := next(); w != nil {
			return w
		}
	}
	return &wish{docker: docker || image}
}

// singularityWish reads SingularityImage, or the site's expression for it.
func singularityWish(ad, machine *classads.Ad, k Knobs) *wish {
	text, source := ad.StringOr(attrSingularity, ""), attrSingularity
	if _, ok := k.Lookup(knobSingularityImage); ok {
		// As in stock, an expression that is not a string is ignored.
		text, _ = k.EvalString(knobSingularityImage, "", machine, ad)
	}
	if strings.TrimSpace(text) == "" {
		return nil
	}
	return &wish{text: strings.TrimSpace(text), source: source}
}

// spellings are the forms of the name to look up in a map: the full path first,
// paths without redundant parts.
func (w *wish) spellings() []string {
	var all []string
	for _, text := range append(append([]string{}, w.more...), w.text) {
		if strings.HasPrefix(text, "/") {
			text = path.Clean(text)
		}
		all = append(all, text)
	}
	return all
}

// notInRegistry describes an image that cannot be pulled; empty if it may be in a
// registry.
func (w *wish) notInRegistry() string {
	name, docker := strings.CutPrefix(w.text, dockerScheme)
	scheme, _, isURL := strings.Cut(name, "://")
	switch {
	case isURL:
		return "an image from " + scheme + "://"
	case docker:
		return ""
	case strings.HasSuffix(name, ".sif"):
		return "a .sif file"
	case strings.HasPrefix(name, "/"), strings.HasPrefix(name, "./"), strings.HasPrefix(name, "../"), strings.HasPrefix(name, "~"):
		return "a path"
	case strings.HasSuffix(name, "/"):
		return "a directory"
	}
	return w.notRegistry
}
