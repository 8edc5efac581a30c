package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
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
	clienttesting "k8s.io/client-go/testing"

	"podstarter/provisioner/backoff"
	"podstarter/provisioner/platform"
)

// A connection that broke may have made the unit all the same; an answer that
// refuses it has not.
func TestErrorsOfCreation(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for _, c := range []struct {
		name  string
		err   error
		count int
	}{
		{"the connection broke", &url.Error{Op: "Post", URL: "https://api", Err: io.ErrUnexpectedEOF}, 1},
		{"the API server is in trouble", apierrors.NewInternalError(errors.New("etcd")), 1},
		{"it is not available", apierrors.NewServiceUnavailable("no leader"), 1},
		{"a proxy gave up", &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusRequestTimeout}}, 1},
		{"too many requests", apierrors.NewTooManyRequestsError("later"), 0},
		{"quota was changed meanwhile", apierrors.NewConflict(pods, "quota", errors.New("changed")), 0},
		{"no such namespace", apierrors.NewNotFound(pods, "ns"), 0},
		{"quota", apierrors.NewForbidden(pods, "x", errors.New("exceeded quota")), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, podManifest)
			w.client.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, c.err })
			if err := w.cluster.Create(t.Context(), spec1); !errors.Is(err, c.err) {
				t.Errorf("the error is %v", err)
			}
			if all, err := w.cluster.List(t.Context()); err != nil || len(all) != c.count {
				t.Errorf("%d units count, want %d: %v", len(all), c.count, err)
			}
		})
	}
}

func pod(name, job string, created time.Time, phase corev1.PodPhase) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(created)}, Status: corev1.PodStatus{Phase: phase}}
	if job != "" {
		p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: job}}, batchv1.SchemeGroupVersion.WithKind("Job"))}
	}
	return p
}

// Each unit counts once, whatever became of its pods and labels.
func TestUnits(t *testing.T) {
	at := time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC)
	job := func(name string, conditions ...batchv1.JobCondition) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(at)}, Status: batchv1.JobStatus{Conditions: conditions}}
	}
	old := job("a")
	old.CreationTimestamp = metav1.NewTime(at.Add(-time.Minute))
	lost := old.DeepCopy()
	lost.Status.Failed = 1
	failed := batchv1.JobCondition{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded"}
	type unit struct {
		Name    string
		Phase   platform.Phase
		Trouble backoff.Reason
		Hosts   []string
	}
	labelled := pod("bare", "", at, corev1.PodPending)
	labelled.Labels = map[string]string{labelUnit: "another"}
	for _, c := range []struct {
		name string
		jobs []*batchv1.Job
		pods []*corev1.Pod
		want []unit
	}{
		{"a Job without a pod yet", []*batchv1.Job{job("a")}, nil, []unit{{"a", platform.Pending, "", nil}}},
		{"a Job without a pod", []*batchv1.Job{old}, nil, []unit{{"a", platform.Pending, backoff.Denied, nil}}},
		{"a Job that lost its pod and makes another", []*batchv1.Job{lost}, nil, []unit{{"a", platform.Pending, "", nil}}},
		{"a Job of which the pod is seen first", []*batchv1.Job{old}, []*corev1.Pod{pod("a-1", "a", at, corev1.PodPending)}, []unit{{"a", platform.Pending, "", []string{"a-1"}}}},
		{"a pod whose Job is gone", nil, []*corev1.Pod{pod("a-1", "a", at, corev1.PodRunning)}, []unit{{"a", platform.Running, "", []string{"a-1"}}}},
		{"a pod was replaced by one that runs", []*batchv1.Job{job("a")}, []*corev1.Pod{pod("a-1", "a", at, corev1.PodFailed), pod("a-2", "a", at.Add(time.Minute), corev1.PodRunning)}, []unit{{"a", platform.Running, "", []string{"a-2"}}}},
		{"a pod was replaced by one that waits", []*batchv1.Job{job("a")}, []*corev1.Pod{pod("a-2", "a", at.Add(time.Minute), corev1.PodPending), pod("a-1", "a", at, corev1.PodFailed)}, []unit{{"a", platform.Pending, "", []string{"a-2"}}}},
		{"a pod failed and the Job goes on", []*batchv1.Job{job("a")}, []*corev1.Pod{pod("a-1", "a", at, corev1.PodFailed)}, []unit{{"a", platform.Pending, backoff.Failed, []string{"a-1"}}}},
		{"a pod failed and so did the Job", []*batchv1.Job{job("a", failed)}, []*corev1.Pod{pod("a-1", "a", at, corev1.PodFailed)}, []unit{{"a", platform.Ended, backoff.Failed, []string{"a-1"}}}},
		{"a bare pod failed", nil, []*corev1.Pod{pod("a", "", at, corev1.PodFailed)}, []unit{{"a", platform.Ended, backoff.Failed, []string{"a"}}}},
		{"labels are missing or wrong", nil, []*corev1.Pod{pod("a", "", at, corev1.PodPending), labelled}, []unit{{"a", platform.Pending, "", []string{"a"}}, {"bare", platform.Pending, "", []string{"bare"}}}},
	} {
		var got []unit
		for _, u := range units(c.jobs, c.pods, at) {
			got = append(got, unit{u.Name, u.Phase, u.Trouble, u.Hosts})
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", c.name, diff)
		}
	}
}

// A pod that somebody labelled with the name of another Job does not make the
// provisioner delete that Job.
func TestLabelThatNamesAnother(t *testing.T) {
	w := newWorld(t, jobManifest)
	victim := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "victim", Namespace: "ns"}}
	if _, err := w.client.BatchV1().Jobs("ns").Create(t.Context(), victim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p := pod("bait", "", time.Now(), corev1.PodPending)
	p.Namespace, p.Labels = "ns", map[string]string{labelProvisioner: "site", labelUnit: "victim"}
	if _, err := w.client.CoreV1().Pods("ns").Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	all, err := w.Restart().List(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	for _, name := range []string{all[0].Name, "victim"} {
		if err := w.cluster.Withdraw(t.Context(), name); err != nil {
			t.Error(err)
		}
	}
	if _, err := w.client.BatchV1().Jobs("ns").Get(t.Context(), "victim", metav1.GetOptions{}); err != nil {
		t.Errorf("somebody else's Job is gone: %v", err)
	}
}

// What is being deleted takes no more jobs, except that a Job makes another pod.
func TestLeaving(t *testing.T) {
	at := metav1.Now()
	deleted := func(p *corev1.Pod) *corev1.Pod { p.DeletionTimestamp = &at; return p }
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "a", CreationTimestamp: at}}
	gone := job.DeepCopy()
	gone.DeletionTimestamp = &at
	running := pod("a-1", "a", at.Time, corev1.PodRunning)
	for _, c := range []struct {
		name string
		jobs []*batchv1.Job
		pods []*corev1.Pod
		want bool
	}{
		{"a pod", nil, []*corev1.Pod{deleted(pod("a", "", at.Time, corev1.PodPending))}, true},
		{"a Job", []*batchv1.Job{gone}, []*corev1.Pod{running}, true},
		{"the pod of a Job", []*batchv1.Job{job}, []*corev1.Pod{deleted(pod("a-1", "a", at.Time, corev1.PodRunning))}, true},
		{"the last but one pod of a Job", []*batchv1.Job{job}, []*corev1.Pod{deleted(pod("a-0", "a", at.Add(-time.Minute), corev1.PodRunning)), running}, false},
		{"nothing", []*batchv1.Job{job}, []*corev1.Pod{running}, false},
	} {
		if all := units(c.jobs, c.pods, at.Time); len(all) != 1 || all[0].Leaving != c.want {
			t.Errorf("%s is deleted: %+v", c.name, all)
		}
	}
}

// Many units that no watch has shown are looked for by two calls.
func TestManyUnseen(t *testing.T) {
	w := newWorld(t, podManifest)
	for i := range 20 {
		w.cluster.note(platform.Unit{Spec: platform.Spec{Name: fmt.Sprintf("site-plain-%d", i)}, Created: time.Now().Add(-2 * unseen)})
	}
	w.client.ClearActions()
	if all, err := w.cluster.List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("%d units count, %v", len(all), err)
	}
	var calls []string
	for _, a := range w.client.Actions() {
		if a.GetVerb() != "watch" { // the informers may begin late
			calls = append(calls, a.GetVerb())
		}
	}
	if len(calls) != 2 {
		t.Errorf("%q, want two calls", calls)
	}
}

// A unit whose pod was replaced can be withdrawn while the new pod waits.
func TestWithdrawalOfReplacedPod(t *testing.T) {
	w := newWorld(t, jobManifest)
	if err := w.cluster.Create(t.Context(), spec1); err != nil {
		t.Fatal(err)
	}
	w.end(spec1.Name, corev1.PodFailed, 1)
	if err := w.cluster.Withdraw(t.Context(), spec1.Name); err != nil {
		t.Error(err)
	}
	if _, err := w.client.BatchV1().Jobs("ns").Get(t.Context(), spec1.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Job is there: %v", err)
	}
}

// A right that is missing is said at once.
func TestMissingRight(t *testing.T) {
	w := newWorld(t, jobManifest)
	w.client.PrependReactor("list", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "", errors.New("no right"))
	})
	_, err := New(t.Context(), w.client, "site", "ns", DefaultGPU, templates(jobManifest), nil)
	if err == nil || !strings.Contains(err.Error(), "needs list, watch, create and delete of both") {
		t.Errorf("the error is %v", err)
	}
}

// Of what others may write into a pod, the watch keeps no more than is looked at.
func TestWhatIsKeptOfPods(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	p := pod("a", "", time.Now(), corev1.PodRunning)
	p.Labels = map[string]string{labelProvisioner: "site", labelUnit: "a", labelTemplate: "plain", labelShape: "one", "other": "x"}
	p.Annotations = map[string]string{noteUser: "alice" + long, noteGroup: long, noteSize: "1 2 3 4", "other": long, noncePrefix + "payload": long}
	p.Spec.Containers = []corev1.Container{{Name: "payload", Image: long}}
	job := &batchv1.Job{ObjectMeta: *p.ObjectMeta.DeepCopy()}
	for _, object := range []metav1.Object{p, job} {
		if _, err := slim(object); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(object)
		if err != nil || len(text) > 4<<10 || object.GetLabels()[labelProvisioner] != "site" {
			t.Errorf("%d bytes are kept, with the labels %v; %v", len(text), object.GetLabels(), err)
		}
	}
	u := units(nil, []*corev1.Pod{p}, time.Now())[0]
	if u.Template != "plain" || u.Shape != "one" || u.Size.Memory != 2 || u.Use != platform.Used || !strings.HasPrefix(u.User, "alice") || len(u.User) > maxNote {
		t.Errorf("the unit is %+v", u)
	}
}
