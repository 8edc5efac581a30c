package k8sexec

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"podstarter/k8sexec/verdict"
	"podstarter/payload"
)

// defaultGrace is the grace period of a pod that names none
// (core/v1 defaults.go:SetDefaults_PodSpec).
const defaultGrace = corev1.DefaultTerminationGracePeriodSeconds * time.Second

// graceOf is the grace period of a pod's containers, if nothing shortens it.
func graceOf(pod *corev1.Pod) time.Duration {
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	return defaultGrace
}

// Ending implements payload.Container. It gives one notice if the container was told to
// stop while its job runs: the pod is being taken down. That does not kill the job; see
// [payload.Client.Stopping].
func (c *container) Ending() <-chan payload.Notice { return c.ending }

// notice asks the pod for the reason and the time that is left. Without an answer it
// counts the grace period, as known at the binding, from told on.
func (c *container) notice(ctx context.Context, told time.Time) payload.Notice {
	b := c.lease.backend
	n := payload.Notice{Reason: "The pod that the job runs in is being taken down.", Left: c.grace - time.Since(told)}
	ctx, cancel := context.WithTimeout(ctx, b.timing.notice)
	defer cancel()
	pod, err := c.lastWords(ctx)
	switch {
	case err != nil:
		b.log.Warn("the container is told to stop, and the pod cannot be asked why", "container", c.lease.name, "error", err)
	case pod.DeletionTimestamp != nil:
		// The time at which the kubelet will kill what is left, in whole seconds.
		n.Left = time.Until(pod.DeletionTimestamp.Time)
	}
	if err == nil {
		if f := verdict.OfPod(pod, ""); f != nil {
			n.Reason = fmt.Sprintf("The pod that the job runs in is being taken down (%s: %s).", f.Reason, f.Message)
		} else if isOverdue(pod, told) {
			n.Reason = "The pod that the job runs in is being taken down: its activeDeadlineSeconds are over."
		}
	}
	n.Left = max(n.Left, 0)
	return n
}

// isOverdue says whether the pod's active deadline has passed. Its status says so only
// when everything in it has ended (kubelet active_deadline.go).
func isOverdue(pod *corev1.Pod, now time.Time) bool {
	limit, start := pod.Spec.ActiveDeadlineSeconds, pod.Status.StartTime
	return limit != nil && start != nil && !now.Before(start.Add(time.Duration(*limit)*time.Second))
}

// lastWords reads the pod from the API server.
func (c *container) lastWords(ctx context.Context) (*corev1.Pod, error) {
	api, err := c.lease.backend.connect()
	if err != nil {
		return nil, err
	}
	return api.Get(ctx)
}
