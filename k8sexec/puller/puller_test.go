package puller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"podstarter/k8sexec/imageref"
	"podstarter/k8sexec/options"
	"podstarter/k8sexec/podapi"
	"podstarter/k8sexec/podapi/podapitest"
	"podstarter/k8sexec/podwatch"
	"podstarter/k8sexec/verdict"
)

const (
	testBase   = "registry.example.com/site/base:1"
	testImage  = "registry.example.com/u/tool:2"
	testDigest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
)

// world has some pullers, each with an API server of its own, on node-1.
type world struct {
	*Pullers
	t    *testing.T
	pods map[string]*podapitest.Server
}

func newWorld(t *testing.T, pods ...string) *world {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil { //nolint:gosec // a directory
		t.Fatal(err)
	}
	w := &world{t: t, pods: make(map[string]*podapitest.Server)}
	w.Pullers = &Pullers{
		Dir: dir, Timeout: 10 * time.Second, Log: slog.New(slog.DiscardHandler),
		Times: podwatch.Times{Patience: 100 * time.Millisecond, Call: time.Second, Retry: time.Millisecond},
		Pace:  Pace{Poll: time.Millisecond, Occupied: 5 * time.Millisecond, Progress: 10 * time.Millisecond, Stir: time.Hour, Doubt: time.Second},
		Connect: func(pod string) (podapi.API, error) {
			return w.pods[pod], nil
		},
	}
	for i, name := range pods {
		w.Names = append(w.Names, options.ParsePuller(name))
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(fmt.Sprint("uid-", i)), Generation: 1}}
		pod.Spec.NodeName = "node-1"
		pod.Spec.Containers = []corev1.Container{{Name: options.PullerContainer, Image: testBase}}
		pod.Status = corev1.PodStatus{ObservedGeneration: 1, ContainerStatuses: []corev1.ContainerStatus{{Name: options.PullerContainer}}}
		running(&pod.Status.ContainerStatuses[0], 0, testBase)
		w.pods[name] = podapitest.New(pod)
	}
	return w
}

// running lets the status show the n-th container.
func running(s *corev1.ContainerStatus, n int, image string) {
	s.ContainerID, s.Image = fmt.Sprintf("containerd://%064x", n), image
	name, _, _ := strings.Cut(strings.TrimPrefix(image, "registry.example.com/"), ":")
	s.ImageID = "registry.example.com/" + name + "@" + testDigest
	s.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
}

// pulls plays a kubelet that has each image in the puller's container at once.
func (w *world) pulls(pod string) {
	n := 0
	w.pods[pod].OnPatch = func(p *corev1.Pod, changed map[string]bool) {
		if changed[options.PullerContainer] {
			n++
			w.shows(pod, func(s *corev1.ContainerStatus) { running(s, n, p.Spec.Containers[0].Image) })
		}
	}
}

// shows changes the status of a puller's container.
func (w *world) shows(pod string, change func(*corev1.ContainerStatus)) {
	w.pods[pod].Status(options.PullerContainer, func(_ *corev1.Pod, s *corev1.ContainerStatus) { change(s) })
}

func (w *world) spec(pod string) string {
	return podapi.SpecOf(w.pods[pod].Snapshot(), options.PullerContainer).Image
}

func request(t *testing.T, text string) Request {
	t.Helper()
	image, err := imageref.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return Request{Image: image, Spec: image.String(), Report: func(string) {}, There: func() bool { return false },
		Node: func(context.Context) (string, error) { return "node-1", nil }}
}

func failureOf(t *testing.T, err error) *verdict.Failure {
	t.Helper()
	f := (*verdict.Failure)(nil)
	if !errors.As(err, &f) {
		t.Fatalf("no failure but %T: %v", err, err)
	}
	return f
}

func TestFetch(t *testing.T) {
	w := newWorld(t, "one", "two")
	w.pulls("one")
	hold, err := w.Fetch(t.Context(), request(t, testImage))
	if err != nil {
		t.Fatal(err)
	}
	if !hold.Started || hold.Digest != testDigest || w.spec("one") != testImage {
		t.Errorf("hold %+v, puller has %s", hold, w.spec("one"))
	}
	// While the first is held, another job takes the second.
	w.pulls("two")
	other, err := w.Fetch(t.Context(), request(t, "registry.example.com/u/other:1"))
	if err != nil {
		t.Fatal(err)
	}
	if got := w.spec("two"); got != "registry.example.com/u/other:1" {
		t.Errorf("the other puller has %s", got)
	}
	hold.Release()
	hold.Release()
	other.Release()
	// The image is in the first puller: nothing has to be asked or patched for it.
	again, err := w.Fetch(t.Context(), request(t, testImage))
	if err != nil || !again.Started || w.spec("one") != testImage {
		t.Fatalf("once more: %v, puller has %s", err, w.spec("one"))
	}
	again.Release()
	if one, two := w.pods["one"].Count("patch"), w.pods["two"].Count("patch"); one != 2 || two != 1 {
		t.Errorf("%d patches of the first puller and %d of the second", one, two)
	}
}

// TestFetchFailures: what the kubelet says of an image is about the image, and whatever
// happens once it is there is not.
func TestFetchFailures(t *testing.T) {
	for _, tt := range []struct {
		name, reason, message string
		want                  string // of the failure; empty for none
	}{
		{"not found", "ErrImagePull", `failed to resolve reference "` + testImage + `": not found`, "ErrImagePull"},
		{"back-off", "ImagePullBackOff", `Back-off pulling image "` + testImage + `": ErrImagePull: not found`, "ImagePullBackOff"},
		{"cannot be started", "CreateContainerError", "no command specified", ""},
		{"cannot be run", "RunContainerError", "not a directory", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, "one")
			w.pods["one"].OnPatch = func(*corev1.Pod, map[string]bool) {
				w.shows("one", func(s *corev1.ContainerStatus) {
					s.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: tt.reason, Message: tt.message}}
				})
			}
			hold, err := w.Fetch(t.Context(), request(t, testImage))
			if tt.want == "" {
				if err != nil || hold.Started {
					t.Fatalf("hold %+v, error %v", hold, err)
				}
				hold.Release()
				return
			}
			if f := failureOf(t, err); f.Reason != tt.want || f.Image != testImage || f.Spec != testImage {
				t.Errorf("failure %+v", f)
			}
			// The kubelet is not left to try it again, and the puller is free.
			if got := w.spec("one"); got != testBase {
				t.Errorf("the puller has %s", got)
			}
			// What the kubelet says of the image may come late.
			n := 0
			w.pods["one"].OnPatch = func(p *corev1.Pod, _ map[string]bool) {
				n++
				w.shows("one", func(s *corev1.ContainerStatus) {
					s.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: tt.reason, Message: "once more: " + tt.message}}
				})
				w.shows("one", func(s *corev1.ContainerStatus) { running(s, n, p.Spec.Containers[0].Image) })
			}
			hold, err = w.Fetch(t.Context(), request(t, "registry.example.com/u/good:1"))
			if err != nil {
				t.Fatal(err)
			}
			hold.Release()
		})
	}
}

// TestUnusable: a puller's own troubles never become the job's.
func TestUnusable(t *testing.T) {
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "one")
	denied := func(words string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: words}}
	}
	for _, tt := range []struct {
		name   string
		change func(*corev1.Pod)
		fail   error
		says   string
	}{
		{name: "gone", fail: gone, says: "not found"},
		{name: "no right", fail: denied(`pods "one" is forbidden: User "system:serviceaccount:x:y" cannot patch resource "pods"`), says: "cannot patch"},
		{name: "the pilots' policy", fail: denied(`ValidatingAdmissionPolicy 'podstarter-pilot' with binding 'podstarter-pilot' denied request: a pilot may patch its own pod alone`), says: "its own pod alone"},
		{name: "another node", change: func(p *corev1.Pod) { p.Spec.NodeName = "node-2" }, says: "on node node-2 and the pilot on node node-1"},
		{name: "no node", change: func(p *corev1.Pod) { p.Spec.NodeName = "" }, says: "no node yet"},
		{name: "ending", change: func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Now()} }, says: "ending"},
		{name: "ended", change: func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, says: "ending"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, "one")
			if tt.change != nil {
				tt.change(w.pods["one"].Pod)
			}
			w.pods["one"].Fail = func(string, int) error { return tt.fail }
			_, err := w.Fetch(t.Context(), request(t, testImage))
			if !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), "puller one") {
				t.Errorf("error %v", err)
			}
			// With a second one the job does not notice.
			both := newWorld(t, "one", "two")
			both.pods["one"] = w.pods["one"]
			both.pulls("two")
			hold, err := both.Fetch(t.Context(), request(t, testImage))
			if err != nil {
				t.Fatal(err)
			}
			hold.Release()
		})
	}
}

// TestDenied: what a policy of the cluster says about the image is for the user.
func TestDenied(t *testing.T) {
	w := newWorld(t, "one")
	w.pods["one"].Fail = func(verb string, _ int) error {
		if verb != "patch" {
			return nil
		}
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
			Message: `ValidatingAdmissionPolicy 'podstarter-images' denied request: image ` + testImage + ` is not one of those`}}
	}
	_, err := w.Fetch(t.Context(), request(t, testImage))
	if j := verdict.Judge(*failureOf(t, err)); j.Class != verdict.ToUser || j.Subcode != verdict.SubcodePolicy {
		t.Errorf("judgement %+v", j)
	}
}

// TestOneFetchesForAll: of several jobs that want the same image, one fetches it.
func TestOneFetchesForAll(t *testing.T) {
	w := newWorld(t, "one", "two")
	var mu sync.Mutex
	there := false
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			req := request(t, testImage)
			req.There = func() bool {
				mu.Lock()
				defer mu.Unlock()
				return there
			}
			hold, err := w.Fetch(t.Context(), req)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			there = true
			mu.Unlock()
			hold.Release()
		})
	}
	eventually(t, "the patch", func() bool { return w.pods["one"].Count("watch") == 1 })
	w.shows("one", func(s *corev1.ContainerStatus) { running(s, 1, testImage) })
	all.Wait()
	if one, two := w.pods["one"].Count("patch"), w.pods["two"].Count("patch"); one != 1 || two != 0 {
		t.Errorf("%d patches of the first puller and %d of the second", one, two)
	}
}

// TestHung: a puller whose pull hangs is left alone until the kubelet is done with it.
func TestHung(t *testing.T) {
	w := newWorld(t, "one", "two")
	w.Timeout = 50 * time.Millisecond
	_, err := w.Fetch(t.Context(), request(t, testImage))
	if f := failureOf(t, err); f.Origin != verdict.FromClock || f.Reason != verdict.ReasonTimeout {
		t.Errorf("failure %+v", f)
	}
	w.Timeout = 10 * time.Second
	w.pulls("two")
	hold, err := w.Fetch(t.Context(), request(t, "registry.example.com/u/a:1"))
	if err != nil || w.spec("two") != "registry.example.com/u/a:1" {
		t.Fatalf("the second puller has %s: %v", w.spec("two"), err)
	}
	// The second is taken, the first hangs: the third job waits, and says for what.
	told := make(chan string, 64)
	req := request(t, "registry.example.com/u/b:1")
	req.Report = func(text string) {
		select {
		case told <- text:
		default:
		}
	}
	got := make(chan error)
	go func() {
		hold, err := w.Fetch(t.Context(), req)
		if err == nil {
			hold.Release()
		}
		got <- err
	}()
	if text := <-told; !strings.Contains(text, "for a puller to fetch registry.example.com/u/b:1") ||
		!strings.Contains(text, "one fetches "+testImage) {
		t.Errorf("told %q", text)
	}
	// The hung pull ends.
	w.pulls("one")
	w.shows("one", func(s *corev1.ContainerStatus) { running(s, 9, testImage) })
	if err := <-got; err != nil {
		t.Error(err)
	}
	if spec := w.spec("one"); spec != "registry.example.com/u/b:1" {
		t.Errorf("the first puller has %s", spec)
	}
	hold.Release()
}

// TestGivenUp: a job that is removed leaves the kubelet at its pull.
func TestGivenUp(t *testing.T) {
	w := newWorld(t, "one", "two")
	ctx, cancel := context.WithCancelCause(t.Context())
	removed := errors.New("removed")
	done := make(chan error)
	go func() {
		_, err := w.Fetch(ctx, request(t, testImage))
		done <- err
	}()
	eventually(t, "the watch", func() bool { return w.pods["one"].Count("watch") == 1 })
	cancel(removed)
	if err := <-done; !errors.Is(err, removed) {
		t.Errorf("error %v", err)
	}
	w.pulls("two")
	hold, err := w.Fetch(t.Context(), request(t, "registry.example.com/u/a:1"))
	if err != nil {
		t.Fatal(err)
	}
	hold.Release()
	if spec := w.spec("two"); spec != "registry.example.com/u/a:1" {
		t.Errorf("the second puller has %s", spec)
	}
}

func FuzzState(f *testing.F) {
	f.Add([]byte(`{"pod_uid":"u","spec":"a","fetching":"b"}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, data []byte) { decodeState(data) })
}

// eventually waits for a condition that no event reports.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(5 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
