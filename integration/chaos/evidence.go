package chaos

import (
	"fmt"
	"time"

	"podstarter/integration/harness"
	"podstarter/integration/images/probe/facts"
)

// Evidence is all that is known about a run of the chaos test. All times are wall
// clock times of one machine.
type Evidence struct {
	Jobs        []Job
	Events      []harness.Event    // of all jobs, in the order of the log
	History     map[string]Final   // by job
	Accounts    map[string]Account // what each job's output says, by job
	Activations []Activation
	Kills       []Kill
	Sightings   []Sighting
	Specs       map[string]string // the image of each container in the pod's spec when all jobs had ended
	Patches     []Patch           // of the pod, by starters
	Users       map[string]int    // the user of each container's payloads
	Spares      int               // containers that are more than the slots
	Ahead       []Ahead           // containers that were made before a job wanted them
	Pullers     bool              // the pool has some
	Fetches     int               // requests for images that were not on the node
	Noted       []string          // what was noted of a container while jobs ran, and was not so
	Slots       []Slot            // what was noted when all jobs had ended
	Left        []string          // what was still there when all jobs had ended
}

// Job is a job as it was submitted.
type Job struct {
	ID     string // cluster.proc
	Image  string // what /image-name says in it
	Input  string // name of its input file
	Digest string // of its input file
}

// Final is what the history has about a job.
type Final struct {
	Status   int // 4 is completed
	ExitCode int
	Signaled bool
}

// Account is the output of a job.
type Account struct {
	facts.Account
	Ended bool // it came to its last line
}

// Activation is one life of a starter, from its log.
type Activation struct {
	Slot      string
	PID       int    // in the pod
	Job       string // empty if it did not come so far
	Container string // leased one; empty if it did not come so far
	Spec      string // the image that it was about to write into the pod's spec; empty if it did not come so far
	Began     time.Time
	Leased    time.Time // a moment when it had the lease already
	Fresh     bool      // its container had been made ahead
	Released  time.Time // a moment when it still had it; zero if it does not say
	Started   time.Time // when the payload was started; zero if it was not
	Ended     time.Time // last word; zero if it does not say
	Exit      string    // how the startd saw it end: "status 0", "signal 9"; empty if it did not
}

// String names the activation.
func (a Activation) String() string {
	return fmt.Sprintf("starter %d of %s (job %s, container %s)", a.PID, a.Slot, orNone(a.Job), orNone(a.Container))
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// Kinds of processes that are killed.
const (
	KindStarter = "starter"
	KindWrapper = "wrapper"
	KindPayload = "payload"
	KindPuller  = "puller" // or another process of a puller's pod
)

// Kill is a SIGKILL that was sent.
type Kill struct {
	Kind string
	PID  int // in the pod
	Time time.Time
}

// Patch is a call of the API server.
type Patch struct {
	Code         int
	Began, Ended time.Time
}

// Ahead is a container that was made before a job wanted it.
type Ahead struct {
	PID       int // of the starter, in the pod
	Container string
	Spec      string    // the image string that the pod has for it since
	Time      time.Time // a moment when the starter had the container's lease
}

// Slot is what starters have noted of a container, beside what the pod has.
type Slot struct {
	Container         string
	InUse, Fresh      bool
	Nonce, PodNonce   string // of the container; noted is only one that was announced, or will be
	Spec              string // noted as the one in the pod's spec; empty if not known
	Leased            bool   // somebody has its lock
	Wrappers, Strange int    // processes in the container: those of the wrapper, and others
}

// Sighting is a process of a payload's user as it was seen from outside.
type Sighting struct {
	UID         int
	PID         int    // on the machine
	Job         string // as its arguments have it
	Container   string // control group
	First, Last time.Time
}

// Kinds of violations.
const (
	NoEvidence  = "no evidence"
	Lost        = "lost"
	Twice       = "ran twice at once"
	Wrong       = "wrong output"
	Shared      = "shared container"
	Overlap     = "overlapping leases"
	Leftover    = "leftover"
	Met         = "met another job"
	LostUpdate  = "lost update"
	Misnoted    = "noted wrong"
	NoEnd       = "activation without end"
	Unexplained = "unexplained end"
)

// Violation is something that must not happen.
type Violation struct {
	Kind, Text string
}

// String is the violation in one line.
func (v Violation) String() string { return v.Kind + ": " + v.Text }
