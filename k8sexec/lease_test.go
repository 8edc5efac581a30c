package k8sexec

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"podstarter/payload"
)

// TestMain lets the test binary play a starter that holds a lease until it is
// killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("K8SEXEC_TEST_LEASE"); dir != "" {
		holdLease(dir)
	}
	os.Exit(m.Run())
}

func holdLease(dir string) {
	b := &Backend{opt: Options{Containers: []string{"payload"}, PrivateDir: dir}, timing: defaultTiming, life: context.Background()}
	b.log = discard()
	b.killUser = func(context.Context, int) error { return nil }
	if _, err := b.Lease(context.Background()); err != nil {
		os.Exit(1)
	}
	_, _ = os.Stdout.WriteString("leased\n")
	select {}
}

func TestLeaseDiesWithProcess(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Containers = []string{"payload"} })
	w.backend.timing.leaseWait = 5 * time.Second
	other := exec.Command(os.Args[0])
	other.Env = append(os.Environ(), "K8SEXEC_TEST_LEASE="+w.private)
	out, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "leased\n" {
		t.Fatalf("the other process said %q, %v", line, err)
	}
	short, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if l, err := w.backend.Lease(short); err == nil {
		release(t, l)
		t.Fatal("leased a container that another process holds")
	}
	if err := other.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	l, err := w.backend.Lease(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	release(t, l)
}

func TestPrivateDirectoryMustBeSafe(t *testing.T) {
	tests := []struct {
		name string
		make func(dir string) string
		says string
	}{
		{"missing", func(dir string) string { return filepath.Join(dir, "no") }, "no such file"},
		{"open to all", func(dir string) string { _ = os.Chmod(dir, 0o777); return dir }, "0777"},
		{"a file", func(dir string) string {
			file := filepath.Join(dir, "f")
			_ = os.WriteFile(file, nil, 0o600)
			return file
		}, "not a directory"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.backend.opt.PrivateDir = tt.make(t.TempDir())
			_, err := w.backend.Lease(context.Background())
			v := verdictOf(t, err)
			if v.Blame != payload.Pilot || !strings.Contains(v.Message, tt.says) || !strings.Contains(v.Message, knobPrivateDir) {
				t.Errorf("verdict %s", v)
			}
		})
	}
}

// What was known before a starter died in the middle of a binding must not be
// believed by the next one.
func TestStarterDiesDuringPatch(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.ThrowawayTags = false })
	l, _ := w.bind("registry.example.com/u/a:1")
	// As after a death between the two writes of attempt: the pod has another image
	// than the last that was noted.
	known, err := readSlot(l.private, "payload")
	if err != nil {
		t.Fatal(err)
	}
	l.note(known.unbound())
	w.api.mu.Lock()
	pod := w.api.pod.DeepCopy()
	specOf(pod, "payload").Image = "registry.example.com/u/b:1"
	w.api.put(pod, "MODIFIED")
	w.api.mu.Unlock()
	release(t, l)

	boots := w.boots
	l, _ = w.bind("registry.example.com/u/b:1")
	defer release(t, l)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.boots != boots+1 {
		t.Errorf("%d boots instead of one", w.boots-boots)
	}
}

// A starter that is killed may leave a patch under way that takes effect after the
// next starter's. The next one notices, and binds once more; were there no end to
// it, it would give up.
func TestLatePatchOfDeadStarter(t *testing.T) {
	const image = "registry.example.com/u/a:1"
	for _, late := range []string{"registry.example.com/u/b:1", image} {
		for _, times := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s %d", late, times), func(t *testing.T) {
				w := newWorld(t, func(o *Options) { o.ThrowawayTags = false })
				patches := 0
				w.api.onPatch = func(pod *corev1.Pod, changed map[string]bool) {
					w.api.mu.Lock()
					patches++
					if patches <= times {
						pod = w.api.pod.DeepCopy()
						specOf(pod, "payload").Image = late
						pod.Annotations[nonceAnnotation+"payload"] = "late"
						w.api.put(pod, "MODIFIED")
						pod = pod.DeepCopy()
					}
					w.api.mu.Unlock()
					w.boot(pod, "payload")
				}
				l := w.lease()
				c, err := l.Bind(context.Background(), payload.BindRequest{Activation: "job", Image: image, Owner: "ann"})
				if times > 1 {
					if v := verdictOf(t, err); v.Reason != reasonOvertaken || v.Blame != payload.Site {
						t.Errorf("verdict %s", v)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if c.Image() != image || w.spec("payload") != image {
					t.Errorf("bound %s, the pod has %s", c.Image(), w.spec("payload"))
				}
			})
		}
	}
}
