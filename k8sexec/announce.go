package k8sexec

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"podstarter/k8sexec/options"
	"podstarter/k8sexec/podapi"
)

// ErrNotGranted says that the pilot may not make events.
var ErrNotGranted = errors.New("the pilot may not create events; apply deploy/components/events, or set POD_STARTER_POD_EVENTS = False")

// Announce makes an event of the pilot's pod, by two calls. It tries once: an event is of no use
// later.
func Announce(ctx context.Context, opt options.Options, e podapi.Event) error {
	if err := opt.Complete(); err != nil {
		return err
	}
	client, err := podapi.New(opt)
	if err != nil {
		return err
	}
	pod, err := client.Get(ctx)
	if err != nil {
		return fmt.Errorf("read pod %s/%s to make an event of it: %w", opt.PodNamespace, opt.PodName, err)
	}
	err = client.CreateEvent(ctx, pod, e, time.Now())
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w: %w", ErrNotGranted, err)
	case err != nil:
		return fmt.Errorf("make the event %s of pod %s/%s: %w", e.Reason, opt.PodNamespace, opt.PodName, err)
	}
	return nil
}
