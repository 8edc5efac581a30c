package provision

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"podstarter/integration/harness"
)

// How long pods of a site are idle before they end, and how long Jobs that have ended are kept.
const (
	idle = 20 * time.Second
	keep = 30 * time.Second
)

// A Job is one that the provisioner has made.
type Job struct {
	Name, Template, Shape string
	Made                  time.Time
	Ended                 time.Time // zero if it has not
	Failed                bool
	Gone                  bool
	// Phases are those of its pod, in the order in which they came.
	Phases []corev1.PodPhase
}

func (j Job) phase() corev1.PodPhase {
	if len(j.Phases) == 0 {
		return ""
	}
	return j.Phases[len(j.Phases)-1]
}

// A Diary follows what the provisioner makes, from the API server's watch: nothing that is there for a moment is missed.
type Diary struct {
	mu   sync.Mutex
	jobs map[string]*Job
	// most are the most Jobs at a time that had not ended, and of them those whose pods had not begun.
	most, pending int
	changed       chan struct{} // closed and replaced at each change
}

// Follow begins a diary, which ends with ctx.
func Follow(ctx context.Context, pool *harness.Pool) (*Diary, error) {
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(pool.State, "admin.kubeconfig"))
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	d := &Diary{jobs: map[string]*Job{}, changed: make(chan struct{})}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(harness.Namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = made }))
	if err := d.note(factory.Batch().V1().Jobs().Informer(), d.noteJob); err != nil {
		return nil, err
	}
	if err := d.note(factory.Core().V1().Pods().Informer(), d.notePod); err != nil {
		return nil, err
	}
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return nil, fmt.Errorf("listing %s: %w", kind, context.Cause(ctx))
		}
	}
	return d, nil
}

// note calls write for each change of an object, and tells those who wait.
func (d *Diary) note(of cache.SharedIndexInformer, write func(object any, gone bool)) error {
	each := func(object any, gone bool) {
		if lost, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = lost.Obj
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		write(object, gone)
		d.count()
		close(d.changed)
		d.changed = make(chan struct{})
	}
	_, err := of.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { each(o, false) },
		UpdateFunc: func(_, o any) { each(o, false) },
		DeleteFunc: func(o any) { each(o, true) },
	})
	return err
}

func (d *Diary) job(name string) *Job {
	j := d.jobs[name]
	if j == nil {
		j = &Job{Name: name}
		d.jobs[name] = j
	}
	return j
}

func (d *Diary) noteJob(o any, gone bool) {
	is := o.(*batchv1.Job)
	j := d.job(is.Name)
	j.Template, j.Shape = is.Labels["provisioner.podstarter/template"], is.Labels["provisioner.podstarter/shape"]
	j.Made, j.Gone = is.CreationTimestamp.Time, gone
	for _, c := range is.Status.Conditions {
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			j.Ended, j.Failed = c.LastTransitionTime.Time, c.Type == batchv1.JobFailed
		}
	}
}

func (d *Diary) notePod(o any, _ bool) {
	p := o.(*corev1.Pod)
	owner := metav1.GetControllerOf(p)
	if owner == nil {
		return
	}
	if j := d.job(owner.Name); j.phase() != p.Status.Phase {
		j.Phases = append(j.Phases, p.Status.Phase)
	}
}

// There reports whether a Job counts as a pod that is there.
func (j Job) There() bool { return !j.Gone && j.Ended.IsZero() }

// Over reports whether its pod has come to an end, which the Job controller notes a moment later.
func (j Job) Over() bool {
	return !j.There() || j.phase() == corev1.PodSucceeded || j.phase() == corev1.PodFailed
}

// Runs reports whether its pod runs.
func (j Job) Runs() bool { return j.There() && j.phase() == corev1.PodRunning }

func (d *Diary) count() {
	all, waiting := 0, 0
	for _, j := range d.jobs {
		if j.There() {
			all++
			if j.phase() != corev1.PodRunning && j.phase() != corev1.PodSucceeded {
				waiting++
			}
		}
	}
	d.most, d.pending = max(d.most, all), max(d.pending, waiting)
}

// Jobs are all that there have been, in the order in which they were made.
func (d *Diary) Jobs() []Job {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.copied()
}

func (d *Diary) copied() []Job {
	var all []Job
	for _, name := range slices.Sorted(maps.Keys(d.jobs)) {
		j := *d.jobs[name]
		j.Phases = slices.Clone(j.Phases)
		all = append(all, j)
	}
	slices.SortStableFunc(all, func(a, b Job) int { return a.Made.Compare(b.Made) })
	return all
}

// Most is the largest number of pods that were there at a time, and the largest of those that had not begun.
func (d *Diary) Most() (all, pending int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.most, d.pending
}

// Wait waits until the Jobs are as they should be.
func (d *Diary) Wait(ctx context.Context, what string, enough func([]Job) bool) error {
	for {
		d.mu.Lock()
		all, changed := d.copied(), d.changed
		d.mu.Unlock()
		if enough(all) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w; the Jobs are %+v", what, context.Cause(ctx), all)
		}
	}
}
