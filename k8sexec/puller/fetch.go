package puller

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"podstarter/k8sexec/podapi"
	"podstarter/k8sexec/podwatch"
	"podstarter/k8sexec/verdict"
	"podstarter/rescue"
)

// errUnusable means that this puller cannot be used, whatever the image.
var errUnusable = errors.New("not usable")

func (p *puller) unusable(format string, args ...any) error {
	return fmt.Errorf("puller %s is %w: "+format, append([]any{p.name, errUnusable}, args...)...)
}

// watched is the puller's pod.
func (p *puller) watched() *podwatch.Pod {
	return &podwatch.Pod{Connect: func() (podapi.API, error) { return p.Connect(p.name.Pod) }, Times: p.Times, Log: p.Log}
}

// isOccupied says whether the kubelet is still at a pull that nobody waits for: of a job
// that was removed, a starter that died, a time that ran out. It would look at another
// image only after that.
func (p *puller) isOccupied(ctx context.Context) bool {
	if p.left == "" {
		return false
	}
	var pod *corev1.Pod
	err := p.watched().Call(ctx, "get of puller "+p.name.Pod, func(ctx context.Context, api podapi.API) (err error) {
		pod, err = api.Get(ctx)
		return err
	})
	if err != nil {
		return false // the patch will have the same error, and says it
	}
	status := podapi.StatusOf(pod, p.name.Container)
	switch {
	case p.known.PodUID != string(pod.UID):
		return false
	case pod.Status.ObservedGeneration > 0 && pod.Status.ObservedGeneration < pod.Generation:
		return true
	case status.State.Waiting != nil:
		return status.State.Waiting.Reason == "" || status.State.Waiting.Reason == "ContainerCreating"
	case status.State.Running == nil:
		return true
	}
	return podapi.BareID(status.ContainerID) == p.known.ContainerID
}

// fetch has the puller pull the image, and returns when it is on the node. The hold has
// the puller's lock.
func (p *puller) fetch(ctx context.Context, req Request) (*Hold, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, p.Timeout, podwatch.ErrTimeout)
	defer cancel()
	node, err := req.Node(ctx)
	if err != nil {
		return nil, err
	}
	watched := p.watched()
	if p.known.Spec == "" {
		if err := p.survey(ctx, watched); err != nil {
			return nil, err
		}
	}
	before := p.known
	p.known.Withdrawn = ""
	p.known.Spec = "" // from here on the pod may be changed even if this process dies
	if err := p.note(); err != nil {
		return nil, &verdict.Failure{Origin: verdict.FromPilot, Reason: verdict.ReasonPrivateDir, Err: err}
	}
	pod, err := p.patch(ctx, watched, req)
	if err != nil {
		return nil, err
	}
	if err := p.check(pod, node); err != nil {
		return nil, err
	}
	spec := podapi.SpecOf(pod, p.name.Container).Image // an admission webhook may have rewritten it
	if before.PodUID != string(pod.UID) {
		before, p.known.Good = state{}, ""
	}
	p.known.PodUID, p.known.Spec = string(pod.UID), spec
	p.noteOrWarn()
	w := &wait{
		puller: p, req: req, pod: watched, spec: spec, same: before.Spec == spec,
		tracker: podwatch.Track(podwatch.Change{Container: p.name.Container, Spec: spec, Before: before.Spec, Withdrawn: before.Withdrawn, Same: before.Spec == spec,
			Last: before.ContainerID, Failed: before.ContainerID == "", Doubt: p.Pace.Doubt}, pod),
		progress: podwatch.NewProgress("puller "+p.name.String(), spec, p.Pace.Progress, req.Report),
	}
	hold, err := w.follow(ctx, pod)
	f := (*verdict.Failure)(nil)
	if errors.As(err, &f) {
		f.Image, f.Spec = req.Image.String(), spec
	}
	if err == nil {
		return hold, nil
	}
	// If nobody waits any more, the kubelet goes on with its pull all the same.
	if f != nil && f.Origin != verdict.FromClock {
		p.known.Fetching = ""
	}
	p.goBack(ctx, watched)
	p.noteOrWarn()
	return nil, err
}

// goBack has the puller run what it ran before. Otherwise the kubelet would try the image
// again and again, for nobody, and each try could hang.
func (p *puller) goBack(ctx context.Context, watched *podwatch.Pod) {
	if p.known.Good == "" || p.known.Good == p.known.Spec {
		return
	}
	patch, err := podapi.ImagePatch(p.name.Container, p.known.Good)
	if err == nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.Times.Call)
		defer cancel()
		var api podapi.API
		if api, err = watched.Connect(); err == nil {
			_, err = api.Patch(ctx, patch, false)
		}
	}
	if err != nil {
		p.Log.Warn("cannot take an image back from a puller", "puller", p.name, "image", p.known.Spec, "error", err)
		p.known.Spec = ""
		return
	}
	p.known.Spec, p.known.Withdrawn = p.known.Good, p.known.Spec
}

// survey notes what the puller has, the first time.
func (p *puller) survey(ctx context.Context, watched *podwatch.Pod) error {
	var pod *corev1.Pod
	err := watched.Call(ctx, "get of puller "+p.name.Pod, func(ctx context.Context, api podapi.API) (err error) {
		pod, err = api.Get(ctx)
		return err
	})
	f := (*verdict.Failure)(nil)
	if errors.As(err, &f) {
		return p.unusable("%s", f.Message)
	}
	if err != nil {
		return err
	}
	spec := podapi.SpecOf(pod, p.name.Container)
	if spec == nil {
		return p.unusable("its pod has no container %s", p.name.Container)
	}
	p.known.PodUID, p.known.Spec = string(pod.UID), spec.Image
	if status := podapi.StatusOf(pod, p.name.Container); status.State.Running != nil && p.left == "" {
		p.known.Good, p.known.ContainerID = spec.Image, podapi.BareID(status.ContainerID)
	}
	return nil
}

// patch asks for the image. The errors are as those of Fetch, and errUnusable.
func (p *puller) patch(ctx context.Context, watched *podwatch.Pod, req Request) (*corev1.Pod, error) {
	patch, err := podapi.ImagePatch(p.name.Container, req.Spec)
	if err != nil {
		return nil, err
	}
	var pod *corev1.Pod
	err = watched.Call(ctx, "patch of puller "+p.name.Pod, func(ctx context.Context, api podapi.API) (err error) {
		pod, err = api.Patch(ctx, patch, false)
		return err
	})
	f := (*verdict.Failure)(nil)
	if errors.As(err, &f) {
		f.Image, f.Spec = req.Image.String(), req.Spec
		// What the cluster says about the image, it would say about the payload
		// container, too. All else is about this pod.
		if verdict.Judge(*f).Class != verdict.ToUser {
			return nil, p.unusable("%s", f.Message)
		}
	}
	return pod, err
}

// check makes sure that what this pod pulls will be on the pilot's node.
func (p *puller) check(pod *corev1.Pod, node string) error {
	switch {
	case pod.DeletionTimestamp != nil, pod.Status.Phase == corev1.PodFailed, pod.Status.Phase == corev1.PodSucceeded:
		return p.unusable("its pod is ending")
	case podapi.SpecOf(pod, p.name.Container) == nil:
		return p.unusable("its pod has no container %s", p.name.Container)
	case pod.Spec.NodeName == "":
		return p.unusable("its pod has no node yet")
	case pod.Spec.NodeName != node:
		return p.unusable("it is on node %s and the pilot on node %s; give it an affinity to the pilot's pod", pod.Spec.NodeName, node)
	}
	return nil
}

// wait is the wait for one pull.
type wait struct {
	*puller
	req      Request
	pod      *podwatch.Pod
	spec     string
	same     bool // as in the specification before
	tracker  *podwatch.Tracker
	progress *podwatch.Progress
}

func (w *wait) follow(ctx context.Context, pod *corev1.Pod) (*Hold, error) {
	feed := podwatch.NewFeed(ctx, pod, w.pod.Follow)
	defer feed.Stop()
	feed.Start()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	stir := time.NewTimer(w.Pace.Stir)
	defer stir.Stop()
	for {
		select {
		case pod := <-feed.Pods:
			if hold, err := w.look(pod); hold != nil || err != nil {
				return hold, err
			}
		case <-stir.C:
			if w.tracker.MayBeOverdue() {
				rescue.Go(func() { w.stir(ctx) })
			}
			stir.Reset(2 * w.progress.Waited())
		case <-tick.C:
			w.progress.Tell()
		case <-ctx.Done():
			return nil, w.progress.Ended(ctx)
		}
		if f := w.progress.Final(); f != nil {
			return nil, f
		}
	}
}

// look gives the hold if a state of the pod shows that the image is on the node.
func (w *wait) look(pod *corev1.Pod) (*Hold, error) {
	f := w.tracker.Look(pod)
	status := podapi.StatusOf(pod, w.name.Container)
	running, _ := w.tracker.Running()
	switch {
	case f != nil && f.Origin == verdict.FromPod:
		return nil, w.unusable("%s", f.Message)
	case running != "", w.same && status.State.Running != nil:
		return w.hold(status, true), nil
	case f != nil && !f.IsPull():
		// It was pulled, and cannot be started here. The payload container may do better,
		// and tells why if not.
		return w.hold(status, false), nil
	}
	w.progress.Saw(w.tracker.Describe(pod), f, false)
	return nil, nil
}

func (w *wait) hold(status corev1.ContainerStatus, started bool) *Hold {
	h := &Hold{Started: started, puller: w.puller}
	if started {
		h.Digest, _ = w.req.Image.DigestIn(status.ImageID)
		w.known.ContainerID, w.known.Good = podapi.BareID(status.ContainerID), w.spec
	}
	return h
}

// stir makes the kubelet look at the pod by changing an annotation that has no meaning.
// See podwatch.Tracker.MayBeOverdue.
func (w *wait) stir(ctx context.Context) {
	patch, err := podapi.AnnotationPatch(podapi.StirAnnotation+w.name.Container, time.Now().UTC().Format(time.RFC3339Nano))
	if err == nil {
		var api podapi.API
		if api, err = w.pod.Connect(); err == nil {
			_, err = api.Patch(ctx, patch, false)
		}
	}
	if err != nil && ctx.Err() == nil {
		w.Log.Debug("cannot make the kubelet look at the puller's pod", "puller", w.name, "error", err)
	}
}
