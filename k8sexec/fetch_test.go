package k8sexec

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"podstarter/k8sexec/options"
	"podstarter/k8sexec/podapi"
	"podstarter/k8sexec/podapi/podapitest"
	"podstarter/payload"
)

const (
	testPuller = "pilot-0-puller"
	userImage  = "registry.example.com/u/tool:2"
)

// withPuller gives the pilot a puller whose kubelet does what kubelet says.
func withPuller(t *testing.T, kubelet func(puller *podapitest.Server, image string)) (*world, *podapitest.Server) {
	t.Helper()
	w := newWorld(t, func(o *options.Options) { o.Pullers = []options.Puller{options.ParsePuller(testPuller)} })
	w.api.Pod.Spec.NodeName = "node-1"
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: testPuller, UID: types.UID("uid-p"), Generation: 1}}
	pod.Spec.NodeName = "node-1"
	pod.Spec.Containers = []corev1.Container{{Name: options.PullerContainer, Image: testDefault}}
	pod.Status = corev1.PodStatus{ObservedGeneration: 1, ContainerStatuses: []corev1.ContainerStatus{{
		Name: options.PullerContainer, ContainerID: "containerd://" + testID(1000), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}}
	server := podapitest.New(pod)
	server.OnPatch = func(pod *corev1.Pod, changed map[string]bool) {
		if changed[options.PullerContainer] {
			kubelet(server, pod.Spec.Containers[0].Image)
		}
	}
	w.backend.pullers.Connect = func(name string) (podapi.API, error) {
		if name != testPuller {
			t.Errorf("asked for pod %s", name)
		}
		return server, nil
	}
	w.backend.pullers.Times = w.backend.pod.Times
	w.backend.pullers.Pace.Poll = time.Millisecond
	return w, server
}

// pulled is a kubelet that has every image at once.
func pulled() func(*podapitest.Server, string) {
	n := 1000
	return func(puller *podapitest.Server, _ string) {
		n++
		puller.Status(options.PullerContainer, func(_ *corev1.Pod, s *corev1.ContainerStatus) {
			s.ContainerID, s.ImageID = "containerd://"+testID(n), "registry.example.com/u/tool@"+testDigest
			s.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
		})
	}
}

// TestPullerComesFirst: an image that has not run here comes by a puller, and its
// container has it until the payload container does; then the node has it.
func TestPullerComesFirst(t *testing.T) {
	var puller *podapitest.Server
	w, puller := withPuller(t, pulled())
	w.api.OnPatch = func(pod *corev1.Pod, changed map[string]bool) {
		if got := podapi.SpecOf(puller.Snapshot(), options.PullerContainer).Image; got != userImage {
			t.Errorf("the payload container is patched while the puller has %s", got)
		}
		w.restart(pod, changed)
	}
	l, c := w.bind(userImage)
	// The puller's status shows the digest, so that the first binding pins it.
	if got := w.spec("payload"); !strings.HasSuffix(got, "@"+testDigest) {
		t.Errorf("payload container has %s", got)
	}
	if c.imageID() != "registry.example.com/u/tool@"+testDigest {
		t.Errorf("image ID %q", c.imageID())
	}
	release(t, l)
	for range 3 {
		l, _ = w.bind(userImage)
		release(t, l)
	}
	if got := puller.Count("patch"); got != 1 {
		t.Errorf("%d patches of the puller for four jobs in one image", got)
	}
	// The pod's own image was there until the first job came.
	l, _ = w.bind("")
	release(t, l)
	if got := puller.Count("patch"); got != 1 {
		t.Errorf("%d patches of the puller after a job in the pod's own image", got)
	}
}

// TestFailedPullTouchesNoPayload: the verdict is as it was, and the payload container
// stays as it is.
func TestFailedPullTouchesNoPayload(t *testing.T) {
	w, puller := withPuller(t, func(puller *podapitest.Server, image string) {
		puller.Status(options.PullerContainer, func(_ *corev1.Pod, s *corev1.ContainerStatus) {
			s.State = waitingFor("ErrImagePull", `failed to resolve reference "`+image+`": not found`)
		})
	})
	l := w.lease()
	_, err := l.Bind(context.Background(), payload.BindRequest{Activation: "job", Image: userImage})
	if v := verdictOf(t, err); v.Blame != payload.User || !strings.Contains(v.Message, "not found") {
		t.Errorf("verdict %v: %s", v.Blame, v)
	}
	if payloads, pulls := w.api.Count("patch"), puller.Count("patch"); payloads != 0 || pulls != 2 { // there and back
		t.Errorf("%d patches of the pilot's pod, %d of the puller", payloads, pulls)
	}
}

// TestWithoutUsablePuller: jobs run as they do without pullers.
func TestWithoutUsablePuller(t *testing.T) {
	w, puller := withPuller(t, pulled())
	puller.Fail = func(string, int) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Message: `pods "pilot-0-puller" not found`}}
	}
	var told []string
	l := w.lease()
	_, err := l.Bind(context.Background(), payload.BindRequest{Activation: "job", Image: userImage, Report: func(s string) { told = append(told, s) }})
	if err != nil {
		t.Fatal(err)
	}
	release(t, l)
	if got := w.spec("payload"); got != userImage {
		t.Errorf("payload container has %s", got)
	}
	if all := strings.Join(told, "\n"); !strings.Contains(all, "payload pulls registry.example.com/u/tool:2 itself") || !strings.Contains(all, "not found") {
		t.Errorf("told %s", all)
	}
}

// TestKeptContainerNeedsNoPuller: a container that stays as it is needs no pull.
func TestKeptContainerNeedsNoPuller(t *testing.T) {
	w, puller := withPuller(t, pulled())
	w.backend.opt.Reset = options.ResetImage
	l, _ := w.bind(userImage)
	release(t, l)
	if err := os.Remove(filepath.Join(w.private, warmFile)); err != nil { // as if it were long ago
		t.Fatal(err)
	}
	l, _ = w.bind(userImage)
	release(t, l)
	if got := puller.Count("patch"); got != 1 {
		t.Errorf("%d patches of the puller", got)
	}
}

// TestAuditOfPullers: -check names what keeps a puller from being of use, or makes it less
// safe.
func TestAuditOfPullers(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*podapitest.Server)
		want   []string // grade: fix
	}{
		{name: "nothing wrong", change: func(*podapitest.Server) {}},
		{name: "gone", change: func(s *podapitest.Server) {
			s.Fail = func(string, int) error {
				return apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, testPuller)
			}
		}, want: []string{"bad: POD_STARTER_PULLERS, or kubectl apply -k deploy/puller"}},
		{name: "may not be patched", change: func(s *podapitest.Server) {
			s.Deny = func(string) error { return denial("podstarter-pilot") }
		}, want: []string{"bad: the Role in deploy/puller; with deploy/policy also the label podstarter/pilot: pilot-0 on the puller"}},
		{name: "another node", change: func(s *podapitest.Server) { s.Pod.Spec.NodeName = "node-2" }, want: []string{"bad: spec.affinity.podAffinity"}},
		{name: "another account", change: func(s *podapitest.Server) { s.Pod.Spec.ServiceAccountName = "default" },
			want: []string{"warn: spec.serviceAccountName, spec.imagePullSecrets"}},
		{name: "a token", change: func(s *podapitest.Server) { s.Pod.Spec.AutomountServiceAccountToken = nil },
			want: []string{"bad: spec.automountServiceAccountToken: false"}},
		{name: "restarts nothing", change: func(s *podapitest.Server) { s.Pod.Spec.RestartPolicy = corev1.RestartPolicyNever },
			want: []string{"bad: spec.restartPolicy: Always"}},
		{name: "another container", change: func(s *podapitest.Server) { s.Pod.Spec.Containers[0].Name = "main" }, want: []string{"bad: POD_STARTER_PULLERS"}},
		{name: "runs the image", change: func(s *podapitest.Server) { s.Pod.Spec.Containers[0].Command = []string{"sleep", "inf"} },
			want: []string{"bad: spec.containers[name=puller].command: [/proc/slabinfo], args: [-hold]"}},
		{name: "pulls always", change: func(s *podapitest.Server) { s.Pod.Spec.Containers[0].ImagePullPolicy = corev1.PullAlways },
			want: []string{"bad: spec.containers[name=puller].imagePullPolicy: IfNotPresent"}},
		{name: "a volume", change: func(s *podapitest.Server) {
			c := &s.Pod.Spec.Containers[0]
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "data", MountPath: "/data"})
		}, want: []string{"warn: spec.containers[name=puller].volumeMounts"}},
		{name: "root", change: func(s *podapitest.Server) { s.Pod.Spec.Containers[0].SecurityContext.RunAsNonRoot = nil },
			want: []string{"warn: spec.containers[name=puller].securityContext"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := newAuditWorld(t)
			_, puller := withPuller(t, pulled())
			puller.OnPatch = nil
			spec := &puller.Pod.Spec
			spec.NodeName, spec.ServiceAccountName, spec.RestartPolicy = a.pod.Spec.NodeName, a.pod.Spec.ServiceAccountName, corev1.RestartPolicyAlways
			spec.AutomountServiceAccountToken = ptr(false)
			c := &spec.Containers[0]
			c.Command, c.Args, c.ImagePullPolicy = []string{"/proc/slabinfo"}, []string{"-hold"}, corev1.PullIfNotPresent
			c.SecurityContext = &corev1.SecurityContext{RunAsNonRoot: ptr(true), AllowPrivilegeEscalation: ptr(false)}
			c.VolumeMounts = []corev1.VolumeMount{{Name: "bin", MountPath: "/proc/slabinfo"}}
			tt.change(puller)
			a.wrappers()
			a.api.Pod = a.pod
			a.backend.opt.Pullers = []options.Puller{options.ParsePuller(testPuller)}
			a.backend.pullers.Connect = func(string) (podapi.API, error) { return puller, nil }
			var got []string
			for _, f := range a.backend.Audit(t.Context()) {
				if strings.HasPrefix(f.What, "puller ") && f.Grade != payload.OK {
					got = append(got, fmt.Sprintf("%s: %s", f.Grade, f.Fix))
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}
