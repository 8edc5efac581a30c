// Package image decides which container image a job gets: it reads the name in
// the job's ad, in every spelling that HTCondor and GlideinWMS know, translates
// it with the site's map into a registry reference, checks it against the site's
// rules, and redirects it to the site's mirrors. Jobs that name no image get the
// site's default.
//
// [Site] holds all of this, read from the configuration once. A name passes these
// steps in order, which docs/admin/images.md explains to admins:
//
//	ad → policy → map → reference → allow and deny rules → mirrors
//
// A name that the map does not know may be that of a file or directory in the pilot container,
// whose contents go into a container with the carrier image; see [File].
//
// Names come from users and are hostile: a name is parsed before it is used, the
// checked reference is the one that runs, and names that can be spelled in two
// ways are normalized first.
package image

import (
	"errors"
	"fmt"

	"podstarter/classads"
	"podstarter/condor/job"
)

// The knobs that this package reads; their values are described in the table of
// starter/settings/knobs.go.
const (
	KnobDefault = "POD_STARTER_DEFAULT_IMAGE"
	KnobMap     = "POD_STARTER_IMAGE_MAP"
	KnobPolicy  = "POD_STARTER_IMAGE_POLICY"
	KnobAllowed = "POD_STARTER_IMAGES_ALLOWED"
	KnobDenied  = "POD_STARTER_IMAGES_DENIED"
	KnobMirrors = "POD_STARTER_IMAGE_MIRRORS"
	KnobCarrier = "POD_STARTER_CARRIER_IMAGE"
	KnobPaths   = "POD_STARTER_IMAGE_PATHS"
	KnobUnknown = "POD_STARTER_UNKNOWN_IMAGES"

	// HTCondor's own, for jobs that ask for no container
	// (condor_starter.V6.1/starter.cpp:Starter::SpawnJob).
	knobUseDefault   = "USE_DEFAULT_CONTAINER"
	knobStockDefault = "DEFAULT_CONTAINER_IMAGE"
	// condor_starter.V6.1/singularity.cpp:Singularity::setup
	knobSingularityImage = "SINGULARITY_IMAGE_EXPR"
	knobAdmin            = "CONDOR_ADMIN"
)

// Knobs reads the configuration; [podstarter/condor/config.Config] implements it.
// In expressions, MY is the slot's ad and TARGET the job's ad.
type Knobs interface {
	Lookup(name string) (string, bool)
	EvalBool(name string, def bool, my, target *classads.Ad) (bool, error)
	EvalString(name, def string, my, target *classads.Ad) (string, error)
}

// Codes of condor_utils/condor_holdcodes.h.
const (
	holdInvalidImage     = 35
	vacateContainerError = 1021
)

// Subcodes of holds with code 35 that this package sets. They are stable, for
// programs that act on holds. Errors of the registry or the node have numbers
// below 20 (k8sexec); this package sets the first of those as well.
const (
	// SubcodeInvalidReference: the name is not a valid image reference.
	SubcodeInvalidReference = 1
	// SubcodePlatform: the image is for another processor.
	SubcodePlatform = 4
	// SubcodeNotInRegistry: a file, a directory or a URL for which the site's map
	// has no image in a registry.
	SubcodeNotInRegistry = 20
	// SubcodeNotAllowed: the site's rules forbid the image.
	SubcodeNotAllowed = 21
	// SubcodeNoImage: the job asks for a container and names no image.
	SubcodeNoImage = 22
	// SubcodeNoFile: there is no such file or directory, or the job may not read it.
	SubcodeNoFile = 23
	// SubcodeBadFile: the file is no image, or one of a kind that cannot be read.
	SubcodeBadFile = 24
	// SubcodeFileTooLarge: the image has more files or bytes than a container may get.
	SubcodeFileTooLarge = 25
)

// hold is the failure of a job whose user must change something.
func hold(subcode int, format string, args ...any) error {
	return &job.Failure{Code: holdInvalidImage, Subcode: subcode, Err: fmt.Errorf(format, args...)}
}

// elsewhere is the failure of a job that is correct, but not for this execution
// point: it goes back to the queue.
func elsewhere(format string, args ...any) error {
	return &job.Failure{Code: vacateContainerError, Err: fmt.Errorf(format, args...)}
}

// Mistake is an error in the site's configuration. Jobs are not to blame for it,
// and no job that meets it runs here until it is corrected.
type Mistake struct {
	Knob string
	Err  error
}

// Error implements error.
func (m *Mistake) Error() string { return m.Knob + ": " + m.Err.Error() }

// Unwrap returns the cause.
func (m *Mistake) Unwrap() error { return m.Err }

func mistake(knob, format string, args ...any) error {
	return &Mistake{Knob: knob, Err: fmt.Errorf(format, args...)}
}

// siteOwn turns the refusal of a name that the site itself wrote into a Mistake.
func siteOwn(knob string, err error) error {
	if f := (*job.Failure)(nil); errors.As(err, &f) && f.Code == holdInvalidImage {
		return &Mistake{Knob: knob, Err: f.Err}
	}
	return err
}

// maxName bounds names, in bytes. The grammar of references limits a repository
// name to 255, a tag to 128 and a digest to some 140; paths of images in file
// systems are longer.
const maxName = 4096

// excerpt quotes a piece of somebody's text for a message.
func excerpt(s string) string {
	const most = 300
	if len(s) > most {
		return fmt.Sprintf("%q...", s[:most])
	}
	return fmt.Sprintf("%q", s)
}
