package kube

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	batchlisters "k8s.io/client-go/listers/batch/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"podstarter/provisioner/platform"
	"podstarter/provisioner/template"
)

// DefaultGPU is the resource of a GPU, if the site names no other.
const DefaultGPU corev1.ResourceName = "nvidia.com/gpu"

// unseen is how long a unit that was made counts although no watch has shown it.
// After that it is looked up.
const unseen = time.Minute

// Cluster is the platform Kubernetes.
type Cluster struct {
	client    Clients
	name      string
	namespace string
	manifests map[string]manifest
	jobs      batchlisters.JobNamespaceLister
	pods      corelisters.PodNamespaceLister
	now       func() time.Time
	progress  []*progress // of the watches
	mint      Mint

	mu sync.Mutex
	// made are units that no watch has shown yet, so that a list which is behind
	// does not make them twice.
	made map[string]platform.Unit
	// secured are units whose Secret is there, and usurped those of which another one's
	// Secret had the name when they were made.
	secured, usurped map[string]bool
}

// New returns the platform for templates, and waits until it knows what is there.
// It watches until ctx ends. mint makes the tokens of templates that have some.
func New(ctx context.Context, client Clients, name, namespace string, gpu corev1.ResourceName, templates []template.Template, mint Mint) (*Cluster, error) {
	c := &Cluster{client: client, name: name, namespace: namespace, manifests: map[string]manifest{}, made: map[string]platform.Unit{}, secured: map[string]bool{}, usurped: map[string]bool{}, now: time.Now, mint: mint}
	for _, t := range templates {
		m, err := parse(t, gpu)
		if err != nil {
			return nil, err
		}
		c.manifests[t.Name] = m
	}
	if err := c.allowed(ctx); err != nil {
		return nil, err
	}
	if err := c.mayKeepTokens(ctx); err != nil {
		return nil, err
	}
	jobs, pods := c.informers()
	for _, informer := range []cache.SharedIndexInformer{jobs, pods} {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: c.seen, DeleteFunc: c.seen})
		if err == nil {
			err = informer.SetTransform(slim)
		}
		if err != nil {
			return nil, fmt.Errorf("watching jobs and pods: %w", err)
		}
		go informer.RunWithContext(ctx)
	}
	c.jobs = batchlisters.NewJobLister(jobs.GetIndexer()).Jobs(namespace)
	c.pods = corelisters.NewPodLister(pods.GetIndexer()).Pods(namespace)
	if !cache.WaitForCacheSync(ctx.Done(), jobs.HasSynced, pods.HasSynced) {
		return nil, fmt.Errorf("listing jobs and pods of the namespace %s: %w; the provisioner needs list and watch of both there", namespace, context.Cause(ctx))
	}
	return c, nil
}

// allowed lists both kinds once. A watch whose right is missing would be tried
// for ever without a word.
func (c *Cluster) allowed(ctx context.Context) error {
	one := metav1.ListOptions{LabelSelector: labelProvisioner + "=" + c.name, Limit: 1}
	_, jobs := c.client.BatchV1().Jobs(c.namespace).List(ctx, one)
	_, pods := c.client.CoreV1().Pods(c.namespace).List(ctx, one)
	if err := errors.Join(jobs, pods); err != nil {
		return fmt.Errorf("listing jobs and pods of the namespace %s: %w; the provisioner needs list, watch, create and delete of both there", c.namespace, err)
	}
	return nil
}

// List implements platform.Platform.
func (c *Cluster) List(ctx context.Context) ([]platform.Unit, error) {
	for {
		// First what was made, and then what the watches know: what they show in between
		// leaves the one after it is in the other.
		made := c.unshown()
		all, err := c.known()
		if err != nil {
			return nil, err
		}
		again, there := false, map[string]bool(nil)
		for name, u := range made {
			switch {
			case slices.ContainsFunc(all, func(o platform.Unit) bool { return o.Name == name }):
				c.drop(name)
				continue
			case !c.isMade(name):
				again = true
				continue
			case c.now().Sub(u.Created) > unseen:
				// The watch is late.
				if there == nil {
					if there, err = c.there(ctx); err != nil {
						return nil, err
					}
				}
				if !there[name] {
					c.drop(name)
					continue
				}
			}
			all = append(all, u)
		}
		if !again {
			return all, nil
		}
	}
}

// known returns the units that the watches know.
func (c *Cluster) known() ([]platform.Unit, error) {
	for _, p := range c.progress {
		if err := p.stale(c.now()); err != nil {
			return nil, err
		}
	}
	ours := labels.SelectorFromSet(labels.Set{labelProvisioner: c.name})
	jobs, err := c.jobs.List(ours)
	if err != nil {
		return nil, fmt.Errorf("listing jobs: %w", err)
	}
	pods, err := c.pods.List(ours)
	if err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	all := units(jobs, pods, c.now())
	c.former(all, jobs, pods)
	return all, nil
}

// unshown returns the units that were made and that no watch has shown.
func (c *Cluster) unshown() map[string]platform.Unit {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.made)
}

func (c *Cluster) isMade(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, made := c.made[name]
	return made
}

// there asks the API server which units are there: in two calls, however many are
// looked for.
func (c *Cluster) there(ctx context.Context) (map[string]bool, error) {
	ours := metav1.ListOptions{LabelSelector: labelProvisioner + "=" + c.name}
	jobs, err := c.client.BatchV1().Jobs(c.namespace).List(ctx, ours)
	if err != nil {
		return nil, fmt.Errorf("looking for Jobs that no watch has shown: %w", err)
	}
	pods, err := c.client.CoreV1().Pods(c.namespace).List(ctx, ours)
	if err != nil {
		return nil, fmt.Errorf("looking for pods that no watch has shown: %w", err)
	}
	names := map[string]bool{}
	for i := range jobs.Items {
		names[jobs.Items[i].Name] = true
	}
	for i := range pods.Items {
		names[owner(&pods.Items[i])] = true
	}
	return names, nil
}

// Create implements platform.Platform.
func (c *Cluster) Create(ctx context.Context, s platform.Spec) error {
	m, ok := c.manifests[s.Template]
	if !ok {
		return fmt.Errorf("making %s: there is no template %s", s.Name, s.Template)
	}
	token, err := c.token(ctx, m)
	if err != nil {
		return err // nothing was made
	}
	job, pod := m.build(c.name, c.namespace, s)
	// The name counts from now on: the watch may show the object before the answer is
	// here.
	c.note(platform.Unit{Spec: s, Created: c.now()})
	var owner metav1.OwnerReference
	if job != nil {
		if job, err = c.client.BatchV1().Jobs(c.namespace).Create(ctx, job, metav1.CreateOptions{}); err == nil {
			owner = ownedBy(job, batchv1.SchemeGroupVersion.WithKind("Job"))
		}
	} else if pod, err = c.client.CoreV1().Pods(c.namespace).Create(ctx, pod, metav1.CreateOptions{}); err == nil {
		owner = ownedBy(pod, corev1.SchemeGroupVersion.WithKind("Pod"))
	}
	switch {
	case err == nil || apierrors.IsAlreadyExists(err):
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		// A quota, a LimitRange, an admission policy, or a manifest that is wrong.
		c.drop(s.Name)
		return fmt.Errorf("%w: %w", platform.ErrDenied, err)
	case refused(err):
		c.drop(s.Name)
		return err
	default:
		// A connection that broke, or an API server in trouble: it may have been made
		// all the same. The name counts until it is known.
		return err
	}
	if err != nil || token == "" {
		return nil // Mend gives a token to what was there already
	}
	return c.keep(ctx, m, s, owner, token, true)
}

// refused reports whether an error is an answer of the API server by which it is
// certain that nothing was made.
func refused(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= 400 && code < 500 && code != http.StatusRequestTimeout
}

func (c *Cluster) note(u platform.Unit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made[u.Name] = u
}

func (c *Cluster) drop(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.made, name)
}

// seen notes that a watch has shown an object, or that it is gone: from now on the
// lists have what is true of it.
func (c *Cluster) seen(object any) {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	switch o := object.(type) {
	case *batchv1.Job:
		c.drop(o.Name)
	case *corev1.Pod:
		c.drop(owner(o))
	}
}
