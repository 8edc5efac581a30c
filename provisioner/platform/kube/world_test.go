package kube

import (
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	batchlisters "k8s.io/client-go/listers/batch/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"podstarter/provisioner/platform"
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
	versions atomic.Int64
}

func newWorld(t *testing.T, manifest string) *world {
	t.Helper()
	w := &world{t: t, client: fake.NewClientset(), manifest: manifest}
	w.client.PrependReactor("create", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if w.denied {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "x", errors.New("exceeded quota"))
		}
		// The fake sets no time, and no UID and version.
		if m, is := action.(clienttesting.CreateAction).GetObject().(metav1.Object); is {
			m.SetCreationTimestamp(metav1.Now())
			m.SetUID(types.UID(w.version()))
			m.SetResourceVersion(w.version())
		}
		return false, nil, nil
	})
	w.client.PrependReactor("update", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if m, is := action.(clienttesting.UpdateAction).GetObject().(metav1.Object); is {
			m.SetResourceVersion(w.version())
		}
		return false, nil, nil
	})
	w.client.PrependReactor("delete", "*", w.refuse)
	w.cluster = w.Restart().(*Cluster)
	return w
}

// version returns a version that no object has had.
func (w *world) version() string { return strconv.FormatInt(w.versions.Add(1), 10) }

// refuse refuses to delete an object that is not as the preconditions say. The fake
// does not look at them.
func (w *world) refuse(action clienttesting.Action) (bool, runtime.Object, error) {
	deletion := action.(clienttesting.DeleteActionImpl)
	o, err := w.client.Tracker().Get(deletion.GetResource(), deletion.GetNamespace(), deletion.GetName())
	if err != nil {
		return true, nil, err
	}
	m, want := o.(metav1.Object), deletion.GetDeleteOptions().Preconditions
	if want != nil && (want.UID != nil && *want.UID != m.GetUID() || want.ResourceVersion != nil && *want.ResourceVersion != m.GetResourceVersion()) {
		return true, nil, apierrors.NewConflict(deletion.GetResource().GroupResource(), deletion.GetName(), errors.New("it has changed"))
	}
	return false, nil, nil
}

// show makes the watches have shown all that is there, and nothing that comes later.
// No call counts that was made before.
func (w *world) show() {
	w.t.Helper()
	ctx := w.t.Context()
	jobs, err := w.client.BatchV1().Jobs("ns").List(ctx, metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	pods, err := w.client.CoreV1().Pods("ns").List(ctx, metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	var objects []any
	for i := range jobs.Items {
		objects = append(objects, jobs.Items[i].DeepCopy())
	}
	for i := range pods.Items {
		objects = append(objects, pods.Items[i].DeepCopy())
	}
	shown := map[bool]cache.Indexer{}
	for _, isPod := range []bool{false, true} {
		shown[isPod] = cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	}
	for _, o := range objects {
		o, err := slim(o)
		if err == nil {
			_, isPod := o.(*corev1.Pod)
			err = shown[isPod].Add(o)
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
	w.cluster.jobs = batchlisters.NewJobLister(shown[false]).Jobs("ns")
	w.cluster.pods = corelisters.NewPodLister(shown[true]).Pods("ns")
	w.client.ClearActions()
}

// calls are those since the watches were last shown something.
func (w *world) calls() []string {
	var all []string
	for _, a := range w.client.Actions() {
		all = append(all, a.GetVerb()+" "+a.GetResource().Resource)
	}
	return all
}

// there reports whether a unit is there.
func (w *world) there(name string) bool {
	_, job := w.client.BatchV1().Jobs("ns").Get(w.t.Context(), name, metav1.GetOptions{})
	_, pod := w.client.CoreV1().Pods("ns").Get(w.t.Context(), name, metav1.GetOptions{})
	return job == nil || pod == nil
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

var spec1 = platform.Spec{Name: "site-plain-1", Template: "plain", Shape: "small", Size: resources.Amount{CPUs: 2, Memory: 2048, Disk: 1 << 20, GPUs: 1}, User: "a@b", Group: "g"}
