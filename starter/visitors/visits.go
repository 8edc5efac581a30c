package visitors

import (
	"sync"

	"podstarter/rescue"
	"podstarter/sshtojob"
)

// visits are the connections of condor_ssh_to_job. As long as there is one the
// job is not over, even when its main process is (HTCondor docs/man-pages/
// condor_ssh_to_job.rst; starter.cpp:Reaper): an interactive job, which does
// nothing else, needs that.
type visits struct {
	mu     sync.Mutex
	open   map[*sshtojob.Visit]bool
	closed bool
	left   chan struct{} // buffered(1): a visit has ended
}

func newVisits() *visits {
	return &visits{open: map[*sshtojob.Visit]bool{}, left: make(chan struct{}, 1)}
}

// add takes note of a visit until it ends; it is ended at once when no more are
// wanted.
func (v *visits) add(one *sshtojob.Visit) {
	v.mu.Lock()
	v.open[one] = true
	closed := v.closed
	v.mu.Unlock()
	rescue.Go(func() {
		<-one.Done()
		v.mu.Lock()
		delete(v.open, one)
		v.mu.Unlock()
		select {
		case v.left <- struct{}{}:
		default: // somebody is going to look already
		}
	})
	if closed {
		one.Close()
	}
}

// any tells whether there is one.
func (v *visits) any() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.open) > 0
}

// end ends all of them, and those that come later.
func (v *visits) end() {
	v.mu.Lock()
	v.closed = true
	var all []*sshtojob.Visit
	for one := range v.open {
		all = append(all, one)
	}
	v.mu.Unlock()
	for _, one := range all {
		one.Close()
	}
}
