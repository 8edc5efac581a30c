package podwatch

import (
	"context"
	"errors"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"podstarter/k8sexec/podapi"
	"podstarter/k8sexec/verdict"
)

// Times are the periods of patience with an API server.
type Times struct {
	// Patience is how long a call is repeated while the API server is away.
	Patience time.Duration
	// Call bounds one attempt.
	Call time.Duration
	// Retry is the first pause between two attempts; it doubles up to Call/2.
	Retry time.Duration
}

// Pod is one pod at the API server. It is safe for concurrent use.
type Pod struct {
	// Connect gives the API client of the pod.
	Connect func() (podapi.API, error)
	Times   Times
	Log     *slog.Logger
}

// Call makes one API call patiently. An error is a *verdict.Failure, or the cause of
// ctx's end.
func (p *Pod) Call(ctx context.Context, verb string, call func(context.Context, podapi.API) error) error {
	api, err := p.Connect()
	if err != nil {
		return verdict.OfAPI(err)
	}
	err = p.patient(ctx, verb, func(ctx context.Context) error { return call(ctx, api) })
	if err == nil || ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return err
	}
	return verdict.OfAPI(err)
}

// Follow calls see with the pod and then with each of its later states, until see
// returns true or ctx ends. It opens a watch that ended again, and misses nothing
// unless that took longer than the API server remembers.
func (p *Pod) Follow(ctx context.Context, pod *corev1.Pod, see func(*corev1.Pod) bool) {
	if see(pod) {
		return
	}
	api, err := p.Connect()
	if err != nil {
		return // the patch before had the same error
	}
	version := pod.ResourceVersion
	pause := p.Times.Retry
	for ctx.Err() == nil {
		next, done, err := p.watchOnce(ctx, api, version, see)
		if done {
			return
		}
		if err == nil && next != version {
			pause = p.Times.Retry
		}
		version = next
		switch {
		case podapi.IsExpired(err):
			pod, getErr := p.getOnce(ctx, api)
			if getErr == nil {
				if see(pod) {
					return
				}
				version = pod.ResourceVersion
			}
		case apierrors.IsForbidden(err):
			p.Log.Warn("the service account may not watch the pod, so the starter does not see failures of the kubelet", "error", err)
			return
		case err != nil && ctx.Err() == nil:
			p.Log.Warn("watch of the pod failed, will try again", "pause", pause, "error", err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		pause = min(2*pause, p.Times.Call/2)
	}
}

func (p *Pod) getOnce(ctx context.Context, api podapi.API) (*corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, p.Times.Call)
	defer cancel()
	return api.Get(ctx)
}

// watchOnce follows one watch to its end and returns the version to go on from.
func (p *Pod) watchOnce(ctx context.Context, api podapi.API, version string, see func(*corev1.Pod) bool) (next string, done bool, err error) {
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
