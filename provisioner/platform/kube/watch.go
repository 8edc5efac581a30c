package kube

import (
	"context"
	"fmt"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

const (
	// maxBroken is how long lists and watches may fail until what they have shown
	// before counts no longer. client-go would try for ever, and say what it knew.
	maxBroken = time.Minute
	// maxSilent is how long the API server may say nothing. client-go lets it end each
	// watch after 5 to 10 minutes (tools/cache/reflector.go: minWatchTimeout), and it
	// sends a bookmark about each minute.
	maxSilent = 15 * time.Minute
)

// progress is whether lists and watches of one kind go on.
type progress struct {
	kind string

	mu     sync.Mutex
	heard  time.Time // when the API server last said something
	broken time.Time // since when lists and watches fail; zero if they do not
	err    error
}

// note notes what became of a list or of the begin of a watch.
func (p *progress) note(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil:
		p.heard, p.broken, p.err = time.Now(), time.Time{}, nil
	case p.broken.IsZero():
		p.broken = time.Now()
		fallthrough
	default:
		p.err = err
	}
}

// stale returns why what the watch has shown does not count, or nil.
func (p *progress) stale(now time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if broken := now.Sub(p.broken); !p.broken.IsZero() && broken > maxBroken {
		return fmt.Errorf("watching %s: it has failed for %s: %w", p.kind, broken.Round(time.Second), p.err)
	}
	if silent := now.Sub(p.heard); silent > maxSilent {
		return fmt.Errorf("watching %s: the API server has said nothing for %s", p.kind, silent.Round(time.Second))
	}
	return nil
}

// lister lists and watches objects of a kind.
type lister[L runtime.Object] interface {
	List(ctx context.Context, opts metav1.ListOptions) (L, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

// followed is what a lister does, of which progress is noted. All lists have the
// selector.
func followed[L runtime.Object](from lister[L], p *progress, selector string) cache.ListerWatcher {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			opts.LabelSelector = selector
			// A list from the API server's cache may lack what was made just before a
			// restart.
			if opts.ResourceVersion == "0" {
				opts.ResourceVersion = ""
			}
			list, err := from.List(ctx, opts)
			if err != nil {
				p.note(err)
				return nil, err
			}
			return list, nil
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			opts.LabelSelector = selector
			w, err := from.Watch(ctx, opts)
			p.note(err)
			if err != nil {
				return nil, err
			}
			return watch.Filter(w, func(e watch.Event) (watch.Event, bool) {
				if e.Type != watch.Error {
					p.note(nil)
				}
				return e, true
			}), nil
		},
	}
}

// informers returns the informers of Jobs and pods, and notes their progress.
func (c *Cluster) informers() (jobs, pods cache.SharedIndexInformer) {
	selector := labelProvisioner + "=" + c.name
	follow := func(kind string, object runtime.Object, from func(p *progress) cache.ListerWatcher) cache.SharedIndexInformer {
		p := &progress{kind: kind, heard: time.Now()}
		c.progress = append(c.progress, p)
		return cache.NewSharedIndexInformer(from(p), object, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	}
	jobs = follow("jobs", &batchv1.Job{}, func(p *progress) cache.ListerWatcher {
		return followed(c.client.BatchV1().Jobs(c.namespace), p, selector)
	})
	pods = follow("pods", &corev1.Pod{}, func(p *progress) cache.ListerWatcher {
		return followed(c.client.CoreV1().Pods(c.namespace), p, selector)
	})
	return jobs, pods
}
