package k8sexec

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podstarter/k8sexec/podapi"
	"podstarter/k8sexec/podwatch"
	"podstarter/k8sexec/verdict"
	"podstarter/payload"
	"podstarter/rescue"
)

// await waits for the wrapper of the patched container, or for a failure that waiting
// does not cure. If err is nil, the feed belongs to the caller.
func (l *lease) await(ctx context.Context, req payload.BindRequest, p plan, nonce string, before slot, pod *corev1.Pod, open *lessons) (*payload.Client, *podwatch.Feed, error) {
	b := l.backend
	outer := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	taken := make(chan struct{}) // closed once the kubelet is known to act on the patch
	dismissed := p.restart || l.isAtRest(before)
	if dismissed {
		close(taken)
	}
	rescue.Go(func() { l.dismiss(ctx, nonce, before.Nonce, taken) })

	type dialled struct {
		client *payload.Client
		err    error
	}
	hello := make(chan dialled, 1)
	rescue.Go(func() {
		var d dialled
		d.err = rescue.Do(func() (err error) {
			d.client, err = payload.Dial(ctx, payload.Options{Dir: l.controlDir(), Nonce: nonce, Log: b.log})
			return err
		})
		hello <- d
	})
	abandon := func() { // do not stay connected to a wrapper that answers too late
		cancel()
		if d := <-hello; d.client != nil {
			_ = d.client.Close()
		}
	}

	states := podwatch.NewFeed(b.life, pod, b.follow)
	watch := time.NewTimer(b.timing.watchDelay)
	defer watch.Stop()
	tick := time.NewTicker(b.timing.tick)
	defer tick.Stop()
	w := podwatch.NewProgress("container "+l.name, p.spec, b.timing.progress, req.Report)
	t := podwatch.Track(podwatch.Change{Container: l.name, Spec: p.spec, Before: before.Spec, Withdrawn: before.Withdrawn, Same: p.restart,
		Last: before.ContainerID, Failed: before.Nonce == "", Doubt: b.timing.doubt}, pod)
	stir := time.NewTimer(b.timing.stir)
	defer stir.Stop()
	latest := pod
	defer l.clock.run(true)
	for {
		select {
		case d := <-hello:
			if d.err == nil {
				return d.client, states, nil
			}
			states.Stop()
			if outer.Err() != nil {
				return nil, nil, w.Ended(outer)
			}
			return nil, nil, &verdict.Failure{Origin: verdict.FromWrapper, Reason: verdict.ReasonUnusable, Err: d.err}
		case <-watch.C:
			states.Start()
		case pod := <-states.Pods:
			latest = pod
			open.take(pod, nil)
			if overtaken(pod, t.UID(), l.name, nonce) {
				abandon()
				states.Stop()
				return nil, nil, &verdict.Failure{Origin: verdict.FromPod, Reason: verdict.ReasonOvertaken, Message: "the pod carries another binding's nonce", Spec: podapi.SpecOf(pod, l.name).Image}
			}
			f := t.Look(pod)
			if f != nil {
				f.Image, f.Spec = p.image.String(), p.spec
			}
			running, _ := t.Running()
			w.Saw(t.Describe(pod), f, running != "")
			if !dismissed && t.IsActedOn(pod) {
				close(taken)
				dismissed = true
			}
		case <-stir.C:
			if t.MayBeOverdue() {
				rescue.Go(func() { l.stir(ctx, nonce) })
			}
			stir.Reset(2 * w.Waited())
		case <-tick.C:
			other := l.ahead(t, latest)
			w.Behind(other.String())
			l.clock.run(!other.underWay)
			w.Tell()
		case <-outer.Done():
			abandon()
			states.Stop()
			return nil, nil, w.Ended(outer)
		}
		f := w.Final()
		if id, seen := t.Running(); f == nil && seen > b.timing.silence {
			f = &verdict.Failure{Origin: verdict.FromWrapper, Reason: verdict.ReasonSilent, Message: "container " + id}
		}
		if f != nil {
			abandon()
			states.Stop()
			return nil, nil, f
		}
	}
}

// overtaken says whether another patch came after the binding's own. A starter that was
// killed may have sent one that the API server carries out only after the next
// starter's patch. The container then announces a nonce that nobody waits for.
func overtaken(pod *corev1.Pod, uid types.UID, container, nonce string) bool {
	return pod.UID == uid && podapi.SpecOf(pod, container) != nil && pod.Annotations[podapi.NonceAnnotation+container] != nonce
}

// stir makes the kubelet look at the pod by changing an annotation that has no meaning.
// See podwatch.Tracker.MayBeOverdue.
func (l *lease) stir(ctx context.Context, nonce string) {
	b := l.backend
	api, err := b.connect()
	if err == nil {
		var patch []byte
		if patch, err = podapi.AnnotationPatch(podapi.StirAnnotation+l.name, nonce+"-"+time.Now().UTC().Format(time.RFC3339)); err == nil {
			_, err = api.Patch(ctx, patch, false)
		}
	}
	if err != nil && ctx.Err() == nil {
		b.log.Debug("cannot make the kubelet look at the pod", "container", l.name, "error", err)
	}
}

// dismiss tells the old wrapper to leave. The kubelet stops it as well, by the image's
// stop signal and within the pod's grace period; dismiss makes the end independent of
// both. It happens
//   - at once if nothing else makes the kubelet restart the container, because its
//     spec did not change;
//   - at once if the kubelet is at rest, and so acts on the patch at once: the old
//     container ends a little sooner;
//   - otherwise not before the kubelet acts on the patch (taken). A kubelet that has
//     just changed the pod looks at the next change one to two seconds later, and until
//     then may still go by the old spec. It takes a container that is missing then for
//     crashed: it starts it again with the old image, or reports a CrashLoopBackOff,
//     and loses a second by that;
//   - after a while in any case, and repeatedly: the status may not show that the
//     kubelet acts, or a wrapper came back too early and does not know the nonce.
func (l *lease) dismiss(ctx context.Context, nonce, old string, taken <-chan struct{}) {
	pause := l.backend.timing.nudge
	for {
		select {
		case <-taken:
			taken = nil // once
		case <-time.After(pause):
			pause *= 2
		case <-ctx.Done():
			return
		}
		if err := l.dismissOnce(ctx, nonce, old); err != nil && ctx.Err() == nil {
			l.backend.log.Debug("no old wrapper was told to leave", "container", l.name, "error", err)
		}
		old = ""
	}
}

// dismissOnce connects to the wrapper with nonce old, or to any if old is not known,
// but never to the new one.
func (l *lease) dismissOnce(ctx context.Context, nonce, old string) error {
	short, cancel := context.WithTimeout(ctx, l.backend.timing.dismiss)
	defer cancel()
	if old == "" {
		hello, err := payload.Peek(short, l.controlDir())
		if err != nil || hello.Nonce == nonce {
			return err
		}
		old = hello.Nonce
	}
	client, err := payload.Dial(short, payload.Options{Dir: l.controlDir(), Nonce: old, Log: l.backend.log})
	if err != nil {
		return err
	}
	defer client.Close()
	if client.Hello().Nonce == nonce {
		return nil
	}
	waiting, stop := context.WithTimeout(ctx, l.backend.timing.leave)
	defer stop()
	return client.Leave(waiting)
}
