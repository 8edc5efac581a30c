package payloadrun

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"podstarter/condor/shadow"
	"podstarter/localexec/apptainer"
	"podstarter/payload"
	"podstarter/starter/failure"
)

// attrNetwork is docker_network_type of the submit description, and attrNetworks what a site
// offers with DOCKER_NETWORKS (docker-api.cpp:DockerAPI::createContainer).
const (
	attrNetwork  = "DockerNetworkType"
	attrNetworks = "DockerNetworks"
)

// NoNetwork says whether the job runs without network: by its own wish, or by the site's
// (NO_JOB_NETWORKING; vanilla_proc.cpp:StartJob). A job that wants a network which its site
// cannot give it does not run: what the site has by another name may be more than the job is to
// reach. "host" and "nat", which every site has, are the network of the pod. Stock looks at
// the word only for a job with an image, and at its case; here no spelling of "none" leaves
// a job its network.
func (j *Job) NoNetwork() (bool, error) {
	kind := strings.TrimSpace(j.Ad.StringOr(attrNetwork, ""))
	switch {
	case strings.EqualFold(kind, "none"), j.Settings.Condor.NoNetwork:
		return true, j.canDoWithoutNetwork()
	case kind == "", strings.EqualFold(kind, "host"), strings.EqualFold(kind, "nat"):
		return false, nil
	}
	if offered := strings.FieldsFunc(j.Machine.StringOr(attrNetworks, ""), func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) }); slices.Contains(offered, kind) {
		return false, failure.New(shadow.VacateContainerError, 0, fmt.Errorf(
			"the job asks for the network %.100q (docker_network_type), which the slot offers and cannot give: a pod has one network; the site has to remove DOCKER_NETWORKS", kind))
	}
	return false, failure.New(shadow.HoldFailedToCreateProcess, 0, fmt.Errorf(
		"the job asks for the network %.100q (docker_network_type), which is not here: a pod has one network, which a job gets with \"host\", \"nat\" or no docker_network_type, and \"none\" takes it away", kind))
}

// canDoWithoutNetwork refuses a job whose image would have to be fetched by a program that runs
// for the job, without network like the job.
func (j *Job) canDoWithoutNetwork() error {
	if j.Contained == nil || !apptainer.IsURL(j.Contained.Image) {
		return nil
	}
	err := fmt.Errorf("the job has no network, and so Apptainer cannot fetch its image %.200q for it; name a .sif file that is transferred", j.Contained.Image)
	if j.Settings.Condor.NoNetwork || j.Contained.Knob != "" { // another site may have one, or another image
		return failure.New(shadow.VacateContainerError, 0, err)
	}
	return failure.New(shadow.HoldFailedToCreateProcess, 0, err)
}

// withoutNetwork is what it means to the job that something was not started without network.
// It is the site's affair; other errors remain what they are.
func (c *Container) withoutNetwork(err error) error {
	const wants = "the job is to have no network (docker_network_type = none, or the site's NO_JOB_NETWORKING), and this pod cannot take it away"
	if s := (*payload.StartError)(nil); errors.As(err, &s) && s.Stage == payload.StageNetwork {
		return failure.New(shadow.VacateContainerError, 0, fmt.Errorf("%s: %s; its seccomp profile must allow seccomp(2), and its kernel have it", wants, s.Detail))
	}
	if r := (*payload.RequestError)(nil); errors.As(err, &r) && r.Code == payload.CodeBadRequest && strings.Contains(r.Message, "no_network") {
		return failure.New(shadow.VacateContainerError, 0, fmt.Errorf(
			"%s: its wrapper (version %.100q) is probably older than its starter, install both from one build: %w", wants, c.Client().Hello().Version, err))
	}
	return err
}
