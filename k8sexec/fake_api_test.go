package k8sexec

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"podstarter/k8sexec/podapi"
)

// fakeAPI is an API server with one pod. Tests play the kubelet by changing the
// status, or through onPatch.
type fakeAPI struct {
	mu      sync.Mutex
	pod     *corev1.Pod
	history []watch.Event // of all versions since the beginning
	changed chan struct{} // closed and replaced at each change

	fail      func(verb string, n int) error // error of the n-th call of a verb, from 1
	calls     map[string]int
	rights    func(q podapi.Right) bool // what May answers; nil for no
	deny      func(patch string) error  // admission of a dry run
	neighbour string                    // another pod

	onPatch func(pod *corev1.Pod, changed map[string]bool) // in a goroutine of its own
}

var _ podapi.API = (*fakeAPI)(nil)

func newFakeAPI(pod *corev1.Pod) *fakeAPI {
	pod = pod.DeepCopy()
	pod.ResourceVersion = "1"
	return &fakeAPI{pod: pod, changed: make(chan struct{}), calls: make(map[string]int)}
}

func (f *fakeAPI) called(verb string) error {
	f.calls[verb]++
	if f.fail == nil {
		return nil
	}
	return f.fail(verb, f.calls[verb])
}

func (f *fakeAPI) count(verb string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[verb]
}

// snapshot returns the pod without counting a call.
func (f *fakeAPI) snapshot() *corev1.Pod {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pod.DeepCopy()
}

func (f *fakeAPI) Get(context.Context) (*corev1.Pod, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.called("get"); err != nil {
		return nil, err
	}
	return f.pod.DeepCopy(), nil
}

func (f *fakeAPI) Patch(_ context.Context, data []byte, dryRun bool) (*corev1.Pod, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.called("patch"); err != nil {
		return nil, err
	}
	if dryRun && f.deny != nil {
		if err := f.deny(string(data)); err != nil {
			return nil, err
		}
	}
	var p struct {
		Metadata struct{ Annotations map[string]string }
		Spec     struct {
			Containers            []struct{ Name, Image string }
			ActiveDeadlineSeconds *int64
		}
	}
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, err
	}
	pod := f.pod.DeepCopy()
	if pod.Annotations == nil {
		pod.Annotations = make(map[string]string)
	}
	for k, v := range p.Metadata.Annotations {
		pod.Annotations[k] = v
	}
	if p.Spec.ActiveDeadlineSeconds != nil {
		pod.Spec.ActiveDeadlineSeconds = p.Spec.ActiveDeadlineSeconds
	}
	changed := make(map[string]bool)
	for _, c := range p.Spec.Containers {
		spec := podapi.SpecOf(pod, c.Name)
		if spec == nil {
			return nil, fmt.Errorf("no container %s", c.Name)
		}
		if changed[c.Name] = spec.Image != c.Image; changed[c.Name] && pod.Generation > 0 {
			pod.Generation++
		}
		spec.Image = c.Image
	}
	if dryRun {
		return pod, nil
	}
	f.put(pod, watch.Modified)
	if f.onPatch != nil {
		go f.onPatch(pod.DeepCopy(), changed)
	}
	return pod.DeepCopy(), nil
}

func (f *fakeAPI) May(_ context.Context, q podapi.Right) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.called("may"); err != nil {
		return false, err
	}
	return f.rights != nil && f.rights(q), nil
}

func (f *fakeAPI) Neighbour(context.Context) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.neighbour, f.called("neighbour")
}

func (f *fakeAPI) TryPatchOf(_ context.Context, pod string, _ []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.called("patch of " + pod)
}

// put makes pod the newest version. The lock is held.
func (f *fakeAPI) put(pod *corev1.Pod, what watch.EventType) {
	version, _ := strconv.Atoi(f.pod.ResourceVersion)
	pod.ResourceVersion = strconv.Itoa(version + 1)
	f.pod = pod
	f.history = append(f.history, watch.Event{Type: what, Object: pod.DeepCopy()})
	close(f.changed)
	f.changed = make(chan struct{})
}

// status changes the status of the container, as the kubelet does.
func (f *fakeAPI) status(container string, change func(pod *corev1.Pod, s *corev1.ContainerStatus)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	pod := f.pod.DeepCopy()
	pod.Status.ObservedGeneration = pod.Generation
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Name == container {
			change(pod, &pod.Status.ContainerStatuses[i])
		}
	}
	f.put(pod, watch.Modified)
}

func (f *fakeAPI) Watch(ctx context.Context, version string) (watch.Interface, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.called("watch"); err != nil {
		return nil, err
	}
	from, err := strconv.Atoi(version)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	w := &fakeWatch{events: make(chan watch.Event), stop: stop}
	go func() {
		for {
			f.mu.Lock()
			var next []watch.Event
			for _, e := range f.history {
				if v, _ := strconv.Atoi(e.Object.(*corev1.Pod).ResourceVersion); v > from {
					next = append(next, e)
					from = v
				}
			}
			changed := f.changed
			f.mu.Unlock()
			for _, e := range next {
				select {
				case w.events <- e:
				case <-ctx.Done():
					return
				}
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}()
	return w, nil
}

// fakeWatch is a watch that may be stopped at any time.
type fakeWatch struct {
	events chan watch.Event
	stop   context.CancelFunc
}

func (w *fakeWatch) ResultChan() <-chan watch.Event { return w.events }
func (w *fakeWatch) Stop()                          { w.stop() }
