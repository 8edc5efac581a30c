// Package platform says what the provisioner needs of whatever runs its pods:
// a Kubernetes cluster, or a batch system.
package platform

import (
	"context"
	"errors"
	"time"

	"podstarter/provisioner/backoff"
	"podstarter/provisioner/resources"
)

// Platform makes units, tells of them, and withdraws those that have not begun. A
// unit is one pod with its slots: a Job, a bare pod, or a job of a batch system.
//
// All state is with the platform, in labels of the units, so that a provisioner
// which starts anew knows as much as one that went on.
type Platform interface {
	// List returns all units of this provisioner, those that ended a short while ago
	// among them. A unit that Create made before is in the list, unless it is gone.
	List(ctx context.Context) ([]Unit, error)
	// Create makes a unit. If there is one with the same name, nothing is done, so
	// that a call whose answer was lost can be repeated. An error that wraps
	// ErrDenied says that the platform refuses such units at present.
	Create(ctx context.Context, spec Spec) error
	// Withdraw removes a unit that has not begun. For a unit that has begun
	// meanwhile it does nothing and returns ErrBegun; for one that is gone it
	// returns nil.
	Withdraw(ctx context.Context, name string) error
}

// Ender is a platform that can end units which run.
type Ender interface {
	// End removes a unit in which no job has begun, also one that runs. If a job has
	// begun there, as far as the platform can tell, it does nothing and returns
	// ErrBegun; for a unit that is gone it returns nil.
	End(ctx context.Context, name string) error
}

// Mender is a platform whose units have further parts. Mend makes those that were
// not made with their unit, because of an error or the end of a provisioner.
type Mender interface {
	Mend(ctx context.Context) error
}

// Errors of a platform.
var (
	ErrDenied = errors.New("the platform refuses to make it")
	ErrBegun  = errors.New("it has begun meanwhile")
)

// Spec is a unit to be made.
type Spec struct {
	Name     string
	Template string
	Shape    string
	// Size is what each payload container has.
	Size resources.Amount
	// User and Group are whose jobs the unit is made for, for reports and limits.
	User, Group string
}

// Phase is how far a unit has come.
type Phase int

// The phases, in their order.
const (
	Pending Phase = iota // it has not begun to run
	Running
	Ended
)

// Use is what a platform can tell of the jobs of a unit, without asking a pool.
type Use int

// The uses.
const (
	UseUnknown Use = iota
	Unused         // no job has begun in it
	Used           // a job has begun in it at some time
)

// DefaultBeginWithin is how long a pod on a node may take to begin. The kubelet has no
// limit for pulling an image, which the container runtime ends only if nothing comes
// (containerd: image_pull_progress_timeout, 5 minutes): 20 GB take half an hour.
const DefaultBeginWithin = 30 * time.Minute

// Unit is a unit that is there.
type Unit struct {
	Spec
	// Hosts are the names under which its startds report.
	Hosts   []string
	Phase   Phase
	Created time.Time
	// Placed is when a pending unit got a node, on which it may begin at once; zero if
	// it has none, or that is not known.
	Placed time.Time
	// Began and Ended are zero for what has not happened.
	Began, Ended time.Time
	Use          Use
	// Leaving: it is being deleted, and takes no more jobs.
	Leaving bool
	// Former: it was made from a manifest that its template has no longer. What keeps
	// it from beginning says nothing of units that are made now.
	Former bool
	// Trouble says why a pending unit does not begin, or an ended one came to
	// nothing; it is empty if all is well. Detail has the platform's own words.
	Trouble backoff.Reason
	Detail  string
}
