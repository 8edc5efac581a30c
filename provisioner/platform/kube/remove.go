package kube

import (
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podstarter/provisioner/platform"
)

// Withdraw implements platform.Platform. The preconditions make the API server refuse
// if the object has changed since it was looked at, so a bare pod is deleted as the
// watch has shown it: each status that says that it has begun is a change. A Job does
// not change when its pod begins, only later, when that is ready or over. So its pods
// are looked at just before the deletion.
//
// In two windows a unit can begin all the same: what the kubelet has not reported yet
// is known to nobody, and a Job's pod may begin between the look and the deletion.
// Then it ends as in a drain.
func (c *Cluster) Withdraw(ctx context.Context, name string) error {
	job, pods, err := c.shown(ctx, name)
	if err != nil {
		return err
	}
	if job != nil || len(pods) > 0 {
		if err := c.withdraw(ctx, name, job, pods); !apierrors.IsConflict(err) {
			return err
		}
	}
	// No watch has shown it, or it has changed since.
	if job, pods, err = c.lookUp(ctx, name); err != nil {
		return err
	}
	err = c.withdraw(ctx, name, job, pods)
	if apierrors.IsConflict(err) {
		return platform.ErrBegun
	}
	return err
}

// withdraw removes a unit that has not begun and is as it was when it was looked at.
func (c *Cluster) withdraw(ctx context.Context, name string, job *batchv1.Job, pods []corev1.Pod) error {
	for i := range pods {
		again := job != nil && pods[i].Status.Phase == corev1.PodFailed // the Job makes another pod
		if begun(&pods[i]) && !again {
			return platform.ErrBegun
		}
	}
	return c.remove(ctx, name, job, pods, same)
}

// looks is how often a unit that is to end is looked up, since it changes meanwhile.
const looks = 2

// End implements platform.Ender. That a job begins is written into the pod, so a bare
// pod that no job has is deleted as the watch has shown it, or else as it was looked up.
func (c *Cluster) End(ctx context.Context, name string) error {
	job, pods, err := c.shown(ctx, name)
	for n := 0; err == nil; n++ {
		if job != nil || len(pods) > 0 {
			if err := c.end(ctx, name, job, pods); !apierrors.IsConflict(err) {
				return err
			} else if n == looks {
				return fmt.Errorf("ending %s: whenever it is looked up it changes, and a job may begin in it: %w", name, err)
			}
		} else if n > 0 {
			c.drop(name)
			return nil
		}
		job, pods, err = c.lookUp(ctx, name)
	}
	return err
}

// end removes a unit in which no job has begun.
func (c *Cluster) end(ctx context.Context, name string, job *batchv1.Job, pods []corev1.Pod) error {
	// In a pod that is over, no job runs: the Job has made another one since.
	over := func(p *corev1.Pod) bool {
		return p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded
	}
	if slices.ContainsFunc(pods, func(p corev1.Pod) bool { return !over(&p) && use(&p) == platform.Used }) {
		return fmt.Errorf("ending %s: %w", name, platform.ErrBegun)
	}
	condition := same
	if job != nil {
		condition = itself // a Job does not change when a job begins in its pod
	}
	return c.remove(ctx, name, job, pods, condition)
}

// remove deletes the Job of a unit, or its bare pod.
func (c *Cluster) remove(ctx context.Context, name string, job *batchv1.Job, pods []corev1.Pod, condition func(metav1.Object) *metav1.Preconditions) error {
	var err error
	if job != nil {
		background := metav1.DeletePropagationBackground
		err = c.client.BatchV1().Jobs(c.namespace).Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &background, Preconditions: condition(job)})
	} else if i := slices.IndexFunc(pods, func(p corev1.Pod) bool { return p.Name == name }); i >= 0 {
		err = c.client.CoreV1().Pods(c.namespace).Delete(ctx, name, metav1.DeleteOptions{Preconditions: condition(&pods[i])})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting: %w", err)
	}
	c.drop(name)
	return nil
}

// same demands that an object is as it was when it was looked at.
func same(o metav1.Object) *metav1.Preconditions {
	uid, version := o.GetUID(), o.GetResourceVersion()
	return &metav1.Preconditions{UID: &uid, ResourceVersion: &version}
}

// itself demands that an object is not another one with its name.
func itself(o metav1.Object) *metav1.Preconditions {
	uid := o.GetUID()
	return &metav1.Preconditions{UID: &uid}
}

// shown returns the bare pod of a unit as the watch has shown it, or its Job, with the
// pods that the API server has of it. It returns nothing if no watch has shown the unit.
// What has the name and is not of this provisioner is not returned.
func (c *Cluster) shown(ctx context.Context, name string) (*batchv1.Job, []corev1.Pod, error) {
	if job, err := c.jobs.Get(name); err == nil {
		if job.Labels[labelUnit] != name {
			return nil, nil, nil
		}
		pods, err := c.podsOf(ctx, name)
		return job, pods, err
	}
	if pod, err := c.pods.Get(name); err == nil && pod.Labels[labelUnit] == name && owner(pod) == name {
		return nil, []corev1.Pod{*pod}, nil
	}
	return nil, nil, nil
}

// selected selects what is of a unit.
func (c *Cluster) selected(name string) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: labelProvisioner + "=" + c.name + "," + labelUnit + "=" + name}
}

// podsOf asks the API server for the pods of a unit.
func (c *Cluster) podsOf(ctx context.Context, name string) ([]corev1.Pod, error) {
	pods, err := c.client.CoreV1().Pods(c.namespace).List(ctx, c.selected(name))
	if err != nil {
		return nil, fmt.Errorf("looking up the pod of %s: %w", name, err)
	}
	return slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return owner(&p) != name }), nil
}

// lookUp asks the API server for the Job of a unit, if it has one, and its pods.
// What has the name and is not of this provisioner is not returned.
func (c *Cluster) lookUp(ctx context.Context, name string) (*batchv1.Job, []corev1.Pod, error) {
	jobs, err := c.client.BatchV1().Jobs(c.namespace).List(ctx, c.selected(name))
	if err != nil {
		return nil, nil, fmt.Errorf("looking up the Job of %s: %w", name, err)
	}
	pods, err := c.podsOf(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	var job *batchv1.Job
	for i := range jobs.Items {
		if jobs.Items[i].Name == name {
			job = &jobs.Items[i]
		}
	}
	return job, pods, nil
}
