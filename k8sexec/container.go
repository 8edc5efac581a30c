package k8sexec

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/opencontainers/go-digest"
	corev1 "k8s.io/api/core/v1"

	"podstarter/k8sexec/imageref"
	"podstarter/k8sexec/podapi"
	"podstarter/k8sexec/podwatch"
	"podstarter/k8sexec/registry"
	"podstarter/k8sexec/verdict"
	"podstarter/payload"
	"podstarter/rescue"
)

// container implements payload.Container: a payload container that runs the requested
// image. Its methods may be called from several goroutines.
type container struct {
	lease  *lease
	client *payload.Client
	image  imageref.Image
	spec   string // the image string in the pod's spec, where the tag beside a digest may be a throw-away one
	id     string // in the runtime; empty if it could not be found out
	bound  time.Time
	how    payload.How
	lost   chan error
	ending chan payload.Notice
	// suspected has a value when somebody has to look whether the pod is being taken down;
	// nil if the wrapper is told.
	suspected chan struct{}
	grace     time.Duration // of the pod, as it was at the binding
	ended     atomic.Bool   // the kubelet says that it has ended

	mu     sync.Mutex
	digest digest.Digest
	comes  chan struct{} // closed when the digest was learned, or will not be; nil if nobody waits for it

	over context.CancelFunc // ends the background work
	busy rescue.Group
}

func newContainer(l *lease, client *payload.Client, p plan, known slot) *container {
	b := l.backend
	c := &container{lease: l, client: client, image: p.image, spec: p.spec, digest: p.digest, bound: time.Now(),
		lost: make(chan error, 1), ending: make(chan payload.Notice, 1), grace: known.Grace}
	if known.Sidecar {
		c.suspected = make(chan struct{}, 1)
	}
	var err error
	if c.id, err = containerOfWrapper(b.proc, client); err != nil {
		b.log.Debug("cannot tell the container's ID, hence not learn digests", "container", l.name, "error", err)
	}
	ctx, over := context.WithCancel(b.life)
	c.over = over
	c.busy.Go(func() { c.attend(ctx) })
	return c
}

// Client implements payload.Container.
func (c *container) Client() payload.Wrapper { return c.client }

// Image implements payload.Container: the image as requested, spelled out with
// registry, repository, and tag or digest.
func (c *container) Image() string { return c.image.String() }

// Command implements payload.Container. The registry is asked by the digest that the container runs, and
// by nothing else: the tag may point to another image by now.
func (c *container) Command(ctx context.Context) (payload.ImageCommand, error) {
	ask := c.lease.backend.registry
	if ask == nil {
		return payload.ImageCommand{}, errors.New("this site does not ask registries (" + registry.KnobAsk + ")")
	}
	d, err := c.runningDigest(ctx)
	var found registry.Command
	if err == nil {
		found, err = ask.Command(ctx, c.image, d)
	}
	return payload.ImageCommand{Entrypoint: found.Entrypoint, Cmd: found.Cmd}, err
}

// runningDigest waits for the digest of what the container runs, which the kubelet reports a second or two
// after the start if it was not pinned.
func (c *container) runningDigest(ctx context.Context) (digest.Digest, error) {
	c.mu.Lock()
	d, comes := c.digest, c.comes
	c.mu.Unlock()
	if d != "" {
		return d, nil
	}
	if why := c.lease.pinned.err; why != nil {
		return "", why // and the registry would say no more now
	}
	if comes == nil {
		return "", errors.New("the digest of the image that runs is not known")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.lease.backend.timing.learn, errors.New("the kubelet has not reported the digest of the image that runs"))
	defer cancel()
	select {
	case <-comes:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.digest == "" {
		return "", errors.New("the container runtime does not report the digest of the image that runs")
	}
	return c.digest, nil
}

// imageID is the image with the digest that the container runs, repository@digest. It
// is empty while the digest is not known: the kubelet reports that of a new image a
// second or two after the start.
func (c *container) imageID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.digest == "" {
		return ""
	}
	return c.image.Repository + "@" + c.digest.String()
}

// Lost implements payload.Container. It gives one *payload.Verdict if the container
// ends during this activation, with the reason if the pod's status shows it. That may
// come some seconds after the loss of the wrapper's connection (Client().Lost()), which
// is known at once.
func (c *container) Lost() <-chan error { return c.lost }

// close ends the connection and everything in the background.
func (c *container) close() {
	c.over()
	_ = c.client.Close()
	c.busy.Wait()
}

// learnFrom takes the feed over until the lessons are learned, or this container is
// over.
func (c *container) learnFrom(states *podwatch.Feed, open *lessons) {
	ctx, cancel := context.WithTimeout(c.lease.backend.life, c.lease.backend.timing.learn)
	states.Start()
	c.mu.Lock()
	if c.digest == "" {
		c.comes = make(chan struct{})
	}
	c.mu.Unlock()
	c.busy.Go(func() {
		defer func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.hasCome()
		}()
		defer cancel()
		defer states.Stop()
		for len(open.open) > 0 {
			select {
			case pod := <-states.Pods:
				open.take(pod, c.learned)
			case <-c.client.Lost():
				return
			case <-ctx.Done():
				return
			}
		}
	})
}

// learned notes the digest of this container if the lesson was its own.
func (c *container) learned(l lesson, d digest.Digest) {
	if l.container != c.id {
		return
	}
	if d != "" {
		c.lease.warmed("", l.image, d)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.digest = d
	c.hasCome()
}

// hasCome ends the wait for the digest. The caller has the lock.
func (c *container) hasCome() {
	if c.comes != nil {
		close(c.comes)
		c.comes = nil
	}
}

// attend waits for the end of the connection, or the notice that it is near, and finds
// out the reason.
func (c *container) attend(ctx context.Context) {
	c.foresee(ctx)
	select {
	case <-c.client.Lost():
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return // released: we ended it ourselves
	}
	f := c.autopsy(ctx)
	if ctx.Err() != nil {
		return
	}
	f.Image, f.Spec = c.image.String(), c.spec
	v := verdict.Judge(f).Verdict()
	b := c.lease.backend
	b.log.Warn("Container lost", "container", c.lease.name, "blame", v.Blame, "subcode", v.Subcode, "reason", v.Reason)
	c.lost <- v
}

// autopsy asks the pod's status how the container ended. The kubelet notices
// within a second or so.
func (c *container) autopsy(ctx context.Context) verdict.Failure {
	b := c.lease.backend
	unknown := verdict.Failure{Origin: verdict.FromWrapper, Reason: verdict.ReasonContainerEnd, Message: "the pod's status does not tell why"}
	ctx, cancel := context.WithTimeout(ctx, b.timing.autopsy)
	defer cancel()
	api, err := b.connect()
	if err != nil {
		unknown.Message = err.Error()
		return unknown
	}
	pod, err := api.Get(ctx)
	if err != nil {
		unknown.Message = fmt.Sprintf("the pod's status cannot be read: %v", err)
		return unknown
	}
	found := unknown
	b.follow(ctx, pod, func(pod *corev1.Pod) bool {
		if f := verdict.OfPod(pod, ""); f != nil {
			found = *f
			return true
		}
		exit := c.exitIn(podapi.StatusOf(pod, c.lease.name))
		if exit == nil {
			return false
		}
		c.ended.Store(true)
		found = verdict.Failure{Origin: verdict.FromContainer, Reason: verdict.ReasonContainerEnd, Message: exit.Message, Exit: exit}
		if exit.Reason == verdict.ReasonOutOfMemory {
			found.Reason = verdict.ReasonOutOfMemory
		}
		found.MemoryLimit = podapi.MemoryLimit(pod, c.lease.name)
		return true
	})
	return found
}

// exitIn finds this container's end in the status, which may show it as the current
// container or already as the last one.
func (c *container) exitIn(status corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	for _, ended := range []*corev1.ContainerStateTerminated{status.State.Terminated, status.LastTerminationState.Terminated} {
		switch {
		case ended == nil:
		case c.id != "" && podapi.BareID(ended.ContainerID) == c.id:
			return ended
		case c.id == "" && !ended.FinishedAt.Time.Before(c.bound.Truncate(time.Second)):
			// Status times are whole seconds of this node's clock.
			return ended
		}
	}
	return nil
}
