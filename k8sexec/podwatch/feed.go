package podwatch

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"podstarter/rescue"
)

// Feed delivers the states of a pod from one watch. It may outlive the wait for a
// container: the status that shows a digest comes later.
type Feed struct {
	// Pods gives one state after the other.
	Pods chan *corev1.Pod
	// Stop ends the feed; it may be called more than once.
	Stop context.CancelFunc
	once sync.Once
	open func()
}

// NewFeed makes a feed that begins with pod. It ends with ctx. Follow is [Pod.Follow] or does the same.
func NewFeed(ctx context.Context, pod *corev1.Pod, follow func(context.Context, *corev1.Pod, func(*corev1.Pod) bool)) *Feed {
	ctx, stop := context.WithCancel(ctx)
	f := &Feed{Pods: make(chan *corev1.Pod), Stop: stop}
	f.open = func() {
		follow(ctx, pod, func(pod *corev1.Pod) bool {
			select {
			case f.Pods <- pod:
			case <-ctx.Done():
			}
			return false
		})
	}
	return f
}

// Start opens the watch, the first time it is called.
func (f *Feed) Start() { f.once.Do(func() { rescue.Go(f.open) }) }
