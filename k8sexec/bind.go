package k8sexec

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"podstarter/k8sexec/imageref"
	"podstarter/k8sexec/jointpatch"
	"podstarter/k8sexec/podapi"
	"podstarter/k8sexec/podwatch"
	"podstarter/k8sexec/verdict"
	"podstarter/payload"
)

// Bind implements payload.Lease. It makes the leased container run the image, and
// returns when the wrapper of this new container has announced itself. It fails with a
// *payload.Verdict, or with the cause of ctx's end.
func (l *lease) Bind(ctx context.Context, req payload.BindRequest) (payload.Container, error) {
	if req.Report == nil {
		req.Report = func(string) {}
	}
	if l.isReleased() {
		return nil, fmt.Errorf("bind an image to container %s: its lease was given back", l.name)
	}
	l.hold(nil)
	if f := l.pin(ctx, req); f != nil {
		return nil, l.blame(req, verdict.Judge(*f))
	}
	c, j, err := l.bindAndJudge(ctx, req)
	if err == nil && c == nil && j.Class == verdict.ToUser && j.Failure.Origin == verdict.FromWrapper {
		// The wrapper did not announce itself with this image, but did with another:
		// the image hides it, or the node was too busy just then.
		c, j, err = l.bindAndJudge(ctx, req)
	}
	if c != nil {
		l.hold(c)
		if err := l.fill(ctx, req, c); err != nil {
			return nil, err
		}
		if req.Bound != nil {
			req.Bound(payload.Binding{Container: l.name, How: c.how, Fetched: l.fetched})
		}
		return c, nil
	}
	l.withdraw(ctx)
	if err != nil {
		return nil, err
	}
	return nil, l.blame(req, j)
}

// blame is the verdict about a binding that failed.
func (l *lease) blame(req payload.BindRequest, j verdict.Judgement) *payload.Verdict {
	if j.Class == verdict.ToUser {
		// Do not blame the user for an image they did not choose.
		switch {
		case isDefault(req):
			j.Class = verdict.ToPilot
			j.Says += " It is the default for jobs without an image; correct the pod's manifest."
		case req.ChosenBy != "":
			// Perhaps only for this job.
			j.Class = verdict.ToElsewhere
			j.Says += fmt.Sprintf(" It is the site's choice and not the job's; correct %s.", req.ChosenBy)
		}
	}
	v := j.Verdict()
	l.backend.log.Warn("Binding failed", "container", l.name, "blame", v.Blame, "subcode", v.Subcode, "reason", v.Reason)
	return v
}

// bindAndJudge gives a container, or the judgement why there is none. The error is the
// cause of ctx's end.
func (l *lease) bindAndJudge(ctx context.Context, req payload.BindRequest) (*container, verdict.Judgement, error) {
	c, err := l.bindInTime(ctx, req)
	if err == nil {
		return c, verdict.Judgement{}, nil
	}
	f := (*verdict.Failure)(nil)
	if !errors.As(err, &f) {
		return nil, verdict.Judgement{}, err
	}
	j := verdict.Judge(*f)
	if !j.Suspect {
		return nil, j, nil
	}
	j, err = l.settle(ctx, req, j)
	return nil, j, err
}

// bindInTime is bind within the time that a binding may take, once the image is on the
// node if a puller can get it there. Errors are *verdict.Failure or the cause of ctx's end.
func (l *lease) bindInTime(ctx context.Context, req payload.BindRequest) (*container, error) {
	image, err := l.fetch(ctx, req)
	if err != nil {
		return nil, err
	}
	defer image.Release()
	ctx, clock, cancel := withClock(ctx, l.backend.opt.BindTimeout)
	defer cancel()
	l.clock = clock
	if err := l.fit(ctx, req); err != nil {
		return nil, err
	}
	c, err := l.bind(ctx, req)
	if err == nil {
		if err = l.confirm(ctx, c); err != nil {
			c.close()
			c = nil
		}
	}
	if errors.Is(err, podwatch.ErrTimeout) {
		err = &verdict.Failure{Origin: verdict.FromClock, Reason: verdict.ReasonTimeout, Image: req.Image, Message: fmt.Sprintf("nothing after %s", l.backend.opt.BindTimeout)}
	}
	return c, err
}

// hold makes c the container of the lease and closes the one before.
func (l *lease) hold(c *container) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.container != nil {
		l.container.close()
	}
	l.container = c
}

func isDefault(req payload.BindRequest) bool { return strings.TrimSpace(req.Image) == "" }

// bind chooses the form of the image string and tries it, then the plain reference if
// need be. Errors are *verdict.Failure or the cause of ctx's end.
func (l *lease) bind(ctx context.Context, req payload.BindRequest) (*container, error) {
	b := l.backend
	known, err := readSlot(l.private, l.name)
	if err != nil {
		b.log.Warn("cannot read what is known of the payload container", "container", l.name, "error", err)
	}
	c := l.takeFresh(ctx, req, &known)
	if c == nil {
		c = l.reuse(ctx, req, known)
	}
	if c != nil {
		known.InUse, l.used, known.Started = true, true, time.Now()
		if err := known.write(l.private, l.name); err != nil {
			c.close()
			return nil, &verdict.Failure{Origin: verdict.FromPilot, Reason: verdict.ReasonPrivateDir, Err: err}
		}
		req.Report(fmt.Sprintf("container %s runs %s already", l.name, c.image))
		return c, nil
	}
	nonce := podapi.NewNonce()
	p, err := l.choose(ctx, req, nonce, &known)
	if err != nil {
		return nil, err
	}
	formRefused, overtaken := false, false
	for {
		req.Report(fmt.Sprintf("container %s is to run %s", l.name, p.spec))
		c, err := l.attempt(ctx, req, p, nonce, &known)
		if err == nil && formRefused {
			known.PlainOnly = true
			l.note(known)
		}
		f := (*verdict.Failure)(nil)
		if err == nil || !errors.As(err, &f) {
			return c, err
		}
		if f.Reason == verdict.ReasonOvertaken && !overtaken {
			overtaken = true
			b.log.Warn("somebody else patched the payload container, binding it once more", "container", l.name, "has", f.Spec)
			known.Spec, nonce = f.Spec, podapi.NewNonce()
			p.restart = p.spec == known.Spec
			continue
		}
		f.Image, f.Spec = p.image.String(), p.spec
		j := verdict.Judge(*f)
		if !p.isOnce() || !j.Form && !(j.Digest && p.image.IsMoving()) && !(l.isGuess(p.image, p.digest) && f.IsPull()) {
			return nil, f
		}
		// The refusal may be about the form in which we wrote the image, or about a
		// learned digest that is gone.
		b.log.Warn("image refused in this form, trying it as it was asked for", "container", l.name, "image", p.spec, "error", f)
		if err := l.digests().forget(p.image); err != nil {
			b.log.Warn("cannot forget a digest", "image", p.image, "error", err)
		}
		formRefused = j.Form
		l.pinned = pinned{} // the kubelet's word counts
		p, nonce = p.plain(known.Spec), podapi.NewNonce()
	}
}

// attempt patches the pod and waits for the outcome. It keeps known up to date,
// on disk as well.
func (l *lease) attempt(ctx context.Context, req payload.BindRequest, p plan, nonce string, known *slot) (*container, error) {
	b := l.backend
	before := *known
	// From here on the pod may be changed even if this process dies.
	*known = known.unbound()
	known.InUse, l.used = true, true
	if err := known.write(l.private, l.name); err != nil {
		return nil, &verdict.Failure{Origin: verdict.FromPilot, Reason: verdict.ReasonPrivateDir, Err: err}
	}
	pod, err := l.patch(ctx, p.binding(l.name, nonce, *known))
	if err != nil {
		known.Spec = before.Spec
		return nil, err
	}
	if before.PodUID != "" && before.PodUID != string(pod.UID) {
		b.log.Warn("another pod has this pod's name; the image that it was created with is not known", "pod", pod.Name)
		known.Proven = false
	}
	if spec := podapi.SpecOf(pod, l.name); spec != nil && spec.Image != p.spec {
		b.log.Warn("the pod has another image than was asked for; does an admission webhook rewrite images?",
			"container", l.name, "asked", p.spec, "has", spec.Image)
		p.spec, p.digest = spec.Image, ""
	}
	l.stillThere(before)
	known.PodUID, known.Node, known.Spec = string(pod.UID), pod.Spec.NodeName, p.spec
	l.note(*known)
	open := &lessons{lease: l}
	open.addLast(before)
	open.take(pod, nil)
	client, states, err := l.await(ctx, req, p, nonce, before, pod, open)
	if err != nil {
		return nil, err
	}
	if err := b.genuine(client, l.name, programOf(pod, l.name)); err != nil {
		states.Stop()
		_ = client.Close()
		return nil, &verdict.Failure{Origin: verdict.FromWrapper, Reason: verdict.ReasonUnusable, Err: err}
	}
	known.Grace = graceOf(pod)
	c := newContainer(l, client, p, *known)
	if c.how = payload.Pulled; l.hasRun(p.image, known.DefaultImage) {
		c.how = payload.Made
	}
	known.Image, known.Owner, known.Nonce, known.Boot = p.image.String(), req.Owner, nonce, client.Hello().Boot
	known.ContainerID, known.Bound, known.Proven = c.id, c.bound, true
	if req.Owner != "" { // and not one of our own attempts
		known.Job, known.Started = known.Image, c.bound
	}
	l.note(*known)
	l.warmed(req.Written, p.image, p.digest)
	if p.digest == "" {
		open.add(c.id, p.image)
	}
	if len(open.open) > 0 {
		c.learnFrom(states, open)
	} else {
		states.Stop()
	}
	return c, nil
}

// note writes the slot to disk. If that fails, the next binding makes one GET more at
// worst: the older file claims less.
func (l *lease) note(s slot) {
	if err := s.write(l.private, l.name); err != nil {
		l.backend.log.Warn("cannot note the state of the payload container", "container", l.name, "error", err)
	}
}

// patch applies the binding.
func (l *lease) patch(ctx context.Context, binding podapi.Binding) (*corev1.Pod, error) {
	var pod *corev1.Pod
	err := l.backend.pod.Call(ctx, "patch", func(ctx context.Context, api podapi.API) (err error) {
		pod, err = jointpatch.Patch(ctx, l.private, api, binding)
		return err
	})
	return pod, err
}

// reuse gives the running container if the policy allows that and the container is the
// one that was bound last: same wrapper process, nothing left of the last job. The
// wrapper accepts no connection until its sweep after the last activation has ended, so
// a process that does not die leads to a new container.
func (l *lease) reuse(ctx context.Context, req payload.BindRequest, known slot) *container {
	b := l.backend
	img, err := l.wanted(req.Image, known)
	if err != nil || !l.mayReuse(req.Owner, img, contents(req), known) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, b.timing.recall)
	defer cancel()
	client, err := payload.Dial(ctx, payload.Options{Dir: l.controlDir(), Nonce: known.Nonce, Log: b.log})
	if err != nil {
		b.log.Info("container cannot be used again, making a new one", "container", l.name, "error", err)
		return nil
	}
	if client.Hello().Boot == known.Boot {
		if err = client.Sweep(ctx); err == nil {
			c := newContainer(l, client, plan{image: img, spec: known.Spec, digest: digestIn(known.Spec)}, known)
			c.how = payload.Kept
			return c
		}
	} else {
		err = errors.New("it was restarted in the meantime")
	}
	b.log.Info("container cannot be used again, making a new one", "container", l.name, "error", err)
	_ = client.Close()
	return nil
}

// stillCurrent says whether the container still runs what the image's tag means. A
// plain reference was looked up at its binding, one with a digest when the digest was
// learned.
func (l *lease) stillCurrent(img imageref.Image, known slot) bool {
	running, err := imageref.Parse(known.Spec)
	switch {
	case err != nil:
		return false
	case !img.IsMoving():
		return true
	case running.IsMoving():
		age := time.Since(known.Bound)
		return age >= 0 && age < l.backend.opt.DigestLifetime
	default:
		fresh, ok := l.digests().lookup(img)
		return ok && fresh == running.Digest
	}
}
