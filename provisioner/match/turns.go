package match

import (
	"cmp"
	"container/heap"
	"slices"
	"time"
)

// turns decides in which order jobs are evaluated: the user whose evaluations have
// taken the least time is next. So whoever submits thousands of slow expressions
// waits for them, and nobody else does.
type turns struct {
	users queue
	known map[string]*share
}

// share is one user's part of the time.
type share struct {
	name  string
	spent time.Duration
	jobs  []entry
}

type entry struct {
	job  int
	cost time.Duration // what its evaluations have taken before
}

// add notes a job of users. One that several have submitted has its turn with the
// first of them.
func (t *turns) add(job int, cost time.Duration, users []string) {
	if len(users) == 0 {
		users = []string{""}
	}
	if t.known == nil {
		t.known = map[string]*share{}
	}
	for _, name := range users {
		s := t.known[name]
		if s == nil {
			s = &share{name: name}
			t.known[name] = s
			t.users = append(t.users, s)
		}
		s.jobs = append(s.jobs, entry{job, cost})
	}
}

// take calls do for each job, which returns how long it took. Of one user's jobs
// the cheap ones come first.
func (t *turns) take(do func(job int) time.Duration) {
	for _, s := range t.users {
		slices.SortStableFunc(s.jobs, func(a, b entry) int { return cmp.Compare(a.cost, b.cost) })
	}
	heap.Init(&t.users)
	for len(t.users) > 0 {
		s := t.users[0]
		s.spent += do(s.jobs[0].job)
		if s.jobs = s.jobs[1:]; len(s.jobs) == 0 {
			heap.Pop(&t.users)
			continue
		}
		heap.Fix(&t.users, 0)
	}
}

// queue is a heap of the users.
type queue []*share

func (q queue) Len() int { return len(q) }

func (q queue) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(q[i].spent, q[j].spent), cmp.Compare(q[i].name, q[j].name)) < 0
}

func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push and Pop are of heap.Interface.
func (q *queue) Push(x any) { *q = append(*q, x.(*share)) }

func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
