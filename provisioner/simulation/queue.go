package simulation

import (
	"cmp"
	"slices"
	"time"

	"podstarter/provisioner/resources"
)

// Class is a kind of job that matches the same slots: an autocluster.
type Class struct {
	Name    string
	Request resources.Amount
	// Templates are the names of those whose slots its jobs match. None has them all
	// wait for ever.
	Templates []string
}

// Job is a job of the queue.
type Job struct {
	Submit time.Duration // since the beginning
	Run    time.Duration
	Class  int // index in Queue.Classes
	User   string
}

// Queue is all jobs that are submitted.
type Queue struct {
	Classes []Class
	Jobs    []Job
}

// class adds a class and returns its index.
func (q *Queue) class(name string, request resources.Amount, templates ...string) int {
	q.Classes = append(q.Classes, Class{Name: name, Request: request, Templates: templates})
	return len(q.Classes) - 1
}

// sort puts the jobs into the order of their submission.
func (q *Queue) sort() {
	slices.SortStableFunc(q.Jobs, func(a, b Job) int { return cmp.Compare(a.Submit, b.Submit) })
}

// users returns the names of all users, sorted.
func (q *Queue) users() []string {
	seen := map[string]bool{}
	var names []string
	for _, j := range q.Jobs {
		if !seen[j.User] {
			seen[j.User] = true
			names = append(names, j.User)
		}
	}
	slices.Sort(names)
	return names
}

// backlog is the idle jobs of one user, by class, oldest first.
type backlog struct {
	user    string
	byClass [][]int // indices in Queue.Jobs
	running float64 // CPUs
}

func (b *backlog) push(class, job int) { b.byClass[class] = append(b.byClass[class], job) }

// back puts a job that was interrupted before those that were submitted later.
func (b *backlog) back(class, job int) {
	q := b.byClass[class]
	at, _ := slices.BinarySearch(q, job)
	b.byClass[class] = slices.Insert(q, at, job)
}

func (b *backlog) pop(class int) int {
	job := b.byClass[class][0]
	b.byClass[class] = b.byClass[class][1:]
	return job
}

// oldest returns the class of the user's oldest idle job among those that are not
// to be skipped, or -1.
func (b *backlog) oldest(skip []bool) int {
	best := -1
	for c, q := range b.byClass {
		if len(q) > 0 && !skip[c] && (best < 0 || q[0] < b.byClass[best][0]) {
			best = c
		}
	}
	return best
}
