package kube

import (
	"context"
	"errors"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"podstarter/provisioner/backoff"
	"podstarter/provisioner/platform"
	"podstarter/provisioner/platform/platformtest"
)

func TestPlatformWithPods(t *testing.T) {
	platformtest.Run(t, func(t *testing.T) platformtest.World { return newWorld(t, podManifest) })
}

func TestPlatformWithJobs(t *testing.T) {
	platformtest.Run(t, func(t *testing.T) platformtest.World { return newWorld(t, jobManifest) })
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
