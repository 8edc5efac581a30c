// Package podapitest has an API server with one pod, for tests of those who talk to it.
package podapitest

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"podstarter/k8sexec/podapi"
)

// Server is an API server with one pod. Tests play the kubelet by changing the
// status, or through OnPatch.
type Server struct {
	Mu      sync.Mutex // guards Pod
	Pod     *corev1.Pod
	history []watch.Event // of all versions since the beginning
	changed chan struct{} // closed and replaced at each change

	Fail         func(verb string, n int) error // error of the n-th call of a verb, from 1
	Calls        map[string]int
	Rights       func(q podapi.Right) bool // what May answers; nil for no
	Deny         func(patch string) error  // admission of a dry run
	NeighbourPod string                    // another pod
	Rewrite      func(pod *corev1.Pod)     // what a webhook makes of a patched pod
	Refuse       func(patch string) error  // admission of a patch

	OnPatch func(pod *corev1.Pod, changed map[string]bool) // in a goroutine of its own
}

var _ podapi.API = (*Server)(nil)

// New makes the server of a copy of the pod.
func New(pod *corev1.Pod) *Server {
	pod = pod.DeepCopy()
	pod.ResourceVersion = "1"
	return &Server{Pod: pod, changed: make(chan struct{}), Calls: make(map[string]int)}
}

func (f *Server) called(verb string) error {
	f.Calls[verb]++
	if f.Fail == nil {
		return nil
	}
	return f.Fail(verb, f.Calls[verb])
}

// Count says how often a verb was called.
func (f *Server) Count(verb string) int {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	return f.Calls[verb]
}

// Snapshot returns the pod without counting a call.
func (f *Server) Snapshot() *corev1.Pod {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	return f.Pod.DeepCopy()
}

// Get implements podapi.API.
func (f *Server) Get(context.Context) (*corev1.Pod, error) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if err := f.called("get"); err != nil {
		return nil, err
	}
	return f.Pod.DeepCopy(), nil
}

// errOrder is the answer to a patch with containers in another order than the pod's: a
// strategic merge patch takes its own order over (apimachinery
// pkg/util/strategicpatch/patch.go:normalizeElementOrder), which no update may change.
var errOrder = &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
	Message: "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`"}}

// errNewContainer is the answer to a patch with a container that the list does not have.
var errNewContainer = &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
	Message: "spec.containers: Forbidden: pod updates may not add or remove containers"}}

// Patch implements podapi.API for the fields that the product changes.
func (f *Server) Patch(_ context.Context, data []byte, dryRun bool) (*corev1.Pod, error) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if err := f.called("patch"); err != nil {
		return nil, err
	}
	if dryRun && f.Deny != nil {
		if err := f.Deny(string(data)); err != nil {
			return nil, err
		}
	}
	if f.Refuse != nil {
		if err := f.Refuse(string(data)); err != nil {
			return nil, err
		}
	}
	var p struct {
		Metadata struct{ Annotations map[string]string }
		Spec     struct {
			Containers, InitContainers []struct{ Name, Image string }
			ActiveDeadlineSeconds      *int64
		}
	}
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, err
	}
	pod := f.Pod.DeepCopy()
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
	if err := cmp.Or(merge(pod, pod.Spec.Containers, p.Spec.Containers, changed), merge(pod, pod.Spec.InitContainers, p.Spec.InitContainers, changed)); err != nil {
		return nil, err
	}
	if f.Rewrite != nil {
		f.Rewrite(pod)
	}
	if dryRun {
		return pod, nil
	}
	f.Put(pod, watch.Modified)
	if f.OnPatch != nil {
		go f.OnPatch(pod.DeepCopy(), changed)
	}
	return pod.DeepCopy(), nil
}

// Resize changes limits. The tests' kubelet is told by OnPatch, as of no image.
func (f *Server) Resize(_ context.Context, data []byte, dryRun bool) (*corev1.Pod, error) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if err := f.called("resize"); err != nil {
		return nil, err
	}
	type sized struct {
		Name      string
		Resources corev1.ResourceRequirements
	}
	var p struct {
		Spec struct{ Containers, InitContainers []sized }
	}
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, err
	}
	pod := f.Pod.DeepCopy()
	for _, c := range slices.Concat(p.Spec.Containers, p.Spec.InitContainers) {
		spec := podapi.SpecOf(pod, c.Name)
		if spec == nil {
			return nil, errNewContainer
		}
		maps.Copy(spec.Resources.Limits, c.Resources.Limits)
	}
	if dryRun {
		return pod, nil
	}
	f.Put(pod, watch.Modified)
	return pod.DeepCopy(), nil
}

// merge puts the images of a patch into one of the pod's lists of containers. It notes
// which of them it changed.
func merge(pod *corev1.Pod, list []corev1.Container, patch []struct{ Name, Image string }, changed map[string]bool) error {
	last := -1
	for _, c := range patch {
		at := slices.IndexFunc(list, func(one corev1.Container) bool { return one.Name == c.Name })
		switch {
		case at < 0:
			return errNewContainer
		case at < last:
			return errOrder
		}
		last = at
		if changed[c.Name] = list[at].Image != c.Image; changed[c.Name] && pod.Generation > 0 {
			pod.Generation++
		}
		list[at].Image = c.Image
	}
	return nil
}

// May implements podapi.API.
func (f *Server) May(_ context.Context, q podapi.Right) (bool, error) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if err := f.called("may"); err != nil {
		return false, err
	}
	return f.Rights != nil && f.Rights(q), nil
}

// Neighbour implements podapi.API.
func (f *Server) Neighbour(context.Context) (string, error) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	return f.NeighbourPod, f.called("neighbour")
}

// TryPatchOf implements podapi.API.
func (f *Server) TryPatchOf(_ context.Context, pod string, _ []byte) error {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	return f.called("patch of " + pod)
}

// Put makes pod the newest version. Mu is held.
func (f *Server) Put(pod *corev1.Pod, what watch.EventType) {
	version, _ := strconv.Atoi(f.Pod.ResourceVersion)
	pod.ResourceVersion = strconv.Itoa(version + 1)
	f.Pod = pod
	f.history = append(f.history, watch.Event{Type: what, Object: pod.DeepCopy()})
	close(f.changed)
	f.changed = make(chan struct{})
}

// Status changes the status of the container, as the kubelet does.
func (f *Server) Status(container string, change func(pod *corev1.Pod, s *corev1.ContainerStatus)) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	pod := f.Pod.DeepCopy()
	pod.Status.ObservedGeneration = pod.Generation
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			if statuses[i].Name == container {
				change(pod, &statuses[i])
			}
		}
	}
	f.Put(pod, watch.Modified)
}

// Watch implements podapi.API.
func (f *Server) Watch(ctx context.Context, version string) (watch.Interface, error) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
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
			f.Mu.Lock()
			var next []watch.Event
			for _, e := range f.history {
				if v, _ := strconv.Atoi(e.Object.(*corev1.Pod).ResourceVersion); v > from {
					next = append(next, e)
					from = v
				}
			}
			changed := f.changed
			f.Mu.Unlock()
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
