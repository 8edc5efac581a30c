package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	corev1 "k8s.io/api/core/v1"

	"podstarter/k8sexec/imageref"
	"podstarter/k8sexec/options"
	"podstarter/k8sexec/podapi"
	"podstarter/k8sexec/podwatch"
)

// Times of a binding, as k8sexec has them (backend.go).
const watchDelay = 500 * time.Millisecond

var apiTimes = podwatch.Times{Patience: time.Minute, Call: 10 * time.Second, Retry: 200 * time.Millisecond}

const (
	// wrapperTime is how long a container of an image that is on the node takes until its wrapper announces itself
	// (docs/developer/turnover.md, a quiet pod). The API server does not see it.
	wrapperTime = 150 * time.Millisecond
	// coldTime bounds the wait for the status of an image that is pulled.
	coldTime = time.Minute
	// images is how many warm images there are.
	images = 20
)

// slot is one payload container, whose jobs follow each other. Each job is a starter of its own: it opens a connection,
// which is closed two seconds after its last call.
type slot struct {
	options   options.Options
	container string
	record    *record
	kubelet   *reader
	jobs      int
}

// run runs jobs until the context ends, the first at a random moment within the length of a job.
func (s *slot) run(ctx context.Context, l load) {
	if !wait(ctx, rand.N(l.job)) {
		return
	}
	for ctx.Err() == nil {
		began := time.Now()
		// A job that has begun is bound to the end, as its requests count.
		err := s.bind(context.WithoutCancel(ctx), rand.Float64() < l.cold)
		s.record.bound(time.Since(began), err)
		s.jobs++
		if !wait(ctx, l.job) {
			return
		}
	}
}

// wait returns false if the context ends first.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// bind makes the calls of one binding.
func (s *slot) bind(ctx context.Context, cold bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, coldTime, podwatch.ErrTimeout)
	defer cancel()
	client, err := podapi.New(s.options)
	if err != nil {
		return err
	}
	p := &podwatch.Pod{Connect: func() (podapi.API, error) { return client, nil }, Times: apiTimes, Log: s.record.log}
	if s.jobs == 0 {
		// The first job of a pod reads it.
		if err := p.Call(ctx, "get", func(ctx context.Context, api podapi.API) error { _, err := api.Get(ctx); return err }); err != nil {
			return err
		}
	}
	nonce := podapi.NewNonce()
	image, err := imageOf(nonce, cold)
	if err != nil {
		return err
	}
	patch, err := podapi.BindingPatch(podapi.Binding{Container: s.container, Spec: image, Nonce: nonce})
	if err != nil {
		return err
	}
	var pod *corev1.Pod
	err = p.Call(ctx, "patch", func(ctx context.Context, api podapi.API) (err error) {
		began := time.Now()
		pod, err = api.Patch(ctx, patch, false)
		s.record.patched(time.Since(began), err)
		return err
	})
	if err != nil {
		return err
	}
	s.kubelet.follow(context.WithoutCancel(ctx), s.options.PodName, cold)
	if !cold {
		wait(ctx, wrapperTime)
		return nil
	}
	return s.await(ctx, p, pod, image)
}

// imageOf is how a binder writes an image: under a throw-away tag if it knows the digest, or as the job has it if the image
// is new.
func imageOf(nonce string, cold bool) (string, error) {
	name := fmt.Sprintf("registry.example.org/jobs/image-%d:1", rand.N(images))
	if cold {
		return "registry.example.org/jobs/cold/image:" + nonce, nil
	}
	image, err := imageref.Parse(name)
	if err != nil {
		return "", err
	}
	return image.Once(imageref.OnceTag("slot1", nonce), digest.FromString(name)), nil
}

// await watches the pod from the moment on at which a binder does, until its status shows the container and its digest.
func (s *slot) await(ctx context.Context, p *podwatch.Pod, pod *corev1.Pod, image string) error {
	feed := podwatch.NewFeed(ctx, pod, p.Follow)
	defer feed.Stop()
	t := podwatch.Track(podwatch.Change{Container: s.container, Spec: image}, pod)
	delay := time.NewTimer(watchDelay)
	defer delay.Stop()
	for {
		select {
		case <-delay.C:
			s.record.watched()
			feed.Start()
		case state := <-feed.Pods:
			if f := t.Look(state); f != nil {
				return f
			}
			if id, _ := t.Running(); id != "" && strings.Contains(podapi.StatusOf(state, s.container).ImageID, "@sha256:") {
				return nil
			}
		case <-ctx.Done():
			return fmt.Errorf("the status does not show the container: %w", context.Cause(ctx))
		}
	}
}

// errorsIn gives the log of podwatch to the record: its warnings are calls that failed and are repeated.
func errorsIn(r *record) *slog.Logger { return slog.New(&warnings{record: r}) }

type warnings struct{ record *record }

func (*warnings) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (w *warnings) WithAttrs([]slog.Attr) slog.Handler             { return w }
func (w *warnings) WithGroup(string) slog.Handler                  { return w }

func (w *warnings) Handle(_ context.Context, entry slog.Record) error {
	text := entry.Message
	entry.Attrs(func(a slog.Attr) bool {
		if a.Key == "error" {
			text += ": " + a.Value.String()
		}
		return true
	})
	w.record.failed(errors.New(text))
	return nil
}
