package decision

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
	// User is whose job needed them first, and counts as their owner.
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
	Jobs int
	Why  string
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
func (o *Outcome) wait(jobs int, why string) {
	for i := range o.Waiting {
		if o.Waiting[i].Why == why {
			o.Waiting[i].Jobs += jobs
			return
		}
	}
	o.Waiting = append(o.Waiting, Reason{Jobs: jobs, Why: why})
}
