package decision

import "fmt"

// Output is a decision, with its reasons.
type Output struct {
	Create   []Creation
	Withdraw []Withdrawal
	// Groups has one entry for each group of the input, in its order.
	Groups []Outcome
	Memory Memory
}

// Creation is a number of equal pods to be made.
type Creation struct {
	Shape int
	Count int
	// User has submitted the job that needed them first, and counts as their owner.
	User string
	// Group is the index of the group whose job needed them first.
	Group int
}

// Withdrawal is a pod to be removed before it runs.
type Withdrawal struct {
	Pod int // index in Input.Pods
	Why string
}

// Outcome says what becomes of the idle jobs of a group. The numbers add up to
// Idle.
type Outcome struct {
	Idle   int
	Free   int // have free room in a pod that runs
	Soon   int // get room that a running job leaves
	Coming int // get room of a pod that is on its way
	New    int // get room of a pod that is made now
	// Waiting has the others, by the reasons why they get nothing.
	Waiting []Reason
}

// Reason is why a number of jobs gets no pod.
type Reason struct {
	Jobs  int
	Why   string
	Cause Cause
}

// Cause is the kind of a reason. There are few, and they do not change, so that jobs
// can be counted by them.
type Cause string

// The causes.
const (
	NoMatch        Cause = "NoMatch"        // no template has slots that match
	TooLarge       Cause = "TooLarge"       // the shapes that match are too small
	NeedsNoGPU     Cause = "NeedsNoGPU"     // all shapes that match have GPUs, and the job requests none
	PodLimit       Cause = "PodLimit"       // limits.pods
	ComingLimit    Cause = "ComingLimit"    // limits.coming
	RoundLimit     Cause = "RoundLimit"     // limits.perRound, or the bound of one decision
	UserLimit      Cause = "UserLimit"      // limits.perUser
	Ramping        Cause = "Ramping"        // more pods follow when the first have come
	ShapeRefused   Cause = "ShapeRefused"   // the platform refuses pods of the shape
	ShapeLimit     Cause = "ShapeLimit"     // maxPods of the shape
	TemplateLimit  Cause = "TemplateLimit"  // maxPods of the template
	TemplateComing Cause = "TemplateComing" // maxComing of the template
	BackOff        Cause = "BackOff"        // pods of the template came to nothing, or none has reported yet
	NoNode         Cause = "NoNode"         // no node has room
	Untaken        Cause = "Untaken"        // no job of the group has taken a pod of the template yet, or none took the last ones
	JustWithdrawn  Cause = "JustWithdrawn"  // a pod of the shape was withdrawn a short while ago
)

// Causes are all causes.
var Causes = []Cause{
	NoMatch, TooLarge, NeedsNoGPU, PodLimit, ComingLimit, RoundLimit, UserLimit, Ramping, ShapeRefused, ShapeLimit,
	TemplateLimit, TemplateComing, BackOff, NoNode, Untaken, JustWithdrawn,
}

// refusal is why no pod is made. The zero value is none.
type refusal struct {
	cause Cause
	why   string
}

func refuse(cause Cause, format string, args ...any) refusal {
	return refusal{cause, fmt.Sprintf(format, args...)}
}

// place counts a job.
func (o *Outcome) place(kind kind) {
	switch kind {
	case free:
		o.Free++
	case soon:
		o.Soon++
	case coming:
		o.Coming++
	case made:
		o.New++
	}
}

// wait counts jobs that get nothing.
func (o *Outcome) wait(jobs int, r refusal) {
	for i := range o.Waiting {
		if o.Waiting[i].Why == r.why {
			o.Waiting[i].Jobs += jobs
			return
		}
	}
	o.Waiting = append(o.Waiting, Reason{Jobs: jobs, Why: r.why, Cause: r.cause})
}
