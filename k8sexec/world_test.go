package k8sexec

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podstarter/k8sexec/audit"
	"podstarter/k8sexec/options"
	"podstarter/k8sexec/podapi"
	"podstarter/k8sexec/podapi/podapitest"
	"podstarter/k8sexec/podwatch"
	"podstarter/payload"
	"podstarter/wrapper/agent/agenttest"
)

// world is a pod, its API server and a backend on one machine.
type world struct {
	t       *testing.T
	api     *podapitest.Server
	backend *Backend
	control string
	private string
	execute string // the volume of sandboxes
	proc    string
	boots   int
	killed  []int // users whose processes the backend wanted to end
	mu      sync.Mutex
	current map[string]*fakeWrapper
	broken  atomic.Bool // whether a container that ends stays down
	over    bool        // whether the test has ended
}

const (
	testDefault = "registry.example.com/site/default:1"
	testDigest  = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
)

func testPod() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pilot-0", Namespace: "jobs", UID: "uid-1", Generation: 3}}
	pod.Spec.Containers = []corev1.Container{{Name: "pilot", Image: "pilot"}}
	for _, name := range []string{"payload", "payload-2"} {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: name, Image: testDefault})
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: name, ContainerID: "containerd://" + testID(0), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		})
	}
	pod.Status.ObservedGeneration = 3
	return pod
}

// testID is the ID of the n-th container.
func testID(n int) string { return fmt.Sprintf("%064x", n) }

func newWorld(t *testing.T, change func(*options.Options)) *world {
	t.Helper()
	w := &world{t: t, control: agenttest.PublicDir(t), private: sharedDir(t), execute: t.TempDir(), proc: t.TempDir(), current: make(map[string]*fakeWrapper)}
	opt := options.Options{
		PodName: "pilot-0", PodNamespace: "jobs", Containers: []string{"payload", "payload-2"}, BaseUID: 10001,
		ControlDir: w.control, PrivateDir: w.private, BindTimeout: 20 * time.Second, ThrowawayTags: true, DigestLifetime: time.Hour,
		KubernetesDir: "/none", Server: "https://127.0.0.1:1",
	}
	for _, err := range []error{os.Mkdir(w.sandboxes(), 0o755), os.Chmod(w.execute, 0o055)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(w.execute, 0o700) })
	if change != nil {
		change(&opt)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	b, err := New(ctx, opt)
	if err != nil {
		t.Fatal(err)
	}
	w.api = podapitest.New(testPod())
	w.backend = b
	b.connect = func() (podapi.API, error) { return w.api, nil }
	b.pod = &podwatch.Pod{Connect: func() (podapi.API, error) { return b.connect() }, Log: b.log,
		Times: podwatch.Times{Patience: 300 * time.Millisecond, Call: 5 * time.Second, Retry: time.Millisecond}}
	b.proc = w.proc
	b.self = audit.Identity{}                             // root, whoever runs the tests
	b.killUser = func(_ context.Context, uid int) error { // not on the machine of the tests
		w.mu.Lock()
		defer w.mu.Unlock()
		w.killed = append(w.killed, uid)
		return nil
	}
	b.root = os.Geteuid()
	b.timing = timing{
		leaseWait: 200 * time.Millisecond, leasePoll: time.Millisecond,
		watchDelay: 10 * time.Millisecond, stir: 20 * time.Millisecond, dismiss: time.Second, leave: 300 * time.Millisecond, kill: time.Second, idle: 300 * time.Millisecond, rest: time.Hour, nudge: 100 * time.Millisecond, silence: 300 * time.Millisecond,
		learn: 5 * time.Second, resize: 200 * time.Millisecond, giveBack: 200 * time.Millisecond, recall: 300 * time.Millisecond, ahead: 2 * time.Second, restock: time.Second, autopsy: time.Second, doubt: 50 * time.Millisecond, notice: 5 * time.Second, tick: 20 * time.Millisecond, progress: time.Second, check: time.Second,
	}
	w.api.OnPatch = w.restart
	t.Cleanup(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.over = true
	})
	return w
}

// sharedDir is a directory that may still be written to when the test has ended: what a
// starter does for others ends with its process.
func sharedDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "private")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { eventually(t, "the end of all writes", func() bool { return os.RemoveAll(dir) == nil }) })
	return dir
}

// sandboxes is EXECUTE, a directory in a volume whose root is closed to root.
func (w *world) sandboxes() string { return filepath.Join(w.execute, "jobs") }

// restart plays a fast kubelet: it makes the container anew, and the wrapper announces
// the nonce.
func (w *world) restart(pod *corev1.Pod, changed map[string]bool) {
	for name, c := range changed {
		if c {
			w.boot(pod, name)
		}
	}
}

func (w *world) wrapper(name string) *fakeWrapper {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.current[name]
}

// boot starts the container as the pod says, and returns the wrapper's boot.
func (w *world) boot(pod *corev1.Pod, name string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return ""
	}
	if old := w.current[name]; old != nil {
		old.stop()
	}
	w.boots++
	w.setContainer(w.boots)
	boot := fmt.Sprint("boot", w.boots)
	w.current[name] = startWrapper(w.t, w.control, name, pod.Annotations[podapi.NonceAnnotation+name], boot)
	// A wrapper that leaves is made anew from the pod as it is then.
	wrapper := w.current[name]
	go func() {
		<-wrapper.left
		w.mu.Lock()
		isLast := w.current[name] == wrapper
		w.mu.Unlock()
		if isLast && !w.broken.Load() {
			w.boot(w.api.Snapshot(), name)
		}
	}()
	return boot
}

// setContainer makes the test process, which plays the wrapper, a process of the
// n-th container.
func (w *world) setContainer(n int) { w.setContainerOf(os.Getpid(), testID(n)) }

// report lets the kubelet say that the n-th container runs, and its image.
func (w *world) report(container string, n int, imageID string) {
	w.api.Status(container, func(_ *corev1.Pod, s *corev1.ContainerStatus) {
		s.ContainerID, s.ImageID = "containerd://"+testID(n), imageID
		s.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	})
}

func (w *world) lease() *lease {
	w.t.Helper()
	l, err := w.backend.Lease(context.Background(), payload.Wish{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = l.Release(context.Background()) })
	return l.(*lease)
}

// bind leases, binds and returns both; the caller releases.
func (w *world) bind(image string) (*lease, *container) {
	w.t.Helper()
	l := w.lease()
	c, err := l.Bind(context.Background(), payload.BindRequest{Activation: "job", Image: image, Owner: "ann"})
	if err != nil {
		w.t.Fatalf("bind %q: %v", image, err)
	}
	return l, c.(*container)
}

// spec is the image of a container as it stands in the pod.
func (w *world) spec(container string) string {
	w.api.Mu.Lock()
	defer w.api.Mu.Unlock()
	return podapi.SpecOf(w.api.Pod, container).Image
}

// eventually waits for a condition that no event reports.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(5 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func release(t *testing.T, l payload.Lease) {
	t.Helper()
	if err := l.Release(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// waitingFor is a state in which the kubelet could not start the container.
func waitingFor(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
