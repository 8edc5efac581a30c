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

// Withdraw implements platform.Platform. The preconditions make the API server
// refuse if the object has changed since it was looked at. A Job's pod can still
// begin between the look and the deletion; then it ends as in a drain.
func (c *Cluster) Withdraw(ctx context.Context, name string) error {
	job, pods, err := c.lookUp(ctx, name)
	if err != nil {
		return err
	}
	for _, p := range pods {
		again := job != nil && p.Status.Phase == corev1.PodFailed // the Job makes another pod
		if begun(&p) && !again {
			return platform.ErrBegun
		}
	}
	err = c.remove(ctx, name, job, pods, same)
	if apierrors.IsConflict(err) {
		return platform.ErrBegun
	}
	return err
}

// End implements platform.Ender.
func (c *Cluster) End(ctx context.Context, name string) error {
	job, pods, err := c.lookUp(ctx, name)
	if err != nil {
		return err
	}
	// In a pod that is over, no job runs: the Job has made another one since.
	over := func(p *corev1.Pod) bool {
		return p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded
	}
	if slices.ContainsFunc(pods, func(p corev1.Pod) bool { return !over(&p) && use(&p) == platform.Used }) {
		return fmt.Errorf("ending %s: %w", name, platform.ErrBegun)
	}
	return c.remove(ctx, name, job, pods, func(o metav1.Object) *metav1.Preconditions {
		uid := o.GetUID()
		return &metav1.Preconditions{UID: &uid}
	})
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

// lookUp asks the API server for the Job of a unit, if it has one, and its pods.
// What has the name and is not of this provisioner is not returned.
func (c *Cluster) lookUp(ctx context.Context, name string) (*batchv1.Job, []corev1.Pod, error) {
	selected := metav1.ListOptions{LabelSelector: labelProvisioner + "=" + c.name + "," + labelUnit + "=" + name}
	jobs, err := c.client.BatchV1().Jobs(c.namespace).List(ctx, selected)
	if err != nil {
		return nil, nil, fmt.Errorf("looking up the Job of %s: %w", name, err)
	}
	pods, err := c.client.CoreV1().Pods(c.namespace).List(ctx, selected)
	if err != nil {
		return nil, nil, fmt.Errorf("looking up the pod of %s: %w", name, err)
	}
	var job *batchv1.Job
	for i := range jobs.Items {
		if jobs.Items[i].Name == name {
			job = &jobs.Items[i]
		}
	}
	return job, slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return owner(&p) != name }), nil
}
