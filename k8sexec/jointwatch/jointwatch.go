// Package jointwatch lets all starters of a pod follow it by one watch.
//
// The starter that holds a lock has the watch, the leader. It passes each state of the pod
// on to the others, which are connected to its socket in the private directory. When it
// leaves or dies, one of them takes the lock and goes on from the state that it has seen
// last. A starter that hears nothing opens a watch of its own.
package jointwatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"podstarter/k8sexec/privatedir"
)

const (
	lockFile   = "watch.lock"
	socketFile = "watch.socket"
)

// Follower follows one pod by a watch of its own, see [podwatch.Pod.Follow].
type Follower interface {
	Follow(ctx context.Context, pod *corev1.Pod, see func(*corev1.Pod) bool)
}

// Pace has the periods of this package, so that tests can shorten them.
type Pace struct {
	// Beat is how often a leader shows that it lives.
	Beat time.Duration
	// Silence is after how long without a sign of its leader a starter opens its own watch.
	Silence time.Duration
	// Linger is how long a leader goes on for others when its own need has ended. If many
	// bindings are under way, the watch would otherwise change hands with each that ends.
	Linger time.Duration
	// Retry is the first pause after an attempt that met neither lock nor leader: a leader
	// is coming or going. It doubles up to a quarter of Beat.
	Retry time.Duration
}

// DefaultPace is that of a starter.
var DefaultPace = Pace{Beat: 5 * time.Second, Silence: 15 * time.Second, Linger: 10 * time.Second, Retry: 5 * time.Millisecond}

// Watch follows the pilot's pod together with the pod's other starters. It is safe for
// concurrent use.
type Watch struct {
	// Dir is the private directory.
	Dir  string
	Pod  Follower
	Pace Pace
	Log  *slog.Logger
	// Life bounds what a leader does for others.
	Life context.Context //nolint:containedctx // as long as the process
}

// Follow calls see with the pod and then with its later states, until see returns true or
// ctx ends. If see takes long, it misses states, but not the last one. Follow may return
// early if the watch is forbidden.
func (w *Watch) Follow(ctx context.Context, pod *corev1.Pod, see func(*corev1.Pod) bool) {
	if see(pod) {
		return
	}
	r := &reader{seen: pod, see: see}
	if err := w.together(ctx, r); err != nil && ctx.Err() == nil {
		w.Log.Debug("the pod's starters cannot share a watch, opening another one", "error", err)
		w.Pod.Follow(ctx, r.seen, see)
	}
}

// together follows the pod as leader or with one. An error means that the caller has to
// do it alone.
func (w *Watch) together(ctx context.Context, r *reader) error {
	if _, err := versionOf(r.seen); err != nil {
		return err
	}
	dir, err := privatedir.Open(w.Dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	pause := w.Pace.Retry
	for {
		lock, err := tryLock(dir)
		if err != nil {
			return err
		}
		if lock != nil {
			return w.lead(ctx, dir, lock, r)
		}
		end, err := w.listen(ctx, dir, r)
		switch {
		case end == done || ctx.Err() != nil:
			return nil
		case end == heard: // this leader has gone
			pause = w.Pace.Retry
		case end == unusable || pause > w.Pace.Beat/4:
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
		pause *= 2
	}
}

// tryLock gives the lock, which ends with the file; nil if another starter has it.
func tryLock(dir *os.Root) (*os.File, error) {
	// Never unlink the file: two starters could then hold locks on two files of that name.
	f, err := dir.OpenFile(lockFile, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
	case err == nil:
		return f, nil
	case errors.Is(err, unix.EWOULDBLOCK):
		_ = f.Close()
		return nil, nil
	default:
		_ = f.Close()
		return nil, fmt.Errorf("lock %s: %w", lockFile, err)
	}
}

// reader takes the states of a pod in their order. One goroutine at a time has it.
type reader struct {
	seen *corev1.Pod
	see  func(*corev1.Pod) bool
}

// take hands a state on unless a later one has been seen: what a leader has may be older
// than the patch of one who joins it. It returns true when the reader has had enough.
func (r *reader) take(pod *corev1.Pod) bool {
	next, err := versionOf(pod)
	last, _ := versionOf(r.seen)
	if err != nil || next <= last {
		return false
	}
	r.seen = pod
	return r.see(pod)
}

// versionOf is the resource version as a number. Clients may compare them
// since KEP-5504; in etcd they have always been numbers.
func versionOf(pod *corev1.Pod) (uint64, error) {
	v, err := strconv.ParseUint(pod.ResourceVersion, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("compare the versions of the pod: %w", err)
	}
	return v, nil
}

// queue has the states that a listener has yet to take. One goroutine puts, another takes. If
// it is full, the oldest goes.
type queue chan *state

const queued = 16

// state is what a leader passes on.
type state struct {
	pod   *corev1.Pod
	frame []byte // encoded
}

func (q queue) put(s *state) {
	for {
		select {
		case q <- s:
			return
		default:
		}
		select {
		case <-q:
		default:
		}
	}
}
