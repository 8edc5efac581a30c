package kube

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"podstarter/k8sexec/podapi"
	payloadapi "podstarter/payload"
	"podstarter/provisioner/platform"
)

// What the watches have shown is not asked for again, except whether the pod of a Job
// has begun.
func TestCallsOfRemovals(t *testing.T) {
	for name, c := range map[string]struct {
		manifest     string
		shown, begun bool
		want         []string
	}{
		"a pod":                    {podManifest, true, false, []string{"delete pods"}},
		"a pod that has begun":     {podManifest, true, true, nil},
		"a Job":                    {jobManifest, true, false, []string{"list pods", "delete jobs"}},
		"a Job, its pod has begun": {jobManifest, true, true, []string{"list pods"}},
		"a pod that was not shown": {podManifest, false, false, []string{"list jobs", "list pods", "delete pods"}},
		"a Job that was not shown": {jobManifest, false, false, []string{"list jobs", "list pods", "delete jobs"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, end := range []bool{false, true} {
				w := newWorld(t, c.manifest)
				if !c.shown {
					w.show()
				}
				if err := w.cluster.Create(t.Context(), spec1); err != nil {
					t.Fatal(err)
				}
				w.pod(spec1.Name)
				if c.begun {
					w.Begin(spec1.Name)
				}
				if c.shown {
					w.show()
				}
				w.client.ClearActions()
				want, stays := c.want, c.begun
				var err error
				if end {
					want, stays = slices.DeleteFunc(slices.Clone(c.want), func(string) bool { return c.begun }), false
					if c.begun { // which does not matter
						want = map[string][]string{podManifest: {"delete pods"}, jobManifest: {"list pods", "delete jobs"}}[c.manifest]
					}
					err = w.cluster.End(t.Context(), spec1.Name)
				} else {
					err = w.cluster.Withdraw(t.Context(), spec1.Name)
				}
				if errors.Is(err, platform.ErrBegun) != stays || !stays && err != nil {
					t.Errorf("end %t: the error is %v", end, err)
				}
				if diff := cmp.Diff(want, w.calls()); diff != "" {
					t.Errorf("end %t: -want +got\n%s", end, diff)
				}
				if w.there(spec1.Name) != stays {
					t.Errorf("end %t: it is there: %t", end, !stays)
				}
			}
		})
	}
}

// What the watches have shown may be behind: a pod that has begun since is not
// withdrawn, and one in which a job has begun is not ended. What changed otherwise is
// looked up.
func TestRemovalsWhenAWatchIsBehind(t *testing.T) {
	begin := func(w *world) { w.Begin(spec1.Name) }
	started := func(w *world) { // the kubelet says it of the container before it says it of the pod
		w.set(spec1.Name, func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "pilot", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		})
	}
	place := func(w *world) {
		w.set(spec1.Name, func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}
		})
	}
	use := func(w *world) {
		w.Begin(spec1.Name)
		p := w.pod(spec1.Name).DeepCopy()
		p.Annotations[noncePrefix+"payload"] = "0123"
		if _, err := w.client.CoreV1().Pods("ns").Update(w.t.Context(), p, metav1.UpdateOptions{}); err != nil {
			w.t.Fatal(err)
		}
	}
	touch := func(w *world) { // the Job controller counts its pod
		job, err := w.client.BatchV1().Jobs("ns").Get(w.t.Context(), spec1.Name, metav1.GetOptions{})
		if err != nil {
			return
		}
		job = job.DeepCopy()
		job.Status.Active = 1
		if _, err := w.client.BatchV1().Jobs("ns").UpdateStatus(w.t.Context(), job, metav1.UpdateOptions{}); err != nil {
			w.t.Fatal(err)
		}
	}
	replace := func(w *world) { // another provisioner of the same name
		if err := errors.Join(w.cluster.End(w.t.Context(), spec1.Name), w.cluster.Create(w.t.Context(), spec1)); err != nil {
			w.t.Fatal(err)
		}
	}
	remove := func(w *world) {
		if err := w.cluster.End(w.t.Context(), spec1.Name); err != nil {
			w.t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		meanwhile []func(*world)
		withdraws bool
		ends      bool
	}{
		"it has begun":                  {[]func(*world){begin}, false, true},
		"its pilot has begun":           {[]func(*world){started}, false, true},
		"it has begun, the Job changed": {[]func(*world){begin, touch}, false, true},
		"it has a node":                 {[]func(*world){place}, true, true},
		"the Job changed":               {[]func(*world){touch}, true, true},
		"a job has begun":               {[]func(*world){use}, false, false},
		"it is another one":             {[]func(*world){replace}, true, true},
		"another one has begun":         {[]func(*world){replace, begin}, false, true},
		"it is gone":                    {[]func(*world){remove}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, manifest := range []string{podManifest, jobManifest} {
				for _, end := range []bool{false, true} {
					w := newWorld(t, manifest)
					if err := w.cluster.Create(t.Context(), spec1); err != nil {
						t.Fatal(err)
					}
					w.pod(spec1.Name)
					w.show()
					for _, change := range c.meanwhile {
						change(w)
					}
					do, goes := w.cluster.Withdraw, c.withdraws
					if end {
						do, goes = w.cluster.End, c.ends
					}
					if err := do(t.Context(), spec1.Name); goes && err != nil || !goes && !errors.Is(err, platform.ErrBegun) {
						t.Errorf("end %t: the error is %v\n%s", end, err, manifest)
					}
					if w.there(spec1.Name) == goes {
						t.Errorf("end %t: it is there: %t\n%s", end, !goes, manifest)
					}
				}
			}
		})
	}
}

// What changes whenever it is looked at has perhaps begun.
func TestWithdrawalOfWhatChangesAllTheTime(t *testing.T) {
	w := newWorld(t, podManifest)
	if err := w.cluster.Create(t.Context(), spec1); err != nil {
		t.Fatal(err)
	}
	w.show()
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	w.client.PrependReactor("delete", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		o, err := w.client.Tracker().Get(pods, "ns", spec1.Name)
		if err != nil {
			return true, nil, err
		}
		p := o.(*corev1.Pod).DeepCopy()
		p.ResourceVersion = w.version()
		return false, nil, w.client.Tracker().Update(pods, p, "ns")
	})
	if err := w.cluster.Withdraw(t.Context(), spec1.Name); !errors.Is(err, platform.ErrBegun) || !w.there(spec1.Name) {
		t.Errorf("the error is %v", err)
	}
}

// A pod in which a job begins just before the deletion is not ended, however often it
// changed before. One that only changes is ended, unless it never stays as it is.
func TestEndOfWhatChanges(t *testing.T) {
	for name, c := range map[string]struct {
		changes, begins int // how many deletions find a change, and which one finds a job
		ends, begun     bool
	}{
		"once":                    {changes: 1, ends: true},
		"twice":                   {changes: 2, ends: true},
		"always":                  {changes: 100},
		"a job":                   {changes: 1, begins: 1, begun: true},
		"a job after a change":    {changes: 2, begins: 2, begun: true},
		"a job after two changes": {changes: 3, begins: 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, podManifest)
			if err := w.cluster.Create(t.Context(), spec1); err != nil {
				t.Fatal(err)
			}
			w.Begin(spec1.Name)
			w.show()
			pods, deletions := corev1.SchemeGroupVersion.WithResource("pods"), 0
			w.client.PrependReactor("delete", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
				if deletions++; deletions > c.changes {
					return false, nil, nil
				}
				o, err := w.client.Tracker().Get(pods, "ns", spec1.Name)
				if err != nil {
					return true, nil, err
				}
				p := o.(*corev1.Pod).DeepCopy()
				if p.ResourceVersion = w.version(); deletions == c.begins {
					p.Annotations[noncePrefix+"payload"] = "0123"
				}
				return false, nil, w.client.Tracker().Update(pods, p, "ns")
			})
			err := w.cluster.End(t.Context(), spec1.Name)
			if (err == nil) != c.ends || errors.Is(err, platform.ErrBegun) != c.begun || w.there(spec1.Name) == c.ends {
				t.Errorf("it is there: %t, %v", w.there(spec1.Name), err)
			}
			if deletions > 3 {
				t.Errorf("%d deletions", deletions)
			}
		})
	}
}

// A pod of another name that somebody labelled as one of ours is none that can be
// withdrawn, also when a watch has shown it.
func TestRemovalOfWhatIsOnlyLabelled(t *testing.T) {
	w := newWorld(t, podManifest)
	p := pod("bait", "", time.Now(), corev1.PodPending)
	p.Namespace, p.Labels = "ns", map[string]string{labelProvisioner: "site", labelUnit: "victim"}
	if _, err := w.client.CoreV1().Pods("ns").Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.show()
	for _, do := range []func(context.Context, string) error{w.cluster.Withdraw, w.cluster.End} {
		if err := do(t.Context(), "bait"); err != nil || !w.there("bait") {
			t.Errorf("it is there: %t, %v", w.there("bait"), err)
		}
	}
}

// A unit that runs is ended with its Job, which would make another pod.
func TestEnd(t *testing.T) {
	for _, manifest := range []string{podManifest, jobManifest} {
		w := newWorld(t, manifest)
		if err := w.cluster.Create(t.Context(), spec1); err != nil {
			t.Fatal(err)
		}
		w.Begin(spec1.Name)
		if err := w.cluster.End(t.Context(), spec1.Name); err != nil {
			t.Fatal(err)
		}
		_, podErr := w.client.CoreV1().Pods("ns").Get(t.Context(), spec1.Name, metav1.GetOptions{})
		_, jobErr := w.client.BatchV1().Jobs("ns").Get(t.Context(), spec1.Name, metav1.GetOptions{})
		if !apierrors.IsNotFound(podErr) || !apierrors.IsNotFound(jobErr) {
			t.Errorf("it is there: %v, %v", podErr, jobErr)
		}
	}
}

const podWithNonces = `apiVersion: v1
kind: Pod
metadata: {name: glidein}
spec:
  initContainers:
  - name: payload
    image: default
    restartPolicy: Always
    env: [{name: POD_STARTER_NONCE, valueFrom: {fieldRef: {fieldPath: "metadata.annotations['podstarter/nonce-payload']"}}}]
  containers:
  - {name: pilot, image: pilot}
  - name: payload-2
    image: default
    env:
    - {name: OTHER, value: x}
    - {name: POD_STARTER_NONCE, valueFrom: {fieldRef: {fieldPath: "metadata.annotations['podstarter/nonce-payload-2']"}}}
`

// Whether a job has begun in a pod is known by what podstarter's pilot writes into
// it, also after a restart, and such a pod is not ended.
func TestUse(t *testing.T) {
	if noncePrefix != podapi.NonceAnnotation || nonceEnv != payloadapi.NonceEnv {
		t.Errorf("podstarter writes %q for %q", podapi.NonceAnnotation, payloadapi.NonceEnv)
	}
	for name, c := range map[string]struct {
		manifest, annotation string
		want                 platform.Use
	}{
		"no job yet":                {podWithNonces, "podstarter/nonce-payload-3", platform.Unused},
		"a job":                     {podWithNonces, "podstarter/nonce-payload-2", platform.Used},
		"one that has no variable":  {strings.Replace(podWithNonces, "nonce-payload-2", "nonce-payload", 1), "x", platform.UseUnknown},
		"a pilot of another kind":   {podManifest, "x", platform.UseUnknown},
		"a job where none is known": {podManifest, "podstarter/nonce-payload", platform.Used},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.manifest)
			if err := w.cluster.Create(t.Context(), spec1); err != nil {
				t.Fatal(err)
			}
			w.Begin(spec1.Name)
			p := w.pod(spec1.Name).DeepCopy()
			p.Annotations[c.annotation] = "0123"
			if _, err := w.client.CoreV1().Pods("ns").Update(t.Context(), p, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			again := w.Restart().(*Cluster)
			units, err := again.List(t.Context())
			if err != nil || len(units) != 1 || units[0].Use != c.want {
				t.Errorf("the units are %+v, %v; want one with the use %d", units, err, c.want)
			}
			if err := again.End(t.Context(), spec1.Name); errors.Is(err, platform.ErrBegun) != (c.want == platform.Used) {
				t.Errorf("ending it: %v", err)
			}
		})
	}
}

// A Job whose first pod has had a job and is over may have a second one that is
// silent. It would stay for ever if the first one counted.
func TestEndOfASecondPod(t *testing.T) {
	for phase, ends := range map[corev1.PodPhase]bool{corev1.PodFailed: true, corev1.PodRunning: false} {
		w := newWorld(t, jobManifest)
		if err := w.cluster.Create(t.Context(), spec1); err != nil {
			t.Fatal(err)
		}
		w.Begin(spec1.Name)
		first := w.pod(spec1.Name).DeepCopy()
		second := first.DeepCopy()
		second.Name, second.UID, second.ResourceVersion = first.Name+"-again", "second", ""
		if _, err := w.client.CoreV1().Pods("ns").Create(t.Context(), second, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if first.Annotations == nil {
			first.Annotations = map[string]string{}
		}
		first.Annotations[noncePrefix+"payload"] = "0123"
		first.Spec.Containers = append(first.Spec.Containers, corev1.Container{Name: "payload"})
		first.Status.Phase = phase
		if _, err := w.client.CoreV1().Pods("ns").Update(t.Context(), first, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := w.cluster.End(t.Context(), spec1.Name); errors.Is(err, platform.ErrBegun) == ends || ends && err != nil {
			t.Errorf("the first pod is %s: ending it: %v", phase, err)
		}
	}
}
