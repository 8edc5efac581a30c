package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
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
	client    kubernetes.Interface
	name      string
	namespace string
	manifests map[string]manifest
	jobs      batchlisters.JobNamespaceLister
	pods      corelisters.PodNamespaceLister
	now       func() time.Time

	mu sync.Mutex
	// made are units that no watch has shown yet, so that a list which is behind
	// does not make them twice.
	made map[string]platform.Unit
}

// New returns the platform for templates, and waits until it knows what is there.
// It watches until ctx ends.
func New(ctx context.Context, client kubernetes.Interface, name, namespace string, gpu corev1.ResourceName, templates []template.Template) (*Cluster, error) {
	c := &Cluster{client: client, name: name, namespace: namespace, manifests: map[string]manifest{}, made: map[string]platform.Unit{}, now: time.Now}
	for _, t := range templates {
		m, err := parse(t, gpu)
		if err != nil {
			return nil, err
		}
		c.manifests[t.Name] = m
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace),
		informers.WithTransform(slim),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.LabelSelector = labelProvisioner + "=" + name
			// A list from the API server's cache may lack what was made just before a
			// restart.
			if o.ResourceVersion == "0" {
				o.ResourceVersion = ""
			}
		}))
	c.jobs = factory.Batch().V1().Jobs().Lister().Jobs(namespace)
	c.pods = factory.Core().V1().Pods().Lister().Pods(namespace)
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return nil, fmt.Errorf("listing %s of the namespace %s: %w; the provisioner needs list and watch of jobs and pods there", kind, namespace, context.Cause(ctx))
		}
	}
	return c, nil
}

// slim drops what is not looked at, so that 5,000 pods take megabytes instead of
// a hundred.
func slim(object any) (any, error) {
	switch o := object.(type) {
	case *corev1.Pod:
		o.ManagedFields, o.Spec = nil, corev1.PodSpec{}
	case *batchv1.Job:
		o.ManagedFields, o.Spec = nil, batchv1.JobSpec{}
	}
	return object, nil
}

var _ cache.TransformFunc = slim

// List implements platform.Platform.
func (c *Cluster) List(ctx context.Context) ([]platform.Unit, error) {
	jobs, err := c.jobs.List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("listing jobs: %w", err)
	}
	pods, err := c.pods.List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	all := units(jobs, pods)
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, u := range c.made {
		if slices.ContainsFunc(all, func(o platform.Unit) bool { return o.Name == name }) {
			delete(c.made, name)
			continue
		}
		if c.now().Sub(u.Created) > unseen {
			// The watch is late, or the unit was deleted before the watch showed it.
			there, err := c.exists(ctx, u.Spec)
			if err != nil {
				return nil, err
			}
			if !there {
				delete(c.made, name)
				continue
			}
		}
		all = append(all, u)
	}
	return all, nil
}

// exists asks the API server for the object of a unit.
func (c *Cluster) exists(ctx context.Context, s platform.Spec) (bool, error) {
	var err error
	if c.manifests[s.Template].job != nil {
		_, err = c.client.BatchV1().Jobs(c.namespace).Get(ctx, s.Name, metav1.GetOptions{})
	} else {
		_, err = c.client.CoreV1().Pods(c.namespace).Get(ctx, s.Name, metav1.GetOptions{})
	}
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("looking up %s: %w", s.Name, err)
	}
	return true, nil
}

// Create implements platform.Platform.
func (c *Cluster) Create(ctx context.Context, s platform.Spec) error {
	m, ok := c.manifests[s.Template]
	if !ok {
		return fmt.Errorf("making %s: there is no template %s", s.Name, s.Template)
	}
	job, pod := m.build(c.name, c.namespace, s)
	u := platform.Unit{Spec: s, Created: c.now()}
	var err error
	if job != nil {
		_, err = c.client.BatchV1().Jobs(c.namespace).Create(ctx, job, metav1.CreateOptions{})
	} else {
		_, err = c.client.CoreV1().Pods(c.namespace).Create(ctx, pod, metav1.CreateOptions{})
	}
	switch {
	case err == nil || apierrors.IsAlreadyExists(err):
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		// A quota, a LimitRange, an admission policy, or a manifest that is wrong.
		return fmt.Errorf("%w: %w", platform.ErrDenied, err)
	case errors.Is(err, context.DeadlineExceeded), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err), apierrors.IsInternalError(err):
		// It may have been made all the same: the name counts until it is known.
		c.note(u)
		return err
	default:
		return err
	}
	c.note(u)
	return nil
}

func (c *Cluster) note(u platform.Unit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made[u.Name] = u
}

// Withdraw implements platform.Platform. The precondition makes the API server
// refuse if the pod has changed since it was looked at. A Job's pod can still
// begin between the look and the deletion; then it ends as in a drain.
func (c *Cluster) Withdraw(ctx context.Context, name string) error {
	pods, err := c.client.CoreV1().Pods(c.namespace).List(ctx, metav1.ListOptions{LabelSelector: labelProvisioner + "=" + c.name + "," + labelUnit + "=" + name})
	if err != nil {
		return fmt.Errorf("looking up the pod of %s: %w", name, err)
	}
	for _, p := range pods.Items {
		if p.Status.Phase != corev1.PodPending && p.Status.Phase != "" {
			return platform.ErrBegun
		}
	}
	background := metav1.DeletePropagationBackground
	err = c.client.BatchV1().Jobs(c.namespace).Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &background})
	if apierrors.IsNotFound(err) {
		err = nil
		for _, p := range pods.Items {
			err = c.client.CoreV1().Pods(c.namespace).Delete(ctx, p.Name, metav1.DeleteOptions{
				Preconditions: &metav1.Preconditions{UID: &p.UID, ResourceVersion: &p.ResourceVersion},
			})
			switch {
			case apierrors.IsNotFound(err):
				err = nil
			case apierrors.IsConflict(err):
				return platform.ErrBegun
			}
		}
	}
	if err != nil {
		return fmt.Errorf("deleting: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.made, name)
	return nil
}
