package job

import (
	"errors"
	"fmt"
	"strings"

	"podstarter/classads"
)

// Image is the container image that a job shall run in.
type Image struct {
	// Reference names the image in a registry, without "docker://", as the
	// job wrote it: a missing tag is not filled in.
	Reference string
	// Docker says that docker's rules hold for the command: the image's entry
	// point counts, and a command that is not transferred is the image's.
	Docker bool
	// Source is the attribute or knob that named the image, for messages.
	Source string
}

// Hold codes of this package's failures (condor_utils/condor_holdcodes.h).
const holdInvalidImage = 35

// ErrNoImage is in the chain of the error of a job that wants a container but
// names no image.
var ErrNoImage = errors.New("the job asks for a container but names no image")

// ImageOf finds out which image a job wants; nil if it wants none, so that it
// runs in whatever the site provides
// (condor_starter.V6.1/starter.cpp:Starter::SpawnJob, docker_proc.cpp:
// DockerProc::StartJob). A kind of image that only a runtime with privileges
// can use is a [Failure].
//
// The ad's DockerImage comes before its ContainerImage whichever universe was
// named at submission: condor_submit writes the one for docker_image also in
// the container universe.
func ImageOf(ad, machine *classads.Ad, k Knobs) (*Image, error) {
	docker := ad.BoolOr("WantDocker", false)
	container := ad.BoolOr("WantContainer", false)
	for _, attr := range []string{"WantSIF", "WantSandboxImage", "WantDockerImage"} {
		container = container || ad.BoolOr(attr, false)
	}
	if !docker && !container {
		return defaultImage(ad, machine, k)
	}
	for _, attr := range []string{"DockerImage", "ContainerImage"} {
		if text, err := ad.GetString(attr); err == nil && strings.TrimSpace(text) != "" {
			return newImage(ad, text, docker, attr)
		}
	}
	return nil, &Failure{Code: holdInvalidImage, Err: fmt.Errorf("%w: neither DockerImage nor ContainerImage is a string; submit with docker_image or container_image", ErrNoImage)}
}

// defaultImage is what the site puts jobs into that do not ask for a
// container.
func defaultImage(ad, machine *classads.Ad, k Knobs) (*Image, error) {
	const knob = "DEFAULT_CONTAINER_IMAGE"
	use, err := k.EvalBool("USE_DEFAULT_CONTAINER", false, machine, ad)
	if err != nil || !use {
		return nil, err
	}
	text, err := k.EvalString(knob, "", machine, ad)
	if err != nil || strings.TrimSpace(text) == "" {
		return nil, err
	}
	image, err := newImage(nil, text, strings.HasPrefix(text, "docker:"), knob)
	if err != nil {
		// The job is not to blame for what the site configured.
		return nil, fmt.Errorf("knob %s: %w", knob, errors.Unwrap(err))
	}
	return image, nil
}

func newImage(ad *classads.Ad, text string, docker bool, source string) (*Image, error) {
	text = strings.TrimSpace(text)
	unfit := func(what, instead string) (*Image, error) {
		return nil, &Failure{Code: holdInvalidImage, Err: fmt.Errorf("image %s (%s): %s cannot be used here; %s", excerpt(text), source, what, instead)}
	}
	const instead = "push the image to a registry and name it as docker://NAME"
	reference := strings.TrimPrefix(text, "docker://")
	scheme, _, isURL := strings.Cut(reference, "://")
	switch {
	case isURL:
		return unfit("an image from "+scheme+"://", instead)
	case source != "DockerImage" && (strings.HasSuffix(reference, ".sif") || ad != nil && ad.BoolOr("WantSIF", false)):
		return unfit("a .sif image", instead)
	case ad != nil && ad.BoolOr("WantSandboxImage", false) || strings.HasPrefix(reference, "/") || strings.HasPrefix(reference, "./"):
		return unfit("an image in a directory", instead)
	case reference == "":
		return unfit("an empty name", "name the image as docker://NAME")
	}
	for _, r := range reference {
		if r <= ' ' || r == 0x7f {
			return unfit("a name with blanks or control characters", "correct it")
		}
	}
	return &Image{Reference: reference, Docker: docker, Source: source}, nil
}

// Normalize fills in the tag that a reference without tag or digest means. A
// colon before the last slash belongs to the registry's port
// (condor_starter.V6.1/docker_proc.cpp:normalizeDockerImageTag).
func Normalize(reference string) string {
	if strings.Contains(reference, "@") || strings.Contains(reference[strings.LastIndexByte(reference, '/')+1:], ":") {
		return reference
	}
	return reference + ":latest"
}

// PullAlways says whether the job wants the image to be fetched even if it is
// there already.
func PullAlways(ad *classads.Ad) bool {
	return strings.EqualFold(ad.StringOr("DockerPullPolicy", ""), "always")
}
