package status

import (
	"container/list"
	"net"
	"net/http"
	"sync"
)

// crowd is a listener of which the oldest connection is closed if there are too
// many. One that would wait instead could be kept from the kubelet and Prometheus by
// connections that say nothing.
type crowd struct {
	net.Listener
	most int

	mu   sync.Mutex
	open list.List // of net.Conn, the oldest first
}

// Accept implements net.Listener.
func (c *crowd) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open.Len() >= c.most {
		if oldest, ok := c.open.Remove(c.open.Front()).(net.Conn); ok {
			_ = oldest.Close()
		}
	}
	return &visitor{Conn: conn, crowd: c, place: c.open.PushBack(conn)}, nil
}

// visitor is a connection.
type visitor struct {
	net.Conn
	crowd *crowd
	place *list.Element
}

// Close implements net.Conn.
func (v *visitor) Close() error {
	v.crowd.mu.Lock()
	defer v.crowd.mu.Unlock()
	v.crowd.open.Remove(v.place) // does nothing if it is not there any more
	return v.Conn.Close()
}

// few lets a handler write only so many answers at a time: each is as large as what
// the last round saw.
func few(most int, next http.HandlerFunc) http.HandlerFunc {
	turns := make(chan struct{}, most)
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case turns <- struct{}{}:
			defer func() { <-turns }()
			next(w, r)
		default:
			plain(w, http.StatusServiceUnavailable, []byte("Too many ask at a time; try again in a moment.\n"))
		}
	}
}
