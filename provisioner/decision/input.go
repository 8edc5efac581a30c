package decision

import (
	"time"

	"podstarter/provisioner/resources"
)

// Input is all that a decision depends on.
type Input struct {
	Now    time.Time
	Groups []Group
	Shapes []Shape
	// Templates are those of the shapes.
	Templates []Template
	// Fits has, for each group, the shapes that its jobs match.
	Fits   [][]Fit
	Pods   []Pod
	Users  map[string]User
	Limits Limits
	Policy Policy
	Memory Memory
	// Partial: not all access points told of their jobs. Nothing is withdrawn.
	Partial bool
}

// Group is a number of idle jobs that match the same slots: an autocluster.
type Group struct {
	ID         string
	Submitters []Submitter
	// Runtime is how long such a job is expected to run; 0 if that is unknown.
	Runtime time.Duration
}

// Idle returns the number of idle jobs of all submitters.
func (g Group) Idle() int {
	n := 0
	for _, s := range g.Submitters {
		n += s.Idle
	}
	return n
}

// Submitter is one user's part of a group.
type Submitter struct {
	// User is charged for the jobs: by this name they get their share.
	User string
	// Owner has submitted them, and is the same person under whatever name a job is
	// charged. Empty is User.
	Owner string
	Idle  int
}

// owner is whose limits count.
func (s Submitter) owner() string {
	if s.Owner == "" {
		return s.User
	}
	return s.Owner
}

// User is what the pool says of a submitter.
type User struct {
	// Priority is the effective priority; a larger one is worse, as
	// condor_userprio prints it. 0 stands for DefaultPriority.
	Priority float64
	// Usage is the number of CPUs that the user's running jobs have.
	Usage float64
	// Pods is the number of pods that were made for jobs which the user submitted, and
	// that are still there.
	Pods int
}

// DefaultPriority is the effective priority of a user whom the accountant does
// not know (HTCondor src/condor_negotiator.V6/Accountant.cpp: the real priority
// 0.5 times PRIORITY_FACTOR, 1000 by default).
const DefaultPriority = 500

// Template is what all shapes of a pod or Job template have in common.
type Template struct {
	Name string
	// MaxPods and MaxComing limit its pods and those of them that have not reported
	// yet; 0 is no limit.
	MaxPods, MaxComing int
	// Allowance is how many may be on their way after what became of earlier ones,
	// and AllowanceWhy why not more (package backoff). Those that are stuck do not
	// count, since back-off knows of them: one that never gets a node would close the
	// template.
	Allowance    int
	AllowanceWhy string
}

// Shape is a size in which pods of a template can be made.
type Shape struct {
	Template int // index in Input.Templates
	Name     string
	Size     resources.Amount
	MaxPods  int // 0 is no limit
	// Closed is why no pod of the shape is made at present, whatever its template
	// allows; it is empty if they may be.
	Closed string
	// Lifetime is how long a pod takes jobs; 0 if it does so for ever.
	Lifetime time.Duration
}

// Fit says that the jobs of a group and the slots of a shape accept each other.
type Fit struct {
	Shape   int // index in Input.Shapes
	Request resources.Amount
	// Rank is how much the site and the job prefer this shape.
	Rank float64
	// Bounded: for the group, at most Most pods of the shape's template are made by
	// this decision, for the reason Why. Those that are there take jobs all the same.
	Bounded bool
	Most    int
	Why     string
	// NotFor is why no pod of the shape is made for such a job, which needs none of its
	// GPUs; it is empty if one may be. The job counts only on what is free there, and on
	// pods whose GPUs others take.
	NotFor string
}

// Phase is how far a pod has come.
type Phase int

// The phases of a pod, in their order.
const (
	Pending  Phase = iota // not yet on a node, or pulling its images
	Starting              // it runs, and has not reported to the collector
	Reported              // the collector knows its slots
	Ending                // it takes no more jobs
)

// Pod is a pod that is there.
type Pod struct {
	ID    string
	Shape int // index in Input.Shapes; -1 if that is no longer configured
	Phase Phase
	// Stuck: no node has room for it, or its node does not begin it. Nobody knows when
	// it will run, so that jobs count on it only if they can get no other pod.
	Stuck bool
	// Placed: it is stuck on a node, and one on another node may be better off.
	Placed  bool
	Created time.Time
	// Free is what jobs have not claimed. For a pod that has not reported it is the
	// size of its shape.
	Free resources.Amount
	// Claims are its running jobs.
	Claims []Claim
	// Until is when it stops to take jobs; zero if that is unknown.
	Until time.Time
}

// Claim is a running job's part of a pod.
type Claim struct {
	Amount resources.Amount
	// Until is when the job is expected to end; zero if that is unknown.
	Until time.Time
}

// Limits bound all pods of the provisioner; 0 is no limit.
type Limits struct {
	Pods    int
	Coming  int // pods that have not reported
	PerUser int // pods made for one user
	// PerRound bounds the pods that one decision makes.
	PerRound int
}

// Policy is how the site wants to be served.
type Policy struct {
	// Patience is how long a job waits for a place that a running one leaves, rather
	// than have a pod made.
	Patience time.Duration
	// Horizon is how far a place is planned: jobs that are short follow each other in
	// it for so long.
	Horizon time.Duration
	// Start is how long a new pod takes until it runs its first job.
	Start time.Duration
	// Settle is how long a pod on its way has to be of no use before it is
	// withdrawn, and how long after that no pod of the same shape is made.
	Settle time.Duration
	// Ramp bounds the pods that are on their way for one group.
	Ramp Ramp
}

// Ramp bounds how many pods are on their way for one group with a number of idle
// jobs. The zero value does not bound them.
type Ramp struct {
	// First are always allowed.
	First int
	// Part of the idle jobs beyond those get a pod each.
	Part float64
}

// Allows returns the number of pods that may be on their way. It is one at least:
// with less, a small group would get none for ever.
func (r Ramp) Allows(idle int) int {
	if r == (Ramp{}) {
		return idle
	}
	return max(r.First+int(r.Part*float64(max(idle-r.First, 0))), 1)
}

// Memory is what one decision wants the next one to know. It may be lost: then
// pods are withdrawn a little later.
type Memory struct {
	// Surplus has, for each pod on its way that no job took, since when.
	Surplus map[string]time.Time
	// Withdrawn has, for each shape, when a pod of it was last withdrawn.
	Withdrawn map[string]time.Time
}
