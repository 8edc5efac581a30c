package podwatch

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"podstarter/k8sexec/verdict"
)

// recording is a pod as a real API server showed it, version by version.
func recording(t testing.TB, name string) []*corev1.Pod {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "testdata", "k8s", "pods", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var pods []*corev1.Pod
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		pod := new(corev1.Pod)
		if err := json.Unmarshal(lines.Bytes(), pod); err != nil {
			t.Fatal(err)
		}
		pods = append(pods, pod)
	}
	return pods
}

// changeIn is the patch between the first two states of a recording.
func changeIn(pods []*corev1.Pod) Change {
	return Change{Container: "payload", Spec: pods[1].Spec.Containers[0].Image, Before: pods[0].Spec.Containers[0].Image, Failed: true}
}

// TestTrackRecordings plays what a real kubelet made of a patch. The first state
// is the one before the patch, the second the one the patch returned.
func TestTrackRecordings(t *testing.T) {
	tests := []struct {
		name   string
		reason string // of the first failure; empty for none
		says   string
		index  int // of the state that shows it
		final  bool
	}{
		{name: "notfound-tag", reason: "ErrImagePull", says: "nosuchtag: not found", index: 3, final: true},
		// After the failure of another image, which the kubelet's status for the new
		// image still shows.
		{name: "notfound-repo", reason: "ErrImagePull", says: "kx/nosuchrepo:1: not found", index: 3, final: true},
		{name: "forbidden", reason: "ErrImagePull", says: "403 Forbidden", index: 3, final: true},
		{name: "platform-single"},
		{name: "good"},
		{name: "good2"},
		{name: "mountfile", reason: "RunContainerError", says: "not a directory", index: 3, final: true},
		{name: "broken", reason: "ErrImagePull", says: "500 Internal Server Error", index: 3},
		// Two containers ended, the first may have been an accident.
		{name: "crash", reason: "CrashLoopBackOff", says: "back-off 10s", index: 4},
		{name: "hang"},
		{name: "afterhang", reason: verdict.ReasonPodDeleted, index: 2, final: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pods := recording(t, tt.name)
			tr := Track(changeIn(pods), pods[1])
			for i, pod := range pods[1:] {
				f := tr.Look(pod)
				if f == nil {
					continue
				}
				f.Image, f.Spec = tr.spec, tr.spec
				if f.Reason != tt.reason || !strings.Contains(f.Message, tt.says) || i+1 != tt.index {
					t.Fatalf("state %d: %s: %s; want %s: %s at %d", i+1, f.Reason, f.Message, tt.reason, tt.says, tt.index)
				}
				if got := verdict.Judge(*f).IsFinal(time.Now()); got != tt.final {
					t.Errorf("final %v, want %v", got, tt.final)
				}
				return
			}
			if tt.reason != "" {
				t.Errorf("no failure seen, want %s: %s", tt.reason, tt.says)
			}
		})
	}
}

// A wrapper that ends again and again is a failure in the end.
func TestTrackCrashes(t *testing.T) {
	pods := recording(t, "crash")
	tr := Track(changeIn(pods), pods[1])
	var last *verdict.Failure
	for _, pod := range pods[1:] {
		if f := tr.Look(pod); f != nil {
			last = f
		}
	}
	if last == nil || last.Tries != 2 || !verdict.Judge(*last).IsFinal(time.Now()) || verdict.Judge(*last).Class != verdict.ToPilot {
		t.Errorf("last failure %+v", last)
	}
}

func TestDescribe(t *testing.T) {
	tests := []struct {
		name string
		want string
	}{
		{"hang", "probably pulling"},
		{"afterhang", "not taken up the change"},
		{"good", "running"},
		{"notfound-tag", "waiting, ErrImagePull: rpc error"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pods := recording(t, tt.name)
			tr := Track(changeIn(pods), pods[1])
			var got string
			for _, pod := range pods[1:] {
				tr.Look(pod)
				got = tr.Describe(pod)
			}
			if !strings.Contains(got, tt.want) {
				t.Errorf("described as %q, want %q in it", got, tt.want)
			}
		})
	}
}

// One container's pull hangs, and another container of the pod gets an image that the node has.
// The kubelet looks at the second patch only when the pull has ended; until then the status shows
// both old containers as running, though the first has ended. The recording: before the first
// patch, patched, taken up (2), patched for the second container (3), then the pull's end.
func TestTrackBehindAnotherPull(t *testing.T) {
	pods := recording(t, "behind")
	first := Track(changeIn(pods), pods[1])
	second := Track(Change{Container: "payload-2", Spec: pods[3].Spec.Containers[1].Image, Before: pods[2].Spec.Containers[1].Image, Failed: true}, pods[3])
	var got [][2]string
	for i, pod := range pods[1:6] {
		row := [2]string{"-", "-"}
		for j, tr := range []*Tracker{first, second} {
			if j == 1 && i+1 < 3 {
				continue
			}
			f := tr.Look(pod)
			switch row[j] = tr.Describe(pod); {
			case f != nil:
				row[j] = f.Reason
			case strings.Contains(row[j], "has not taken up"):
				row[j] = "unseen"
			case row[j] == pulling:
				row[j] = "pulling"
			}
		}
		got = append(got, row)
	}
	want := [][2]string{{"unseen", "-"}, {"pulling", "-"}, {"pulling", "unseen"}, {"ErrImagePull", "pulling"}, {"ImagePullBackOff", "running"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what the two bindings see (-want +got):\n%s", diff)
	}
}

// The same plain image, patched again while the kubelet still fails to pull it,
// leaves the spec as it was: what the status says is about this image.
func TestTrackUnchangedSpec(t *testing.T) {
	pods := recording(t, "notfound-tag")
	failing := pods[len(pods)-1]
	image := failing.Spec.Containers[0].Image
	tr := Track(Change{Container: "payload", Spec: image, Before: image, Same: true, Failed: true}, failing)
	if f := tr.Look(failing); f == nil || f.Reason != "ErrImagePull" {
		t.Errorf("failure %v", f)
	}
}

// If the API server does not count generations, the other rules must be enough.
func TestTrackWithoutGenerations(t *testing.T) {
	pods := recording(t, "notfound-repo")
	for _, pod := range pods {
		pod.Generation, pod.Status.ObservedGeneration = 0, 0
	}
	tr := Track(changeIn(pods), pods[1])
	for i, pod := range pods[1:] {
		f := tr.Look(pod)
		if isLast := i == len(pods)-2; (f != nil) != isLast {
			t.Errorf("state %d: failure %v", i+1, f)
		}
	}
}

func FuzzTrack(f *testing.F) {
	for _, name := range []string{"notfound-repo", "mountfile", "crash", "broken", "afterhang"} {
		data, err := os.ReadFile(filepath.Join("..", "..", "testdata", "k8s", "pods", name+".jsonl"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, "registry.example.com/u/a:1", int64(3))
	}
	f.Fuzz(func(t *testing.T, data []byte, image string, generation int64) {
		var tr *Tracker
		for line := range bytes.Lines(data) {
			pod := new(corev1.Pod)
			if json.Unmarshal(line, pod) != nil {
				continue
			}
			if tr == nil {
				pod.Generation = generation
				tr = Track(Change{Container: "payload", Spec: image, Before: image + "0", Failed: true}, pod)
			}
			if failed := tr.Look(pod); failed != nil {
				failed.Image, failed.Spec = image, image
				j := verdict.Judge(*failed)
				v := j.Verdict()
				if strings.ContainsAny(v.Message, "\n\r") {
					t.Errorf("verdict of several lines: %q", v.Message)
				}
				j.IsFinal(time.Now())
			}
			if tr.Describe(pod) == "" {
				t.Error("no description")
			}
		}
	})
}

// A failure to run the image before, in a container with another ID than the one
// whose failure stood there at the patch, is not this image's; one that comes
// again is.
func TestTrackRunFailureOfBefore(t *testing.T) {
	const words = "failed to create task: not a directory, in container "
	pods := recording(t, "good")
	now := time.Now()
	state := func(id string) *corev1.Pod {
		pod := pods[len(pods)-1].DeepCopy()
		pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "RunContainerError", Message: words + id}}
		return pod
	}
	begin := func() *Tracker {
		tr := Track(Change{Container: "payload", Spec: "registry.example.com/u/new:1", Before: "registry.example.com/u/old:1", Failed: true,
			Doubt: 12 * time.Second}, state("1"))
		tr.now = func() time.Time { return now }
		return tr
	}
	tr := begin()
	for _, id := range []string{"1", "2", "2"} {
		if f := tr.Look(state(id)); f != nil {
			t.Fatalf("the failure in container %s is of the image before: %v", id, f)
		}
	}
	if f := tr.Look(state("3")); f == nil {
		t.Error("a second attempt that fails is this image's")
	}
	tr = begin()
	tr.Look(state("2"))
	now = now.Add(13 * time.Second)
	if f := tr.Look(state("2")); f == nil {
		t.Error("a failure that stands for long is this image's")
	}
}

// TestTrackFailsAgain: an image that failed and was taken back may be asked for again. What
// the status says of it, word for word as before, is about this image.
func TestTrackFailsAgain(t *testing.T) {
	const image = "registry.example.com/u/misspelt:1"
	pod := recording(t, "good")[0].DeepCopy()
	pod.Status.ObservedGeneration = pod.Generation
	pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull",
		Message: `failed to pull and unpack image "` + image + `": not found`}}
	tr := Track(Change{Container: "payload", Spec: image, Before: "registry.example.com/site/default:1", Withdrawn: image, Failed: true}, pod)
	if f := tr.Look(pod); f == nil || f.Reason != "ErrImagePull" {
		t.Errorf("failure %v", f)
	}
}

// TestTrackRanAndWaits: a container of an earlier patch that is seen running does not hide
// the failure that follows.
func TestTrackRanAndWaits(t *testing.T) {
	pod := recording(t, "good")[0].DeepCopy()
	pod.Status.ObservedGeneration = pod.Generation
	tr := Track(Change{Container: "payload", Spec: "registry.example.com/u/new:1", Before: "registry.example.com/u/old:1", Failed: true}, pod)
	late := pod.DeepCopy()
	late.Status.ContainerStatuses[0].ContainerID = "containerd://late"
	late.Status.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	tr.Look(late)
	late.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "new:1: not found"}}
	if f := tr.Look(late); f == nil {
		t.Error("no failure")
	}
	if id, _ := tr.Running(); id != "" {
		t.Errorf("container %s runs", id)
	}
}
