package k8sexec

import (
	"bufio"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"podstarter/internal/buildinfo"
	"podstarter/payload"
)

// fakeWrapper listens like a wrapper and does only what the test tells it.
type fakeWrapper struct {
	nonce string
	left  chan struct{} // closed when told to leave
	swept chan struct{} // has a value for each sweep
	stop  func()
	tell  func(payload.Message) // all that are connected
	busy  atomic.Bool           // with remains of the last connection
	dirty atomic.Bool           // a sweep finds a process that stays
	stays atomic.Bool           // although it says that it leaves

	served atomic.Int32 // connections
}

// startWrapper puts a wrapper into the control directory of a container.
func startWrapper(t testing.TB, control, container, nonce, boot string, change ...func(*payload.Hello)) *fakeWrapper {
	t.Helper()
	dir := filepath.Join(control, container)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	temporary := filepath.Join(dir, "."+boot)
	l, err := net.Listen("unix", temporary)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := os.Rename(temporary, filepath.Join(dir, payload.SocketName)); err != nil {
		t.Fatal(err)
	}
	w := &fakeWrapper{nonce: nonce, left: make(chan struct{}), swept: make(chan struct{}, 8)}
	var mu sync.Mutex
	var open []net.Conn
	stopped := false
	w.stop = sync.OnceFunc(func() {
		mu.Lock()
		defer mu.Unlock()
		stopped = true
		_ = l.Close()
		for _, c := range open {
			_ = c.Close()
		}
	})
	t.Cleanup(w.stop)
	w.tell = func(m payload.Message) {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range open {
			if line, err := payload.EncodeLine(m); err == nil {
				_, _ = c.Write(line)
			}
		}
	}
	leave := sync.OnceFunc(func() { close(w.left); w.stop() })
	namespace, _ := os.Readlink("/proc/self/ns/pid")
	hello := payload.Hello{Protocol: payload.Protocol, Nonce: nonce, Boot: boot, PID: os.Getpid(), PIDNamespace: namespace,
		NoNewPrivs: true, Version: buildinfo.Version()}
	for _, c := range change {
		c(&hello)
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			late := stopped // it was accepted while the others were closed
			open = append(open, conn)
			mu.Unlock()
			if late {
				_ = conn.Close()
				return
			}
			go w.serve(conn, hello, leave)
		}
	}()
	return w
}

func (w *fakeWrapper) serve(conn net.Conn, hello payload.Hello, leave func()) {
	send := func(m payload.Message) {
		if line, err := payload.EncodeLine(m); err == nil {
			_, _ = conn.Write(line)
		}
	}
	if hello.Busy = w.busy.Load(); hello.Busy {
		send(payload.Message{Hello: &hello})
		_ = conn.Close()
		return
	}
	w.served.Add(1)
	send(payload.Message{Hello: &hello})
	for scanner := bufio.NewScanner(conn); scanner.Scan(); {
		r, err := payload.DecodeRequest(scanner.Bytes())
		if err != nil {
			return
		}
		if r.Op == payload.OpSweep {
			w.swept <- struct{}{}
			if w.dirty.Load() {
				send(payload.Message{ID: r.ID, Error: &payload.RequestError{Code: payload.CodeNotEmpty, Message: "process 7 stays"}})
				continue
			}
		}
		if r.Op == payload.OpStart {
			send(payload.Message{ID: r.ID, Started: &payload.Started{Activation: r.Spec.Activation, PID: 1}})
			continue
		}
		if r.Op == payload.OpUsage {
			send(payload.Message{ID: r.ID, Usage: &payload.ContainerUsage{}})
			continue
		}
		send(payload.Message{ID: r.ID, Done: true})
		if r.Op == payload.OpLeave && !w.stays.Load() {
			leave()
			return
		}
	}
}
