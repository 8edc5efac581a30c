package k8sexec

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"podstarter/payload"
)

// origin is who reported a failure.
type origin int

const (
	fromRequest   origin = iota + 1 // this package, before asking anybody
	fromAPI                         // the API server refused or did not answer
	fromPod                         // the status of the pod as a whole
	fromContainer                   // the status of the payload container
	fromWrapper                     // what runs in the container, or does not
	fromPilot                       // the pilot container's own files
	fromClock                       // nobody: time is up
)

// failure is what is known when a binding does not succeed or a container is
// lost. It is an error, and becomes a *payload.Verdict when it leaves the
// package.
type failure struct {
	origin  origin
	image   string // as asked, spelled out
	spec    string // as it stands in the pod
	reason  string // one word: the kubelet's, the API server's, or one of ours
	message string // the words that came with it
	err     error

	code  int                              // HTTP status, from the API server
	exit  *corev1.ContainerStateTerminated // how the container ended
	tries int                              // how often the kubelet was seen to fail
	since time.Time                        // when it was first seen to

	text string // what rules read, see words; set by judge
}

// Error implements error.
func (f *failure) Error() string { return fmt.Sprintf("%s: %s", f.reason, f.message) }

// Unwrap gives the cause, if there is one.
func (f *failure) Unwrap() error { return f.err }

// Words for what Kubernetes has no word for, and those of the kubelet that more
// than one place looks at.
const (
	reasonErrPull      = "ErrImagePull"
	reasonPullBackOff  = "ImagePullBackOff"
	reasonInvalidName  = "InvalidImageName"
	reasonCrashLoop    = "CrashLoopBackOff"
	reasonUnreachable  = "APIServerUnreachable"
	reasonNoContainer  = "NoSuchContainer"
	reasonPodReplaced  = "PodReplaced"
	reasonOvertaken    = "BindingOvertaken"
	reasonPodEnded     = "PodEnded"
	reasonPodDeleted   = "PodDeleted"
	reasonTimeout      = "BindTimeout"
	reasonSilent       = "WrapperSilent"
	reasonUnusable     = "WrapperUnusable"
	reasonContainerEnd = "ContainerEnded"
	reasonOutOfMemory  = payload.ReasonOutOfMemory
	reasonPrivateDir   = "PrivateDirectory"
	reasonNoneFree     = "NoContainerFree"
	reasonStillAlive   = "EarlierJobAlive"
)

// asVerdict turns errors of this package into verdicts and leaves others, the
// causes of contexts that ended, as they are.
func asVerdict(err error) error {
	f := (*failure)(nil)
	if !errors.As(err, &f) {
		return err
	}
	return judge(*f).verdict()
}
