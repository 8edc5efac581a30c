package kube

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"podstarter/k8sexec/podapi"
	payloadapi "podstarter/payload"
	"podstarter/provisioner/backoff"
	"podstarter/provisioner/platform"
	"podstarter/provisioner/platform/platformtest"
	"podstarter/provisioner/resources"
	"podstarter/provisioner/template"
)

const podManifest = `apiVersion: v1
kind: Pod
metadata: {name: glidein, labels: {app: glidein}}
spec:
  containers:
  - {name: pilot, image: pilot}
  - name: payload
    image: default
    resources: {limits: {example.org/fuse: 1, memory: 5Gi}}
`

const jobManifest = `apiVersion: batch/v1
kind: Job
metadata: {name: glidein}
spec:
  template:
    metadata: {labels: {app: glidein}}
    spec:
      initContainers:
      - {name: payload, image: default, restartPolicy: Always}
      containers:
      - {name: pilot, image: pilot}
`

func templates(manifest string) []template.Template {
	return []template.Template{{Name: "plain", Manifest: manifest, File: "glidein.yaml", Slots: 1}}
}

// world is an API server in memory, whose controllers and kubelets are the test.
type world struct {
	t        *testing.T
	client   *fake.Clientset
	manifest string
	cluster  *Cluster
	denied   bool
}

func newWorld(t *testing.T, manifest string) *world {
	t.Helper()
	w := &world{t: t, client: fake.NewClientset(), manifest: manifest}
	w.client.PrependReactor("create", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if w.denied {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "x", errors.New("exceeded quota"))
		}
		// The fake sets no time.
		if m, err := action.(clienttesting.CreateAction).GetObject().(metav1.Object), error(nil); err == nil {
			m.SetCreationTimestamp(metav1.Now())
		}
		return false, nil, nil
	})
	w.cluster = w.Restart().(*Cluster)
	return w
}

func (w *world) Platform() platform.Platform { return w.cluster }

func (w *world) Restart() platform.Platform {
	t := templates(w.manifest)
	t[0].Slots += strings.Count(w.manifest, "name: payload-2\n")
	c, err := New(w.t.Context(), w.client, "site", "ns", DefaultGPU, t, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// pod returns the pod of a unit. That of a Job is made by the Job controller.
func (w *world) pod(name string) *corev1.Pod {
	ctx := w.t.Context()
	job, err := w.client.BatchV1().Jobs("ns").Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		p, err := w.client.CoreV1().Pods("ns").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			w.t.Fatal(err)
		}
		return p
	}
	p, err := w.client.CoreV1().Pods("ns").Get(ctx, name+"-abcde", metav1.GetOptions{})
	if err == nil {
		return p
	}
	p = &corev1.Pod{ObjectMeta: *job.Spec.Template.ObjectMeta.DeepCopy(), Spec: job.Spec.Template.Spec}
	p.Name, p.Namespace = name+"-abcde", "ns"
	p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
	if p, err = w.client.CoreV1().Pods("ns").Create(ctx, p, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	return p
}

func (w *world) set(name string, change func(p *corev1.Pod)) {
	p := w.pod(name).DeepCopy()
	change(p)
	if _, err := w.client.CoreV1().Pods("ns").UpdateStatus(w.t.Context(), p, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) Begin(name string) {
	now := metav1.Now()
	w.set(name, func(p *corev1.Pod) { p.Status = corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &now} })
}

func (w *world) end(name string, phase corev1.PodPhase, code int32) {
	w.set(name, func(p *corev1.Pod) {
		p.Status.Phase = phase
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "pilot", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error", FinishedAt: metav1.Now()}}}}
	})
}

// close says that a Job, if it is one, makes no other pod.
func (w *world) close(name string, end batchv1.JobConditionType) {
	job, err := w.client.BatchV1().Jobs("ns").Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return
	}
	job = job.DeepCopy()
	job.Status.Conditions = []batchv1.JobCondition{{Type: end, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded", LastTransitionTime: metav1.Now()}}
	if _, err := w.client.BatchV1().Jobs("ns").UpdateStatus(w.t.Context(), job, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) Fail(name string) {
	w.end(name, corev1.PodFailed, 1)
	w.close(name, batchv1.JobFailed)
}

func (w *world) Finish(name string) {
	w.end(name, corev1.PodSucceeded, 0)
	w.close(name, batchv1.JobComplete)
}

func (w *world) Stick(name string) {
	w.set(name, func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodPending
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes are available"}}
	})
}

func (w *world) Deny(deny bool) { w.denied = deny }

func TestPlatformWithPods(t *testing.T) {
	platformtest.Run(t, func(t *testing.T) platformtest.World { return newWorld(t, podManifest) })
}

func TestPlatformWithJobs(t *testing.T) {
	platformtest.Run(t, func(t *testing.T) platformtest.World { return newWorld(t, jobManifest) })
}

var spec1 = platform.Spec{Name: "site-plain-1", Template: "plain", Shape: "small", Size: resources.Amount{CPUs: 2, Memory: 2048, Disk: 1 << 20, GPUs: 1}, User: "a@b", Group: "g"}

// What the manifest says stays, and the payload containers get the shape.
func TestManifests(t *testing.T) {
	for _, text := range []string{podManifest, jobManifest} {
		m, err := parse(templates(text)[0], "example.org/gpu")
		if err != nil {
			t.Fatal(err)
		}
		job, pod := m.build("site", "ns", spec1)
		object, inner, podSpec := metav1.Object(pod), metav1.Object(pod), (*corev1.PodSpec)(nil)
		if job != nil {
			object, inner, podSpec = job, &job.Spec.Template, &job.Spec.Template.Spec
		} else {
			podSpec = &pod.Spec
		}
		if object.GetName() != "site-plain-1" || object.GetNamespace() != "ns" || inner.GetLabels()["app"] != "glidein" || inner.GetLabels()[labelUnit] != "site-plain-1" {
			t.Errorf("the object is %s/%s with labels %v", object.GetNamespace(), object.GetName(), inner.GetLabels())
		}
		if _, bad := inner.GetLabels()[noteUser]; bad {
			t.Error("the user is a label")
		}
		for _, c := range payloads(podSpec) {
			got := map[string]string{}
			for name, q := range c.Resources.Limits {
				got[string(name)] = q.String()
			}
			want := map[string]string{"cpu": "2", "memory": "2Gi", "ephemeral-storage": "1Gi", "example.org/gpu": "1"}
			if strings.Contains(text, "fuse") {
				want["example.org/fuse"] = "1"
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		}
		for _, c := range podSpec.Containers {
			if c.Name == "pilot" && len(c.Resources.Limits) != 0 {
				t.Errorf("the pilot got %v", c.Resources.Limits)
			}
		}
	}
}

// Spares have the size of the others, and are none of the template's slots.
func TestSpares(t *testing.T) {
	text := podManifest + "  - {name: payload-2, image: default}\n  - {name: payload-3, image: default}\n"
	all := templates(text)
	if _, err := parse(all[0], DefaultGPU); err == nil || !strings.Contains(err.Error(), "it has 3 containers") {
		t.Errorf("the error is %v", err)
	}
	all[0].Spares = 2
	m, err := parse(all[0], DefaultGPU)
	if err != nil {
		t.Fatal(err)
	}
	_, p := m.build("site", "ns", spec1)
	for _, c := range payloads(&p.Spec) {
		if n := c.Resources.Limits.Cpu().Value(); n != 2 {
			t.Errorf("%s has %d CPUs", c.Name, n)
		}
	}
}

func TestManifestsThatAreWrong(t *testing.T) {
	for want, text := range map[string]string{
		"a Deployment of apps/v1; one must be a Job of batch/v1 or a Pod of v1": "apiVersion: apps/v1\nkind: Deployment\n",
		"no object":             "# Nothing.\n",
		"more than one":         podManifest + "---\n" + jobManifest,
		"unknown field":         strings.Replace(podManifest, "image: pilot", "image: pilot, imag: x", 1),
		"slots: 1":              strings.Replace(podManifest, "name: payload", "name: other", 1),
		"parallelism 3":         strings.Replace(jobManifest, "spec:\n", "spec:\n  parallelism: 3\n", 1),
		"completions 2":         strings.Replace(jobManifest, "spec:\n", "spec:\n  completions: 2\n", 1),
		"backoffLimit 4":        strings.Replace(jobManifest, "spec:\n", "spec:\n  backoffLimit: 4\n", 1),
		"error converting YAML": "\t",
	} {
		if _, err := parse(templates(text)[0], DefaultGPU); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "glidein.yaml of the template plain") {
			t.Errorf("the error is %v, want one with %q", err, want)
		}
	}
}

// A manifest can be what kustomize prints: the Job with all that its pods need.
func TestManifestAmongOthers(t *testing.T) {
	const account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: glidein}\n---\n"
	m, err := parse(templates("# Of kustomize.\n---\n" + account + jobManifest + "---\n" + account)[0], DefaultGPU)
	if err != nil || m.job == nil || m.pod != nil || m.job.Spec.Template.Spec.Containers[0].Name != "pilot" {
		t.Errorf("the manifest is %+v, %v", m, err)
	}
}

// A site may request less than the limits; that part stays in each size.
func TestRequestsThatAreLess(t *testing.T) {
	text := strings.Replace(podManifest, "{limits: {example.org/fuse: 1, memory: 5Gi}}",
		"{requests: {cpu: 500m, memory: 1Gi, ephemeral-storage: 3Gi}, limits: {cpu: 2, memory: 3Gi, ephemeral-storage: 2Gi}}", 1)
	m, err := parse(templates(text)[0], DefaultGPU)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second unit is as the first
		_, pod := m.build("site", "ns", spec1)
		c := payloads(&pod.Spec)[0].Resources
		got := map[string]string{}
		for name, q := range c.Requests {
			limit := c.Limits[name]
			got[string(name)] = q.String() + " of " + limit.String()
		}
		// More than the limit makes no sense; no fraction of a byte, and a whole GPU.
		want := map[string]string{"cpu": "500m of 2", "memory": "715827883 of 2Gi", "ephemeral-storage": "1Gi of 1Gi", "nvidia.com/gpu": "1 of 1"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	}
}

// An answer that was lost leaves a unit that counts until it is known whether it
// was made.
func TestLostAnswer(t *testing.T) {
	w := newWorld(t, podManifest)
	lost := true
	w.client.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		if lost {
			return true, nil, apierrors.NewTimeoutError("no answer", 1)
		}
		return false, nil, nil
	})
	if err := w.cluster.Create(t.Context(), spec1); err == nil {
		t.Fatal("a lost answer is no error")
	}
	if all, _ := w.cluster.List(t.Context()); len(all) != 1 {
		t.Errorf("there are %d units; the one that may be there must count", len(all))
	}
	w.cluster.now = func() time.Time { return time.Now().Add(2 * unseen) }
	if all, _ := w.cluster.List(t.Context()); len(all) != 0 {
		t.Errorf("a unit that is not there still counts: %+v", all)
	}
}

// Another provisioner's units are none of ours.
func TestOthers(t *testing.T) {
	w := newWorld(t, podManifest)
	other, err := New(context.Background(), w.client, "other", "ns", DefaultGPU, templates(podManifest), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.cluster.Create(t.Context(), spec1); err != nil {
		t.Fatal(err)
	}
	if all, err := other.List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("another provisioner sees %v, %v", all, err)
	}
}

// A pod whose payload container waits for the image of a job is Pending, and its
// pilot runs: it must not be withdrawn under its jobs.
func TestPendingAgain(t *testing.T) {
	for _, manifest := range []string{podManifest, jobManifest} {
		w := newWorld(t, manifest)
		if err := w.cluster.Create(t.Context(), spec1); err != nil {
			t.Fatal(err)
		}
		w.set(spec1.Name, func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodPending
			waits := corev1.ContainerStatus{Name: "payload", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{waits, {Name: "pilot", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		})
		if err := w.cluster.Withdraw(t.Context(), spec1.Name); !errors.Is(err, platform.ErrBegun) {
			t.Errorf("withdrawing it: %v", err)
		}
		u := platform.Unit{}
		if follow(&u, w.pod(spec1.Name)); u.Phase != platform.Running || u.Trouble != "" {
			t.Errorf("the unit is %+v", u)
		}
	}
}

// The time in which a node pulls the images is not counted to that in which a pilot
// must report.
func TestBegan(t *testing.T) {
	taken := metav1.NewTime(time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC))
	p := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &taken}}
	u := platform.Unit{}
	if follow(&u, p); !u.Began.Equal(taken.Time) {
		t.Errorf("without a condition it began at %s", u.Began)
	}
	pulled := taken.Add(20 * time.Minute)
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(pulled)}}
	if follow(&u, p); !u.Began.Equal(pulled) {
		t.Errorf("it began at %s, want %s", u.Began, pulled)
	}
	p.Status.Phase = corev1.PodPending
	if follow(&u, p); !u.Began.IsZero() {
		t.Errorf("a pod that waits began at %s", u.Began)
	}
}

func TestObstacles(t *testing.T) {
	waiting := func(reason string) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{{Name: "prepare", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "it\n\tsays"}}}}}}
	}
	for reason, want := range map[string]string{
		"ErrImagePull": "ImageFailed container prepare: ErrImagePull: it says", "PodInitializing": " ",
		"CreateContainerConfigError": "Failed container prepare: CreateContainerConfigError: it says",
		"CrashLoopBackOff":           "Failed container prepare: CrashLoopBackOff: it says",
	} {
		r, detail := obstacle(waiting(reason))
		if got := string(r) + " " + detail; got != want {
			t.Errorf("%s: %q, want %q", reason, got, want)
		}
	}
	payload := waiting("CrashLoopBackOff")
	payload.Status.InitContainerStatuses[0].Name = "payload" // a job may end as it likes
	if r, detail := obstacle(payload); r != "" {
		t.Errorf("a payload container: %s %s", r, detail)
	}
	job := &batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: batchv1.JobReasonDeadlineExceeded}}}}
	var u platform.Unit
	if finish(&u, job); u.Phase != platform.Ended || u.Trouble != "" {
		t.Errorf("a glidein at the end of its lifetime is %+v", u)
	}
}

// A unit that is deleted before the next list does not count for a minute: the
// watch has shown it.
func TestDeletedSoon(t *testing.T) {
	for _, manifest := range []string{podManifest, jobManifest} {
		w := newWorld(t, manifest)
		if err := w.cluster.Create(t.Context(), spec1); err != nil {
			t.Fatal(err)
		}
		if manifest == podManifest {
			err := w.client.CoreV1().Pods("ns").Delete(t.Context(), spec1.Name, metav1.DeleteOptions{})
			if err != nil {
				t.Fatal(err)
			}
		} else if err := w.client.BatchV1().Jobs("ns").Delete(t.Context(), spec1.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		deadline := time.Now().Add(10 * time.Second)
		for {
			all, err := w.cluster.List(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(all) == 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("a unit that was deleted counts: %+v", all)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
}

// The Job controller makes no pod in the place of one that failed: how often that is
// tried is up to the back-off of the template.
func TestJobTriesOnce(t *testing.T) {
	for policy, want := range map[string]int32{"Never": 0, "OnFailure": math.MaxInt32} {
		text := strings.Replace(jobManifest, "    spec:\n", "    spec:\n      restartPolicy: "+policy+"\n", 1)
		m, err := parse(templates(text)[0], DefaultGPU)
		if err != nil {
			t.Fatal(err)
		}
		job, _ := m.build("site", "ns", spec1)
		if n := job.Spec.BackoffLimit; n == nil || *n != want {
			t.Errorf("restartPolicy %s: backoffLimit is %v, want %d", policy, n, want)
		}
		text = strings.Replace(text, "\nspec:\n", "\nspec:\n  backoffLimit: 4\n", 1)
		if _, err := parse(templates(text)[0], DefaultGPU); err == nil || !strings.Contains(err.Error(), "backoffLimit 4") {
			t.Errorf("restartPolicy %s: the error is %v", policy, err)
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

// A node has a pod since the scheduler gave it one, or since it was made where the
// manifest names the node. What no scheduler looks at, or may not look at, has no
// node for long.
func TestPlaced(t *testing.T) {
	made := time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC)
	scheduled := func(status corev1.ConditionStatus, reason string, at time.Time) corev1.PodCondition {
		return corev1.PodCondition{Type: corev1.PodScheduled, Status: status, Reason: reason, Message: "so", LastTransitionTime: metav1.NewTime(at)}
	}
	for name, c := range map[string]struct {
		node      string
		condition *corev1.PodCondition
		after     time.Duration
		placed    time.Time
		trouble   backoff.Reason
	}{
		"it has a node":                {condition: new(scheduled(corev1.ConditionTrue, "", made.Add(time.Minute))), after: time.Hour, placed: made.Add(time.Minute)},
		"its manifest names a node":    {node: "node-1", after: time.Hour, placed: made},
		"no node has room":             {condition: new(scheduled(corev1.ConditionFalse, corev1.PodReasonUnschedulable, made)), trouble: backoff.Unschedulable},
		"it waits for a quota":         {condition: new(scheduled(corev1.ConditionFalse, corev1.PodReasonSchedulingGated, made)), trouble: backoff.Unschedulable},
		"the scheduler is slow":        {after: unscheduled - time.Second},
		"no scheduler has its name":    {after: unscheduled + time.Second, trouble: backoff.Unschedulable},
		"the scheduler has had errors": {condition: new(scheduled(corev1.ConditionFalse, corev1.PodReasonSchedulerError, made)), after: unscheduled + time.Second, trouble: backoff.Unschedulable},
	} {
		p := pod("a", "", made, corev1.PodPending)
		p.Spec.NodeName = c.node
		if c.condition != nil {
			p.Status.Conditions = []corev1.PodCondition{*c.condition}
		}
		if _, err := slim(p); err != nil {
			t.Fatal(err)
		}
		u := units(nil, []*corev1.Pod{p}, made.Add(c.after))[0]
		if !u.Placed.Equal(c.placed) || u.Trouble != c.trouble || (u.Detail == "") != (c.trouble == "") {
			t.Errorf("%s: it has a node since %s, and its trouble is %q (%s)", name, u.Placed, u.Trouble, u.Detail)
		}
		p.Status.Phase = corev1.PodRunning
		if u := units(nil, []*corev1.Pod{p}, made.Add(c.after))[0]; !u.Placed.IsZero() {
			t.Errorf("%s: once it runs it is %+v", name, u)
		}
	}
}
