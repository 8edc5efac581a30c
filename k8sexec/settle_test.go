package k8sexec

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"podstarter/k8sexec/options"
	"podstarter/k8sexec/podapi"
	"podstarter/k8sexec/verdict"
	"podstarter/payload"
)

// kubelet plays a node on which containers of some images fail in their own ways.
type kubelet struct {
	w    *world
	next atomic.Int64 // number of the next container
	// ways says how an image fails whose name contains the key; the others run.
	ways map[string]way
}

// way is how a container fails.
type way func(k *kubelet, image string)

func newKubelet(w *world, ways map[string]way) *kubelet {
	k := &kubelet{w: w, ways: ways}
	k.next.Store(1000)
	w.broken.Store(true) // only the patch restarts a wrapper that was told to leave
	w.api.Mu.Lock()
	defer w.api.Mu.Unlock()
	w.api.OnPatch = func(pod *corev1.Pod, changed map[string]bool) {
		if !changed["payload"] {
			return // stirred
		}
		image := podapi.SpecOf(pod, "payload").Image
		for part, way := range k.ways {
			if strings.Contains(image, part) {
				if old := w.wrapper("payload"); old != nil {
					old.stop()
				}
				way(k, image)
				return
			}
		}
		w.restart(pod, changed)
	}
	return k
}

func (k *kubelet) id() int { return int(k.next.Add(1)) }

// cannotRun is a container that the runtime refuses to start, at each attempt.
func cannotRun(message string) way {
	return func(k *kubelet, _ string) {
		for range verdict.MaxTries + 1 { // the first may be about the previous image
			k.w.api.Status("payload", func(_ *corev1.Pod, s *corev1.ContainerStatus) {
				s.State = waitingFor("RunContainerError", fmt.Sprintf("failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: "+
					"unable to start container process: %s: unknown; container %x", message, k.id()))
			})
		}
	}
}

// ends is a wrapper that ends at once.
func ends(code int32, words string) way {
	return func(k *kubelet, _ string) {
		for range 2 {
			k.w.api.Status("payload", func(_ *corev1.Pod, s *corev1.ContainerStatus) {
				s.ContainerID = "containerd://" + testID(k.id())
				s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ContainerID: s.ContainerID, ExitCode: code, Reason: "Error", Message: words}
				s.State = waitingFor(verdict.ReasonCrashLoop, "back-off 10s restarting failed container")
			})
		}
	}
}

// silent is a wrapper that never announces itself.
func silent(k *kubelet, _ string) { k.w.report("payload", k.id(), "x") }

// absent is an image that does not exist.
func absent(k *kubelet, image string) {
	k.w.api.Status("payload", func(_ *corev1.Pod, s *corev1.ContainerStatus) {
		s.State = waitingFor(verdict.ReasonErrPull, fmt.Sprintf("failed to resolve reference %q: %s: not found", image, image))
	})
}

// hostile are the ways in which an image can keep the wrapper from working, with
// what runc 1.1.5 and our wrapper said of them when they were tried: links,
// files and closed directories where the pod's volumes go, variables, volumes of
// the image.
var hostile = map[string]way{
	"/run/podstarter -> /var/lib/condor/execute": ends(1, "make control directory /run/podstarter/control/payload: mkdir /run/podstarter/control: permission denied"),
	"/run/podstarter/control -> /dev/shm":        ends(1, "open directory /run/podstarter/control: open /run/podstarter/control: not a directory"),
	"/run of mode 0700 and another user":         ends(1, "make control directory /run/podstarter/control/payload: mkdir /run/podstarter: permission denied"),
	"GOMEMLIMIT=x":                               ends(2, ""),
	"GOGC of 128 KiB":                            ends(1, "start over without the image's Go settings: argument list too long"),
	"variables of 3 MB":                          ends(1, ""),
	"VOLUME /run/podstarter/control/payload":     silent,
	"/opt/podstarter -> /var/lib/condor/execute": cannotRun(`exec: "/opt/podstarter/bin/condor_pod_wrapper": stat /opt/podstarter/bin/condor_pod_wrapper: no such file or directory`),
	"/opt of mode 0700 and another user":         cannotRun(`exec: "/opt/podstarter/bin/condor_pod_wrapper": stat /opt/podstarter/bin/condor_pod_wrapper: permission denied`),
	"variables, with another runtime":            cannotRun("exec /opt/podstarter/bin/condor_pod_wrapper: argument list too long"),
	"/run/podstarter -> podstarter":              cannotRun(`error during container init: error mounting "/v/control" to rootfs at "/run/podstarter/control": SecureJoin /r/podstarter/control: too many levels of symbolic links`),
	"/run/podstarter -> /proc":                   cannotRun(`error during container init: error mounting "/v/control" to rootfs at "/run/podstarter/control": "/r/proc/control" cannot be mounted because it is inside /proc`),
	"/run/podstarter -> /sys/fs":                 cannotRun(`error during container init: error mounting "/v/control" to rootfs at "/run/podstarter/control": mkdir /r/sys/fs/control: read-only file system`),
	"/proc is a file":                            cannotRun(`error during container init: error mounting "proc" to rootfs at "/proc": filesystem "proc" must be mounted on ordinary directory`),
	"VOLUME /proc/none":                          cannotRun(`error during container init: error mounting "/c/volumes/8f" to rootfs at "/proc/none": "/r/proc/none" cannot be mounted because it is inside /proc`),
	"/run is a file":                             cannotRun(`error during container init: error mounting "/v/control" to rootfs at "/run/podstarter/control": open o_path procfd: open /r/run/podstarter/control: not a directory`),
	"/etc/hosts is a directory":                  cannotRun(`error during container init: error mounting "/v/hosts" to rootfs at "/etc/hosts": mount /v/hosts:/etc/hosts (via /proc/self/fd/6), flags: 0x5000: not a directory`),
	"what nobody has thought of":                 cannotRun("error during container init: the image has outwitted runc"),
}

// outcome is whom a verdict blames.
type outcome struct {
	Blame   payload.Blame
	Subcode int
}

func mustBind(t *testing.T, l *lease, image string) {
	t.Helper()
	c, err := l.Bind(context.Background(), payload.BindRequest{Activation: "job", Image: image, Owner: "ann"})
	if err != nil {
		t.Fatalf("bind %q: %v", image, err)
	}
	if c.Image() != image {
		t.Fatalf("bound %s instead of %s", c.Image(), image)
	}
}

func bindFails(t *testing.T, l *lease, image string) (outcome, string) {
	t.Helper()
	_, err := l.Bind(context.Background(), payload.BindRequest{Activation: "job", Image: image, Owner: "mallory"})
	v := verdictOf(t, err)
	return outcome{v.Blame, v.Subcode}, v.Error()
}

const hostileImage = "registry.example.com/mallory/hostile"

// TestHostileImage: whatever an image does to the wrapper, its job is held, and the pod
// goes on, however many such images come and whether or not another has run before. If
// the default image fails, too, the pod is at fault.
func TestHostileImage(t *testing.T) {
	held, sick := outcome{payload.User, verdict.SubcodeBadImage}, outcome{payload.Pilot, 0}
	for name, harm := range hostile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, before := range []string{"fresh pod", "pod that has worked"} {
				w := newWorld(t, nil)
				newKubelet(w, map[string]way{"mallory": harm})
				l := w.lease()
				if before == "pod that has worked" {
					mustBind(t, l, "registry.example.com/u/good:1")
				}
				for i := range 3 {
					got, says := bindFails(t, l, fmt.Sprintf("%s:%d", hostileImage, i))
					if diff := cmp.Diff(held, got); diff != "" || !strings.Contains(says, hostileImage) || !strings.Contains(says, "With the pod's default image it works") {
						t.Fatalf("%s, image %d (-want +got):\n%s%s", before, i, diff, says)
					}
				}
				mustBind(t, l, "registry.example.com/u/good:2")
			}
			w := newWorld(t, nil)
			l := w.lease()
			newKubelet(w, nil)
			mustBind(t, l, "registry.example.com/u/good:1")
			newKubelet(w, map[string]way{"": harm}) // every image
			for i := range 2 {
				if got, says := bindFails(t, l, fmt.Sprintf("registry.example.com/u/good:%d", i)); got != sick || !strings.Contains(says, "default image fails, too") {
					t.Errorf("in a pod that is out of order: %+v: %s", got, says)
				}
			}
		})
	}
}

// A wrapper that was late once, on a busy node, does not count against its image.
func TestSilentOnce(t *testing.T) {
	w := newWorld(t, nil)
	var times atomic.Int32
	newKubelet(w, map[string]way{"u/late": func(k *kubelet, image string) {
		if times.Add(1) == 1 {
			silent(k, image)
			return
		}
		w.restart(w.api.Snapshot(), map[string]bool{"payload": true})
	}})
	mustBind(t, w.lease(), "registry.example.com/u/late:1")
	if n := w.api.Count("patch"); n < 3 {
		t.Errorf("%d patches, want those of image, default image and image", n)
	}
}

// If the default image cannot be tried, the pod is not blamed, and the image only once.
func TestNoDefaultImageToTry(t *testing.T) {
	held, elsewhere := outcome{payload.User, verdict.SubcodeBadImage}, outcome{payload.Site, 0}
	for _, test := range []struct {
		name   string
		worked bool
		want   []outcome
	}{
		{"fresh pod", false, []outcome{elsewhere, elsewhere}},
		{"pod that has worked", true, []outcome{held, elsewhere, elsewhere}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, nil)
			newKubelet(w, map[string]way{"mallory": ends(1, "no"), "site/default": absent})
			l := w.lease()
			if test.worked {
				mustBind(t, l, "registry.example.com/u/good:1")
			}
			var got []outcome
			for i := range test.want {
				o, says := bindFails(t, l, fmt.Sprintf("%s:%d", hostileImage, i))
				if got = append(got, o); o == elsewhere && !strings.Contains(says, "default image cannot be tried") {
					t.Errorf("image %d: %s", i, says)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("verdicts (-want +got):\n%s", diff)
			}
		})
	}
}

// A default image that fails is tried once.
func TestDefaultImageFails(t *testing.T) {
	for _, image := range []string{"", testDefault} {
		w := newWorld(t, nil)
		newKubelet(w, map[string]way{"": ends(1, "no")})
		w.api.Pod.Spec.Containers[1].Image = "registry.example.com/some/job:1"
		w.api.Pod.Annotations = map[string]string{podapi.DefaultImageAnnotation + "payload": testDefault}
		if got, says := bindFails(t, w.lease(), image); got != (outcome{payload.Pilot, 0}) {
			t.Errorf("image %q: %+v: %s", image, got, says)
		}
		if n := w.api.Count("patch"); n != 1 {
			t.Errorf("image %q: %d patches", image, n)
		}
	}
}

// An image for which there is no room does not condemn the images that are on the node,
// and is not its user's fault.
func TestDiskFull(t *testing.T) {
	full := func(k *kubelet, image string) {
		k.w.api.Status("payload", func(_ *corev1.Pod, s *corev1.ContainerStatus) {
			s.State = waitingFor(verdict.ReasonErrPull, fmt.Sprintf("failed to pull and unpack image %q: write /var/lib/containerd/tmp: no space left on device", image))
		})
	}
	for _, test := range []struct {
		name string
		ways map[string]way
		want outcome
	}{
		{"a large image", map[string]way{"mallory": full}, outcome{payload.Site, 0}},
		{"nothing can be started", map[string]way{"mallory": full, "site/default": cannotRun("mkdir /run/x: no space left on device")}, outcome{payload.Pilot, 0}},
		{"nothing can be pulled", map[string]way{"mallory": full, "site/default": full}, outcome{payload.Pilot, 0}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, nil)
			newKubelet(w, test.ways)
			l := w.lease()
			mustBind(t, l, "registry.example.com/u/good:1")
			got, says := bindFails(t, l, hostileImage)
			if got != test.want || !strings.Contains(says, "disk is full") || !strings.Contains(says, "default image") {
				t.Errorf("%+v: %s", got, says)
			}
		})
	}
}

// If a job is removed while the default image is tried, the error is the removal.
func TestRemovedWhileSettling(t *testing.T) {
	w := newWorld(t, nil)
	removed := errors.New("job removed")
	ctx, cancel := context.WithCancelCause(context.Background())
	newKubelet(w, map[string]way{"mallory": ends(1, "no"), "site/default": func(*kubelet, string) { cancel(removed) }})
	_, err := w.lease().Bind(ctx, payload.BindRequest{Activation: "job", Image: hostileImage})
	if !errors.Is(err, removed) {
		t.Errorf("error %v, want the cause", err)
	}
}

// The wrapper that served in settling is not reused, and proves nothing about another
// pod of that name.
func TestWhatIsKnownAfterSettling(t *testing.T) {
	w := newWorld(t, func(o *options.Options) { o.Reset = options.ResetImage })
	newKubelet(w, map[string]way{"mallory": ends(1, "no")})
	l := w.lease()
	bindFails(t, l, hostileImage)
	known, err := readSlot(l.private, "payload")
	if err != nil {
		t.Fatal(err)
	}
	want := slot{PodUID: "uid-1", DefaultImage: testDefault, Spec: testDefault, Proven: true, InUse: true, Image: testDefault}
	got := known
	got.Nonce, got.Boot, got.ContainerID, got.Bound, got.Grace = "", "", "", time.Time{}, 0
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what is known (-want +got):\n%s", diff)
	}
	w.api.Mu.Lock()
	w.api.Pod.UID = "uid-2"
	w.api.Mu.Unlock()
	newKubelet(w, map[string]way{"u/slow": absent})
	bindFails(t, l, "registry.example.com/u/slow:1")
	if known, err = readSlot(l.private, "payload"); err != nil || known.Proven {
		t.Errorf("in a new pod the wrapper counts as proven (%v)", err)
	}
}
