package k8sexec

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"podstarter/k8sexec/podapi"
	"podstarter/k8sexec/verdict"
)

// call makes one API call patiently. An error is a *verdict.Failure, or the cause of
// ctx's end.
func (b *Backend) call(ctx context.Context, verb string, call func(context.Context, podapi.API) error) error {
	api, err := b.connect()
	if err != nil {
		return verdict.OfAPI(err)
	}
	err = b.patient(ctx, verb, func(ctx context.Context) error { return call(ctx, api) })
	if err == nil || ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return err
	}
	return verdict.OfAPI(err)
}

// follow calls see with the pod and then with each of its later states, until see
// returns true or ctx ends. It opens a watch that ended again, and misses nothing
// unless that took longer than the API server remembers.
func (b *Backend) follow(ctx context.Context, pod *corev1.Pod, see func(*corev1.Pod) bool) {
	if see(pod) {
		return
	}
	api, err := b.connect()
	if err != nil {
		return // the patch before had the same error
	}
	version := pod.ResourceVersion
	pause := b.timing.apiRetry
	for ctx.Err() == nil {
		next, done, err := b.watchOnce(ctx, api, version, see)
		if done {
			return
		}
		if err == nil && next != version {
			pause = b.timing.apiRetry
		}
		version = next
		switch {
		case podapi.IsExpired(err):
			pod, getErr := b.getOnce(ctx, api)
			if getErr == nil {
				if see(pod) {
					return
				}
				version = pod.ResourceVersion
			}
		case apierrors.IsForbidden(err):
			b.log.Warn("the service account may not watch the pod, so the starter does not see failures of the kubelet", "error", err)
			return
		case err != nil && ctx.Err() == nil:
			b.log.Warn("watch of the pod failed, will try again", "pause", pause, "error", err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		pause = min(2*pause, b.timing.apiCall/2)
	}
}

func (b *Backend) getOnce(ctx context.Context, api podapi.API) (*corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, b.timing.apiCall)
	defer cancel()
	return api.Get(ctx)
}

// watchOnce follows one watch to its end and returns the version to go on from.
func (b *Backend) watchOnce(ctx context.Context, api podapi.API, version string, see func(*corev1.Pod) bool) (next string, done bool, err error) {
	w, err := api.Watch(ctx, version)
	if err != nil {
		return version, false, err
	}
	defer w.Stop()
	for {
		select {
		case event, open := <-w.ResultChan():
			if !open {
				return version, false, nil
			}
			pod, isPod := event.Object.(*corev1.Pod)
			switch {
			case event.Type == watch.Error:
				return version, false, apierrors.FromObject(event.Object)
			case !isPod:
				continue
			case event.Type == watch.Deleted && pod.DeletionTimestamp == nil:
				// Removed by force: the last state does not say so.
				pod = pod.DeepCopy()
				pod.Status.Phase, pod.Status.Reason, pod.Status.Message = corev1.PodFailed, verdict.ReasonPodDeleted, "the pod was deleted"
			}
			version = pod.ResourceVersion
			if see(pod) {
				return version, true, nil
			}
		case <-ctx.Done():
			return version, false, nil
		}
	}
}
