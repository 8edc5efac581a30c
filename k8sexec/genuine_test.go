package k8sexec

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"podstarter/payload"
)

// TestGenuine: a wrapper whose process can be seen must run the pod's command.
func TestGenuine(t *testing.T) {
	tests := []struct {
		name, program string
		hello         func(*payload.Hello)
		want          string // part of what is said of a binding that fails
	}{
		{name: "the command", program: "/proc/slabinfo"},
		{name: "the command, since replaced", program: "/proc/slabinfo (deleted)"},
		{name: "a program of the image", program: "/stolen/wrapper", want: `runs "/stolen/wrapper" and not the pod's command /proc/slabinfo`},
		{name: "a process that is gone", want: "no such file"},
		{name: "in another PID namespace", hello: func(h *payload.Hello) { h.PIDNamespace = "pid:[1]" }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, nil)
			pod := w.goodPod()
			hellos := []func(*payload.Hello){}
			if tt.hello != nil {
				hellos = append(hellos, tt.hello)
			}
			startWrapper(t, w.control, "payload", "nonce", "boot", hellos...)
			dir := filepath.Join(w.proc, strconv.Itoa(os.Getpid()))
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if tt.program != "" {
				if err := os.Symlink(tt.program, filepath.Join(dir, "exe")); err != nil {
					t.Fatal(err)
				}
			}
			client, err := payload.Dial(context.Background(), payload.Options{Dir: filepath.Join(w.control, "payload"), Nonce: "nonce"})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			err = w.backend.genuine(client, "payload", programOf(pod, "payload"))
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

// TestBindRefusesAnImpostor: a binding to another program fails, and the starter sends
// it nothing.
func TestBindRefusesAnImpostor(t *testing.T) {
	w := newWorld(t, nil)
	pod := w.goodPod()
	w.api.Pod = pod
	dir := filepath.Join(w.proc, strconv.Itoa(os.Getpid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/stolen/wrapper", filepath.Join(dir, "exe")); err != nil {
		t.Fatal(err)
	}
	l, err := w.backend.Lease(context.Background(), payload.Wish{})
	if err != nil {
		t.Fatal(err)
	}
	defer release(t, l)
	_, err = l.Bind(context.Background(), payload.BindRequest{Image: "registry.example.com/u/tool:2", Report: func(string) {}})
	if err == nil || !strings.Contains(verdictOf(t, err).Message, "the image has put a program in the wrapper's place") {
		t.Errorf("error %v", err)
	}
}
