package payload

// BindRequest asks a backend for a payload container.
type BindRequest struct {
	// Activation names the run; see [Spec].
	Activation string
	// Image is the container image the job wants, as the job says it; empty for
	// the backend's default.
	Image string
	// Written is how the job wrote the image, which the site may have understood as
	// another; it only serves to tell other jobs what is here. May be empty.
	Written string
	// ChosenBy is the setting of the site that named the image where the job did
	// not; empty if the job did. A job is not to blame for an image that it did not
	// choose.
	ChosenBy string
	// Owner is the job's owner. Containers are never passed from one owner to
	// another.
	Owner string
	// Report, if not nil, is called with a sentence whenever the binding makes
	// progress worth telling ("pulling image ..."). It must not block.
	Report func(progress string)
}

// Blame says who can mend a failure, and so what becomes of the job.
type Blame int

const (
	// Unknown failures are treated like the site's.
	Unknown Blame = iota
	// User failures put the job on hold.
	User
	// Site failures give the job back to the queue: elsewhere, or later, it may
	// well run.
	Site
	// Pilot failures give the job back to the queue as well, but no job will run
	// in this pod until somebody acts: it should not be given any more.
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

// ReasonOutOfMemory is the [Verdict.Reason] of a container that the kernel ended
// for want of memory, payload, wrapper and all. The word is Kubernetes' own.
const ReasonOutOfMemory = "OOMKilled"

// Verdict is the failure of a backend, judged.
type Verdict struct {
	Blame Blame
	// Subcode tells the failures that a user has to mend apart, for programs that
	// act on held jobs.
	Subcode int
	// Reason is the word of the system that failed, for example the kubelet's
	// "ErrImagePull"; may be empty.
	Reason string
	// Message is a sentence that says what happened and what to do about it.
	Message string
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
