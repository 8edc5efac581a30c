package template

import (
	"errors"
	"strings"

	"podstarter/classads"
	"podstarter/condor/config"
	"podstarter/condor/image"
	"podstarter/condor/job"
)

// imageAttributes say which image a job wants, beside those by which all jobs are
// grouped.
var imageAttributes = []string{"SingularityImage", "WantContainer", "WantDocker", "WantDockerImage", "WantSandboxImage", "WantSIF"}

// site reads the rules as the starter in the pods does. There are none if the site
// gives none.
func (f fileImages) site() (*image.Site, error) {
	if len(f.Allow)+len(f.Deny) == 0 {
		return nil, nil
	}
	return image.NewSite(config.FromMap(map[string]string{
		image.KnobAllowed: strings.Join(f.Allow, " "),
		image.KnobDenied:  strings.Join(f.Deny, " "),
	}))
}

// Refuses says why the starter in a pod would hold a job for its image, or is empty.
// Images of which the rules say nothing, such as files, are not judged here.
func (t Template) Refuses(ad, slot *classads.Ad) string {
	if t.images == nil {
		return ""
	}
	_, err := t.images.Choose(ad, slot)
	var failure *job.Failure
	if errors.As(err, &failure) && failure.Subcode == image.SubcodeNotAllowed {
		return err.Error()
	}
	return ""
}
