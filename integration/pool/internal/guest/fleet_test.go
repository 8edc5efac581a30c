package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// wires is a Switch that notes what it is told.
type wires struct {
	mu   sync.Mutex
	told []string
}

func (w *wires) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = append(w.told, fmt.Sprintf(format, args...))
}

func (w *wires) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.told...)
}

func (w *wires) Attach(name string, mac net.HardwareAddr) (*os.File, error) {
	w.note("attach %s %s", name, mac)
	return os.Open(os.DevNull)
}

func (w *wires) Detach(name string) error {
	w.note("detach %s", name)
	return nil
}

func (w *wires) Cut(name string, others ...string) error {
	w.note("cut %s from %s", name, strings.Join(others, " "))
	return nil
}

func (w *wires) Heal() { w.note("heal") }

func (*wires) DialContext(context.Context, string, string) (net.Conn, error) {
	return nil, errors.New("nobody listens")
}

// sleepers are two guests whose kernel does nothing until it is ended.
func sleepers(t *testing.T) Host {
	t.Helper()
	dir := shortDir(t)
	kernel := filepath.Join(dir, "kernel")
	if err := os.WriteFile(kernel, []byte("#!/bin/sh\nexec sleep 1000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	h := Host{Socket: filepath.Join(dir, "sock")}
	for i, name := range []string{"one", "two"} {
		h.Guests = append(h.Guests, Placed{Machine: Machine{
			System: System{Kernel: kernel}, Name: name, Dir: dir, Disk: filepath.Join(dir, "disk-"+name), MAC: fmt.Sprintf("52:54:00:12:00:0%d", i),
		}})
	}
	return h
}

// TestOrders: a guest is killed and booted again while the other runs; when the last one was killed by an order, it can be
// booted again.
func TestOrders(t *testing.T) {
	h, w := sleepers(t), &wires{}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx, w, io.Discard) }()
	limit, stop := context.WithTimeout(ctx, 20*time.Second)
	defer stop()
	for limit.Err() == nil && Order(limit, h.Socket, "heal") != nil {
		// The socket is there when Run listens.
		time.Sleep(5 * time.Millisecond)
	}
	for _, tc := range []struct {
		words   string
		refused string // part of the answer
	}{
		{"cut one", ""}, {"cut one two", ""}, {"heal", ""},
		{"boot one", "runs already"}, {"boot three", "no guest has the name"}, {"kill three", `no guest "three" runs`},
		{"kill one", ""}, {"kill one", `no guest "one" runs`}, {"boot one", ""},
		{"kill two", ""}, {"kill one", ""}, {"boot two", ""},
		{"", "no such order"}, {"cut", "no such order"}, {"heal one", "no such order"}, {"halt one", "no such order"},
	} {
		err := Order(limit, h.Socket, strings.Fields(tc.words)...)
		if (err == nil) != (tc.refused == "") || err != nil && !strings.Contains(err.Error(), tc.refused) {
			t.Errorf("%q: %v, want %q", tc.words, err, tc.refused)
		}
	}
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the end: %v", err)
		}
	case <-time.After(2 * HaltTime):
		t.Fatal("the guests do not end")
	}
	want := []string{
		"attach one 52:54:00:12:00:00", "attach two 52:54:00:12:00:01", "cut one from ", "cut one from two", "heal",
		"detach one", "attach one 52:54:00:12:00:00", "detach two", "detach one", "attach two 52:54:00:12:00:01", "detach two",
	}
	told := w.all()
	for len(told) > 2 && told[2] == "heal" {
		told = append(told[:2:2], told[3:]...) // those of the wait
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("what the network was told (-want +got):\n%s", diff)
	}
}

// TestGuestsEnd: the daemon ends with the last guest that ended by itself, and says why.
func TestGuestsEnd(t *testing.T) {
	h := sleepers(t)
	if err := os.WriteFile(h.Guests[0].System.Kernel, []byte("#!/bin/sh\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	err := h.Run(t.Context(), &wires{}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "the guest one has ended: exit status 3") || !strings.Contains(err.Error(), "the guest two") {
		t.Errorf("Run: %v", err)
	}
}
