package jointpatch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podstarter/k8sexec/podapi"
	"podstarter/k8sexec/podapi/podapitest"
	"podstarter/k8sexec/privatedir"
)

const slots = 32

func world(t *testing.T) (*os.Root, *podapitest.Server) {
	t.Helper()
	dir, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pilot", UID: "uid", Generation: 1}}
	for i := range slots {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: name(i), Image: "old"})
	}
	return dir, podapitest.New(pod)
}

func name(i int) string { return fmt.Sprint("payload-", i) }

func binding(i int) podapi.Binding {
	return podapi.Binding{Container: name(i), Spec: "new", Nonce: fmt.Sprint("nonce", i)}
}

// held takes the lock, and returns when so many bindings wait for it.
func held(t *testing.T, dir *os.Root, n int, begin func()) *os.File {
	t.Helper()
	lock, err := takeLock(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	begin()
	late := time.After(5 * time.Second)
	for len(waiting(dir, nil, nil)) < n {
		select {
		case <-time.After(time.Millisecond): // no event tells it
		case <-late:
			lock.Close()
			t.Fatal("they never came")
		}
	}
	return lock
}

// TestHerd: the bindings of starters that wait need one patch, and each starter gets a pod with its own.
func TestHerd(t *testing.T) {
	dir, api := world(t)
	var all sync.WaitGroup
	lock := held(t, dir, slots, func() {
		for i := range slots {
			all.Go(func() {
				pod, err := Patch(t.Context(), dir, api, binding(i))
				if err != nil {
					t.Error(err)
					return
				}
				if got := podapi.SpecOf(pod, name(i)).Image; got != "new" || pod.Annotations[podapi.NonceAnnotation+name(i)] != binding(i).Nonce {
					t.Errorf("%s: image %s, annotations %v", name(i), got, pod.Annotations)
				}
			})
		}
	})
	lock.Close()
	all.Wait()
	if got := api.Count("patch"); got != 1 {
		t.Errorf("%d patches, want 1", got)
	}
	if left := waiting(dir, nil, nil); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestAlone: one starter makes one patch, and leaves nothing.
func TestAlone(t *testing.T) {
	dir, api := world(t)
	for i := range 2 {
		again := binding(1)
		again.Nonce = fmt.Sprint("again", i)
		if _, err := Patch(t.Context(), dir, api, binding(0), again); err != nil {
			t.Fatal(err)
		}
		if got := api.Count("patch"); got != i+1 {
			t.Errorf("%d patches, want %d", got, i+1)
		}
	}
	if left := waiting(dir, nil, nil); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestBothLists: one patch changes containers and sidecars, each in its list and in the order of that.
func TestBothLists(t *testing.T) {
	dir, api := world(t)
	always, spec := corev1.ContainerRestartPolicyAlways, &api.Pod.Spec
	spec.InitContainers, spec.Containers = slices.Clone(spec.Containers[:slots/2]), spec.Containers[slots/2:]
	for i := range spec.InitContainers {
		spec.InitContainers[i].RestartPolicy = &always
	}
	var all []podapi.Binding
	for _, i := range []int{slots - 1, 3, slots / 2, 0} {
		b := binding(i)
		b.Sidecar = i < slots/2
		all = append(all, b)
	}
	pod, err := Patch(t.Context(), dir, api, all...)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range all {
		if got := podapi.SpecOf(pod, b.Container).Image; got != b.Spec {
			t.Errorf("container %s has image %s, want %s", b.Container, got, b.Spec)
		}
	}
	if got := api.Count("patch"); got != 1 {
		t.Errorf("%d patches, want 1", got)
	}
}

// TestOrder: containers come in the pod's order, whatever the caller's. The pod is read once for that.
func TestOrder(t *testing.T) {
	dir, api := world(t)
	for i := range 2 {
		again := binding(9)
		again.Nonce = fmt.Sprint("again", i)
		if _, err := Patch(t.Context(), dir, api, binding(10), binding(2), again); err != nil {
			t.Fatal(err)
		}
		if got := api.Count("patch"); got != i+1 {
			t.Errorf("%d patches, want %d", got, i+1)
		}
	}
	if got := api.Count("get"); got != 1 {
		t.Errorf("%d GETs, want 1", got)
	}
}

// TestOneIsRefused: a binding that the API server refuses does not keep the others from theirs.
func TestOneIsRefused(t *testing.T) {
	dir, api := world(t)
	refused := apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), "pilot", nil)
	api.Refuse = func(patch string) error {
		if strings.Contains(patch, `"nonce3"`) {
			return refused
		}
		return nil
	}
	errs := make([]error, slots)
	var all sync.WaitGroup
	lock := held(t, dir, slots, func() {
		for i := range slots {
			all.Go(func() { _, errs[i] = Patch(t.Context(), dir, api, binding(i)) })
		}
	})
	lock.Close()
	all.Wait()
	for i, err := range errs {
		if want := i == 3; want != errors.Is(err, refused) || !want && err != nil {
			t.Errorf("%s: %v", name(i), err)
		}
	}
}

// TestNoAnswer: a call without an answer is not made for others a second time at once, and who
// waits for the lock gives up in time.
func TestNoAnswer(t *testing.T) {
	dir, api := world(t)
	api.Fail = func(verb string, _ int) error {
		if verb == "patch" {
			return apierrors.NewTimeoutError("busy", 1)
		}
		return nil
	}
	var all sync.WaitGroup
	errs := make([]error, 2)
	lock := held(t, dir, 2, func() {
		for i := range 2 {
			all.Go(func() { _, errs[i] = Patch(t.Context(), dir, api, binding(i)) })
		}
	})
	lock.Close()
	all.Wait()
	for i, err := range errs {
		if !podapi.IsPassing(err) {
			t.Errorf("%s: %v", name(i), err)
		}
	}
	if got := api.Count("patch"); got != 2 {
		t.Errorf("%d patches, want one for each", got)
	}
	lock, err := takeLock(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := Patch(ctx, dir, api, binding(0)); !errors.Is(err, ErrBusy) || !podapi.IsPassing(err) {
		t.Errorf("behind another: %v", err)
	}
}

// TestDeadStarter: what a starter that died has left goes with another's patch, until its container
// has another binding.
func TestDeadStarter(t *testing.T) {
	dir, api := world(t)
	dead := binding(0)
	if err := privatedir.WriteJSON(dir, fileOf(dead.Container), dead); err != nil {
		t.Fatal(err)
	}
	for i := range 2 { // the second knows that it is done
		if _, err := Patch(t.Context(), dir, api, binding(1+i)); err != nil {
			t.Fatal(err)
		}
	}
	next := dead
	next.Spec, next.Nonce = "next", "next"
	if _, err := Patch(t.Context(), dir, api, next); err != nil {
		t.Fatal(err)
	}
	pod, err := Patch(t.Context(), dir, api, binding(3))
	if err != nil {
		t.Fatal(err)
	}
	if got := podapi.SpecOf(pod, dead.Container).Image; got != "next" {
		t.Errorf("image %s", got)
	}
}

// TestStrangeFiles: what else lies in the directory is left alone, and what cannot be a
// binding is not carried out.
func TestStrangeFiles(t *testing.T) {
	dir, api := world(t)
	for file, text := range map[string]string{
		"patch.payload-1.json": `{"Container":"payload-2","Spec":"evil","Nonce":"n"}`,
		"patch.payload-3.json": `{"Container":"payload-3"`,
		"patch.payload-4.json": `{"Container":"payload-4","Spec":"","Nonce":"n"}`,
		"patch.payload-5":      `{"Container":"payload-5","Spec":"evil","Nonce":"n"}`,
		"slot.payload-6.json":  `{"Container":"payload-6","Spec":"evil","Nonce":"n"}`,
		podFile:                "no pod",
	} {
		if err := dir.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pod, err := Patch(t.Context(), dir, api, binding(0))
	if err != nil {
		t.Fatal(err)
	}
	var changed []string
	for _, c := range pod.Spec.Containers {
		if c.Image != "old" {
			changed = append(changed, c.Name)
		}
	}
	if diff := cmp.Diff([]string{name(0)}, changed); diff != "" {
		t.Errorf("changed (-want +got):\n%s", diff)
	}
}

func FuzzDonePod(f *testing.F) {
	f.Add([]byte("x"))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir, err := os.OpenRoot(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer dir.Close()
		if err := dir.WriteFile(podFile, data, 0o600); err != nil {
			t.Fatal(err)
		}
		_ = carriesOut(donePod(dir), []podapi.Binding{binding(0)})
	})
}
