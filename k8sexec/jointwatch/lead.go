package jointwatch

import (
	"context"
	"io"
	"net"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"

	"podstarter/rescue"
)

// lead watches the pod for the reader and for all who connect, and returns when the reader
// has had enough. It takes over the lock, and goes on in the background for those who still
// listen, but not for long.
func (w *Watch) lead(ctx context.Context, dir *os.Root, lock *os.File, r *reader) error {
	socket, err := open(dir)
	if err != nil {
		_ = lock.Close()
		return err
	}
	life, cancel := context.WithCancel(w.Life)
	l := &leader{pace: w.Pace, joined: make(chan net.Conn), left: make(chan net.Conn), states: make(chan *corev1.Pod), satisfied: make(chan struct{}),
		listeners: make(map[net.Conn]queue), own: make(queue, queued), latest: &state{pod: r.seen}}
	ended := make(chan struct{})
	rescue.Go(func() { // the watch
		defer close(ended)
		w.Pod.Follow(life, r.seen, func(pod *corev1.Pod) bool { return !send(life, l.states, pod) })
	})
	rescue.Go(func() {
		defer lock.Close() // last: the next leader removes the socket
		defer cancel()
		defer func() { _ = socket.Close() }()
		l.run(life, ended)
	})
	rescue.Go(func() { // ends with the socket
		for {
			conn, err := socket.Accept()
			if err != nil {
				return
			}
			if !send(life, l.joined, conn) {
				_ = conn.Close()
			}
		}
	})
	defer close(l.satisfied)
	for {
		select {
		case s, more := <-l.own:
			if !more || r.take(s.pod) {
				return nil
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// send gives v to who reads c, unless ctx ends first.
func send[T any](ctx context.Context, c chan<- T, v T) bool {
	select {
	case c <- v:
		return true
	case <-ctx.Done():
		return false
	}
}

// leader belongs to one goroutine, but for the channels.
type leader struct {
	pace      Pace
	joined    chan net.Conn
	left      chan net.Conn
	states    chan *corev1.Pod
	satisfied chan struct{} // closed when the leader itself needs no more
	own       queue
	listeners map[net.Conn]queue
	latest    *state
}

// run passes states on until nobody needs them.
func (l *leader) run(ctx context.Context, ended <-chan struct{}) {
	defer close(l.own)
	defer func() {
		for _, q := range l.listeners {
			close(q) // they get what is in it
		}
	}()
	beats := time.NewTicker(l.pace.Beat)
	defer beats.Stop()
	satisfied := l.satisfied
	var enough <-chan time.Time
	for satisfied != nil || len(l.listeners) > 0 {
		select {
		case conn := <-l.joined:
			l.listeners[conn] = l.serve(ctx, conn)
			l.pass(l.listeners[conn])
		case conn := <-l.left:
			close(l.listeners[conn])
			delete(l.listeners, conn)
		case pod := <-l.states:
			l.latest = &state{pod: pod}
			l.own.put(l.latest)
			for _, q := range l.listeners {
				l.pass(q)
			}
		case <-beats.C:
			for _, q := range l.listeners {
				q.put(&state{frame: beat})
			}
		case <-satisfied:
			satisfied = nil
			enough = time.After(l.pace.Linger)
		case <-enough:
			return
		case <-ended:
			return
		case <-ctx.Done():
			return
		}
	}
}

// pass gives the latest state to a listener.
func (l *leader) pass(q queue) {
	if l.latest.frame == nil {
		frame, err := encode(l.latest.pod)
		if err != nil {
			return // larger than any pod; they hear beats
		}
		l.latest.frame = frame
	}
	q.put(l.latest)
}

// serve writes to a listener what is put into the queue, until either goes.
func (l *leader) serve(ctx context.Context, conn net.Conn) queue {
	q := make(queue, queued)
	rescue.Go(func() {
		defer conn.Close()
		for s := range q {
			_ = conn.SetWriteDeadline(time.Now().Add(l.pace.Silence))
			if _, err := conn.Write(s.frame); err != nil {
				return
			}
		}
	})
	rescue.Go(func() {
		_, _ = io.Copy(io.Discard, conn) // a listener says nothing
		_ = conn.Close()
		send(ctx, l.left, conn)
	})
	return q
}
