package k8sexec

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"podstarter/k8sexec/options"
	"podstarter/k8sexec/podapi"
	"podstarter/k8sexec/verdict"
	"podstarter/payload"
	"podstarter/wrapper/agent/agenttest"
)

func TestMain(m *testing.M) {
	agenttest.Main(m, agenttest.Role{Name: holderName, Run: holder})
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
			_, err := w.backend.Lease(context.Background(), payload.Wish{})
			v := verdictOf(t, err)
			if v.Blame != payload.Pilot || !strings.Contains(v.Message, tt.says) || !strings.Contains(v.Message, options.KnobPrivateDir) {
				t.Errorf("verdict %s", v)
			}
		})
	}
}

// If a starter dies in the middle of a binding, the next one must not rely on what was
// known before.
func TestStarterDiesDuringPatch(t *testing.T) {
	w := newWorld(t, func(o *options.Options) { o.ThrowawayTags = false })
	l, _ := w.bind("registry.example.com/u/a:1")
	// This is the state after a death between the two writes of attempt: the pod has
	// another image than the last one noted.
	known, err := readSlot(l.private, "payload")
	if err != nil {
		t.Fatal(err)
	}
	l.note(known.unbound())
	w.api.Mu.Lock()
	pod := w.api.Pod.DeepCopy()
	podapi.SpecOf(pod, "payload").Image = "registry.example.com/u/b:1"
	w.api.Put(pod, "MODIFIED")
	w.api.Mu.Unlock()
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

// A starter that is killed may leave a patch under way that takes effect after the next
// starter's. The next starter notices, and binds once more; if that happens again and
// again, it gives up.
func TestLatePatchOfDeadStarter(t *testing.T) {
	const image = "registry.example.com/u/a:1"
	for _, late := range []string{"registry.example.com/u/b:1", image} {
		for _, times := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s %d", late, times), func(t *testing.T) {
				w := newWorld(t, func(o *options.Options) { o.ThrowawayTags = false })
				patches := 0
				w.api.OnPatch = func(pod *corev1.Pod, changed map[string]bool) {
					w.api.Mu.Lock()
					patches++
					if patches <= times {
						pod = w.api.Pod.DeepCopy()
						podapi.SpecOf(pod, "payload").Image = late
						pod.Annotations[podapi.NonceAnnotation+"payload"] = "late"
						w.api.Put(pod, "MODIFIED")
						pod = pod.DeepCopy()
					}
					w.api.Mu.Unlock()
					w.boot(pod, "payload")
				}
				l := w.lease()
				c, err := l.Bind(context.Background(), payload.BindRequest{Activation: "job", Image: image, Owner: "ann"})
				if times > 1 {
					if v := verdictOf(t, err); v.Reason != verdict.ReasonOvertaken || v.Blame != payload.Site {
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
