package k8sexec

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"podstarter/k8sexec/pilotstop"
	"podstarter/k8sexec/verdict"
	"podstarter/payload"
	"podstarter/rescue"
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

// Suspect implements payload.Container. The kubelet tells a sidecar to stop only when the
// pod's own containers have ended (kuberuntime_container.go:killContainersWithSyncResult).
// But the startd, in one of these, is told, and vacates its jobs. If it lets them retire
// first, word comes from the pilot's preStop hook; see pilotstop.
func (c *container) Suspect() {
	select {
	case c.suspected <- struct{}{}:
	default: // nobody has to look, or somebody is about to
	}
}

// foresee gives a notice if the container is about to be ended.
func (c *container) foresee(ctx context.Context) {
	var pilot <-chan struct{}
	if c.suspected != nil {
		if watch, err := pilotstop.NewWatch(c.lease.backend.opt.PrivateDir); err != nil {
			c.lease.backend.log.Warn("cannot learn when the pilot is stopped; a job that retires is not told that its pod ends", "error", err)
		} else {
			defer rescue.Go(watch.Close) // see payload.Dial
			pilot = watch.Changed()
			if watch.Told() {
				c.Suspect()
			}
		}
	}
	// The kubelet publishes that it ends a pod while it does so (kubelet.go:SyncTerminatingPod). So there is a second look.
	var again <-chan time.Time
	for {
		select {
		case <-c.client.Stopping():
			told := time.Now()
			pod, err := c.lastWords(ctx)
			if err != nil {
				c.lease.backend.log.Warn("the container is told to stop, and the pod cannot be asked why", "container", c.lease.name, "error", err)
			}
			c.ending <- c.notice(pod, told)
			return
		case <-pilot:
			c.Suspect()
		case <-c.suspected:
			if c.ends(ctx) {
				return
			}
			again = time.After(c.lease.backend.timing.notice)
		case <-again:
			if c.ends(ctx) {
				return
			}
		case <-c.client.Lost():
			return
		case <-ctx.Done():
			return
		}
	}
}

// Doom implements payload.Container. The kubelet tells pilot and payload to stop at the same
// time, and a job that ends at once may do so before the notice has been made.
func (c *container) Doom(ctx context.Context) (payload.Notice, bool) {
	select {
	case n := <-c.ending:
		return n, true
	default:
		return c.takenDown(ctx)
	}
}

// ends gives a notice if the pod is being taken down.
func (c *container) ends(ctx context.Context) bool {
	n, ends := c.takenDown(ctx)
	if ends {
		c.ending <- n
	}
	return ends
}

// takenDown asks the API server whether the pod is being taken down.
func (c *container) takenDown(ctx context.Context) (payload.Notice, bool) {
	told := time.Now()
	pod, err := c.lastWords(ctx)
	if err != nil {
		c.lease.backend.log.Warn("the job or its pilot is told to end, and the pod cannot be asked whether it is being taken down", "container", c.lease.name, "error", err)
		return payload.Notice{}, false
	}
	if verdict.OfPod(pod, "") == nil && verdict.Disruption(pod) == "" && !isOverdue(pod, told) {
		return payload.Notice{}, false
	}
	return c.notice(pod, told), true
}

// notice says why the pod is being taken down, and when it will be gone. What the pod does
// not show, or nobody could read, in which case it is nil, counts from told on, with the grace period as
// known at the binding.
func (c *container) notice(pod *corev1.Pod, told time.Time) payload.Notice {
	n := payload.Notice{Reason: "The pod that the job runs in is being taken down.", Left: c.grace - time.Since(told)}
	if pod != nil {
		if pod.DeletionTimestamp != nil {
			// The time at which the kubelet will kill what is left, in whole seconds.
			n.Left = time.Until(pod.DeletionTimestamp.Time)
		}
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

// lastWords reads the pod from the API server, within the time that a notice may take.
func (c *container) lastWords(ctx context.Context) (*corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, c.lease.backend.timing.notice)
	defer cancel()
	api, err := c.lease.backend.connect()
	if err != nil {
		return nil, err
	}
	return api.Get(ctx)
}
