//go:build pool

package provisionfaults

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestTwoAtOnce: of two provisioners one makes pods. When it is killed or hangs, the other one goes on; when the one that hung wakes, it
// makes nothing twice.
func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, "two", "lease: {duration: 5s}")
	s.prove()
	running := len(s.pods())
	chance := rand.New(rand.NewPCG(*seed, 2))
	most := s.watchMost()
	all := []*process{s.start(t.Context()), s.start(t.Context())}
	jobs := 0
	for n := range 8 {
		condor.submit(t, one, alice, s.name, "queue 3")
		jobs += 3
		s.await("the pods of a leader", time.Minute, func() error {
			if got := len(s.pods()) - running; n == 0 && got != jobs || got > jobs {
				return fmt.Errorf("there are %d pods for %d jobs", got, jobs)
			}
			return nil
		})
		// At some moment of its rounds, which follow each other in ten seconds.
		leader := s.leader(all)
		<-time.After(time.Duration(chance.Float64() * float64(3*time.Second)))
		if n%2 == 0 {
			all[leader].kill()
			all[leader] = s.start(t.Context())
		} else {
			hung := all[leader].cmd.Process
			if err := hung.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			s.await("another leader", time.Minute, func() error {
				if !all[1-leader].leads() {
					return errors.New("none")
				}
				return nil
			})
			if err := hung.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
		}
		s.await("pods for all jobs", time.Minute, func() error {
			if got := len(s.pods()) - running; got != jobs {
				return fmt.Errorf("there are %d pods for %d jobs", got, jobs)
			}
			return nil
		})
		if got := most(); got > jobs+running {
			t.Fatalf("after %d changes of the leader there were %d pods for %d jobs", n+1, got-running, jobs)
		}
	}
}

// leader returns the index of the provisioner that makes pods.
func (s *site) leader(all []*process) int {
	s.t.Helper()
	found := 0
	s.await("a leader", time.Minute, func() error {
		for i, p := range all {
			if p.leads() {
				found = i
				return nil
			}
		}
		return errors.New("none")
	})
	return found
}

// watchMost counts pods all the time until the test ends. The returned function says how many there were at most.
func (s *site) watchMost() func() int {
	var mu sync.Mutex
	most, failed := 0, error(nil)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			all, err := s.list()
			mu.Lock()
			if most = max(most, len(all)); err != nil && failed == nil {
				failed = err
			}
			mu.Unlock()
		}
	}()
	s.t.Cleanup(func() { close(done); <-ended })
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		if failed != nil {
			s.t.Fatal(failed)
		}
		return most
	}
}
