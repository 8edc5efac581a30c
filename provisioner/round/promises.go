package round

import (
	"time"

	"podstarter/provisioner/backoff"
	"podstarter/provisioner/platform"
	"podstarter/provisioner/resources"
	"podstarter/provisioner/template"
)

// A slot can have less than its payload container, such as by RESERVED_MEMORY of the
// startd. A job that needs all of it would match what a new pod promises, and none of
// those that came.

// sizes is how large the slots of a shape's pods were since a time.
type sizes struct {
	since time.Time
	most  resources.Amount
	pods  map[string]bool // those that have reported, up to backoff.Proof
}

// Smaller is a shape whose pods offer less than their template says.
type Smaller struct {
	Shape        int              // index in Report.Shapes
	Says, Offers resources.Amount // of one slot
}

// measure notes how large the slots are that have reported, and corrects what new pods
// promise. It reports whether that has changed.
func (r *Round) measure(s sight, now time.Time) (changed bool) {
	for i := range r.sizes {
		// A site may have changed since, so pods are tried again.
		if z := &r.sizes[i]; now.Sub(z.since) > backoff.Forget || z.since.After(now) {
			*z = sizes{since: now, pods: map[string]bool{}}
		}
	}
	for _, u := range s.units {
		i := r.find(u)
		if i < 0 || u.Phase != platform.Running || u.Leaving || u.Size != r.shapes[i].Size {
			continue
		}
		for _, host := range u.Hosts {
			p, z := s.slots[host], &r.sizes[i]
			if p == nil || p.Draining || p.Whole == (resources.Amount{}) {
				continue
			}
			z.most = z.most.Most(p.Whole)
			if len(z.pods) < backoff.Proof {
				z.pods[u.Name] = true
			}
		}
	}
	for i := range r.shapes {
		before := r.shapes[i].promise
		r.shapes[i].promise = r.promise(i)
		changed = changed || r.shapes[i].promise != before
	}
	return changed
}

// promise is a shape as new pods of it will be. A few pods that have less may be
// exceptions, such as on a node with a broken GPU.
func (r *Round) promise(i int) template.Shape {
	s, z := r.shapes[i], r.sizes[i]
	if len(z.pods) < backoff.Proof {
		return s.Shape
	}
	return r.config.Templates[s.template].Offering(s.Shape, z.most)
}

// smaller lists the shapes whose pods offer less than they should.
func (r *Round) smaller() []Smaller {
	var all []Smaller
	for i, s := range r.shapes {
		t := r.config.Templates[s.template]
		if says, offers := t.SlotSize(s.Shape), t.SlotSize(s.promise); says != offers {
			all = append(all, Smaller{Shape: i, Says: says, Offers: offers})
		}
	}
	return all
}
