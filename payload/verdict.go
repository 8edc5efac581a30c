package payload

import (
	"context"
	"time"
)

// BindRequest asks a backend for a payload container.
type BindRequest struct {
	// Activation names the run; see [Spec].
	Activation string
	// Image is the container image that the job wants, in its own words; empty for the
	// backend's default.
	Image string
	// Written is the image as the job wrote it, if the site maps it to another; it only
	// tells other jobs which image is here. May be empty.
	Written string
	// ChosenBy is the site's setting that chose the image; empty if the job did. Do not
	// blame the user for an image they did not choose.
	ChosenBy string
	// Owner is the job's owner. Containers are never passed from one owner to
	// another.
	Owner string
	// Bound, if not nil, is called once, before Bind returns a container, with how the container
	// came to run the image. A backend without containers does not call it.
	Bound func(Binding)
	// Size is what the job's slot was provisioned with. A backend that can gives the
	// container so much; 0 is not known.
	Size Size
	// Group, if not nil, is the control group that a backend without containers gives the payload, where the machine allows it.
	Group *Group
	// Fill, if not nil, writes files over those of the image before the container counts as
	// bound; its error is Bind's. It is not called for a container that has them already.
	Fill func(ctx context.Context, w Wrapper) error
	// Refit, if not nil, is called instead of Fill for a container that has the files of an earlier
	// job.
	Refit func(ctx context.Context, w Wrapper) error
	// Files identifies what Fill writes. A container that was filled is kept only for the same
	// files, and without an identity for none.
	Files string
	// Pin has the backend look up the image's digest before the binding, so that
	// [Container.Command] is that of the image which runs.
	Pin bool
	// Latest does the same even if the digest is known, so that what runs is what the tag points to
	// now.
	Latest bool
	// OwnProcesses asks for a PID namespace for the payload, whatever other payloads have. Only for a backend without containers, which logs why it
	// does not give one.
	OwnProcesses bool
	// Report, if not nil, is called with a sentence at each notable progress of the binding
	// ("pulling image ..."). It must not block.
	Report func(progress string)
}

// Binding is how a container came to run an image.
type Binding struct {
	Container string // its name
	How       How
	// Fetched is for how long the binding waited until the image was on the node; 0 if the
	// container pulls its image itself.
	Fetched time.Duration
}

// How is one word for it.
type How string

const (
	// Kept is a container that ran the image for the last job of the same owner.
	Kept How = "kept"
	// Ahead is a container that was made before the job came.
	Ahead How = "ahead"
	// Made is a container that was made for the job, of an image that has run here before.
	Made How = "made"
	// Pulled is a container that was made for the job, of an image that is new here.
	Pulled How = "pulled"
)

// Hows are all of them.
var Hows = []How{Kept, Ahead, Made, Pulled}

// Size is so much CPU and memory.
type Size struct {
	MilliCPU int64
	Memory   int64 // bytes
}

// Blame says who can correct a failure, and so what happens to the job.
type Blame int

const (
	// Unknown failures are treated like the site's.
	Unknown Blame = iota
	// User failures put the job on hold.
	User
	// Site failures give the job back to the queue: it may run elsewhere or later.
	Site
	// Pilot failures also give the job back to the queue. No job will run in this pod until
	// somebody acts, so it should get no more.
	Pilot
)

// String gives "user", "site", "pilot" or "unknown".
func (b Blame) String() string {
	switch b {
	case User:
		return "user"
	case Site:
		return "site"
	case Pilot:
		return "pilot"
	default:
		return "unknown"
	}
}

// ReasonOutOfMemory is the [Verdict.Reason] of a container that the kernel killed for lack
// of memory, with payload and wrapper. It is Kubernetes' own word.
const ReasonOutOfMemory = "OOMKilled"

// ReasonContainerEnd is the [Verdict.Reason] of a container that ended, as far as the backend
// knows without any particular reason.
const ReasonContainerEnd = "ContainerEnded"

// Verdict is a failure of a backend, with the judgement who is to blame.
type Verdict struct {
	Blame Blame
	// Subcode distinguishes failures that the user must correct, for programs that act on
	// held jobs.
	Subcode int
	// Reason is the failed system's own word, for example the kubelet's "ErrImagePull"; may
	// be empty.
	Reason string
	// Message is a sentence that says what happened and what to do about it.
	Message string
	// MemoryLimit is the memory that a container which ended might use, in bytes, as the
	// backend knows it; 0 if it does not, or if there was no limit.
	MemoryLimit int64
	// Err is the cause, if there is one.
	Err error
}

// Error implements error.
func (v *Verdict) Error() string {
	text := v.Message
	if v.Reason != "" {
		text += " [" + v.Reason + "]"
	}
	if v.Err != nil {
		text += ": " + v.Err.Error()
	}
	return text
}

// Unwrap gives the cause.
func (v *Verdict) Unwrap() error { return v.Err }
