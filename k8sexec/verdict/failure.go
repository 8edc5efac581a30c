package verdict

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"podstarter/payload"
)

// Origin is who reported a failure.
type Origin int

const (
	FromRequest   Origin = iota + 1 // the binding, before it asks anybody
	FromAPI                         // the API server refused or did not answer
	FromPod                         // the status of the pod as a whole
	FromContainer                   // the status of the payload container
	FromRegistry                    // the image's registry, before the image is pulled
	FromWrapper                     // the wrapper in the container, or its absence
	FromPilot                       // the pilot container's own files
	FromClock                       // nobody: time is up
)

// Failure is what is known when a binding fails or a container is lost. It is an error,
// and becomes a *payload.Verdict before a caller of k8sexec sees it; see [Of].
type Failure struct {
	Origin  Origin
	Image   string // as asked, spelled out
	Spec    string // as it stands in the pod
	Reason  string // one word: the kubelet's, the API server's, or one of ours
	Message string // the words that came with it
	Err     error

	Code  int                              // HTTP status, from the API server
	Exit  *corev1.ContainerStateTerminated // how the container ended
	Tries int                              // failures of the kubelet that were seen
	Since time.Time                        // when the first of them was seen

	MemoryLimit int64 // of the container that ended, in bytes; 0 if there is none

	text string // what rules read, see words; set by Judge
}

// Error implements error.
func (f *Failure) Error() string { return fmt.Sprintf("%s: %s", f.Reason, f.Message) }

// Unwrap gives the cause, if there is one.
func (f *Failure) Unwrap() error { return f.Err }

// Reasons for which Kubernetes has no word, and those of the kubelet that are used in
// several places.
const (
	ReasonErrPull      = "ErrImagePull"
	ReasonPullBackOff  = "ImagePullBackOff"
	ReasonInvalidName  = "InvalidImageName"
	ReasonCrashLoop    = "CrashLoopBackOff"
	ReasonUnreachable  = "APIServerUnreachable"
	ReasonNoContainer  = "NoSuchContainer"
	ReasonPodReplaced  = "PodReplaced"
	ReasonOvertaken    = "BindingOvertaken"
	ReasonPodEnded     = "PodEnded"
	ReasonPodDeleted   = "PodDeleted"
	ReasonTimeout      = "BindTimeout"
	ReasonBusy         = "PodBusy"
	ReasonSilent       = "WrapperSilent"
	ReasonUnusable     = "WrapperUnusable"
	ReasonContainerEnd = payload.ReasonContainerEnd
	ReasonOutOfMemory  = payload.ReasonOutOfMemory
	ReasonPrivateDir   = "PrivateDirectory"
	ReasonNoneFree     = "NoContainerFree"
	ReasonStillAlive   = "EarlierJobAlive"
	ReasonResize       = "NotResized"
	ReasonPlatform     = "WrongPlatform"

	reasonNeverPull = "ErrImageNeverPull"
)

// Of turns a *[Failure] into a *payload.Verdict and leaves other errors, the
// causes of contexts that ended, as they are.
func Of(err error) error {
	f := (*Failure)(nil)
	if !errors.As(err, &f) {
		return err
	}
	return Judge(*f).Verdict()
}
