package k8sexec

import (
	"os"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"podstarter/k8sexec/forecast"
	"podstarter/k8sexec/imageref"
	"podstarter/k8sexec/options"
	"podstarter/k8sexec/podapi"
	"podstarter/rescue"
)

// spare is a payload container that is made new before a job wants it.
type spare struct {
	lease *lease
	known slot
	plan  plan
	nonce string
}

// made notes that the patch, which began then, has been carried out.
func (s *spare) made(pod *corev1.Pod, began time.Time) {
	b, name := s.lease.backend, s.lease.name
	s.known = s.known.unbound()
	s.known.PodUID, s.known.Node, s.known.Bound = string(pod.UID), pod.Spec.NodeName, began
	if spec := podapi.SpecOf(pod, name); spec != nil {
		s.known.Spec = spec.Image
	}
	if s.known.Spec == s.plan.spec { // no webhook has changed it
		s.known.Fresh, s.known.Image, s.known.Nonce = true, s.plan.image.String(), s.nonce
		s.known.Grace, s.known.Program = graceOf(pod), programOf(pod, name)
	}
	s.lease.note(s.known)
	b.log.Info("making payload container ahead", "container", name, "image", s.plan.spec)
}

// dismiss tells the container's old wrapper to leave.
func (s *spare) dismiss() {
	l, old := s.lease, s.known.Nonce
	if old == s.nonce {
		old = ""
	}
	rescue.Go(func() {
		if err := l.dismissOnce(l.backend.life, s.nonce, old); err != nil {
			l.backend.log.Debug("no old wrapper was told to leave", "container", l.name, "error", err)
		}
	})
}

// stock is what a pod has of free containers, and what its jobs may want.
type stock struct {
	used   []*spare                  // the longest unused first
	fresh  map[string][]*spare       // by image
	starts []forecast.Start          // the latest in each container
	images map[string]imageref.Image // of these
	// chosen are those to make new, with their leases taken.
	chosen []*spare
}

// giveBack gives the leases back.
func (s *stock) giveBack() {
	for _, one := range s.chosen {
		_ = one.lease.lock.Close()
	}
}

// takeStock chooses the containers to make new, and takes their leases: used ones that are
// free, at most as many as there are spares, since the kubelet does nothing else to the pod
// meanwhile. If there is none, it may be one that was made for an image that is wanted less
// than another now.
func (b *Backend) takeStock(private *os.Root) *stock {
	s := b.lookAround(private)
	ready, room := make(map[string]int), b.opt.Spares
	for image, all := range s.fresh {
		ready[image] = len(all)
		if b.opt.Reset == options.ResetImage {
			room -= len(all) // the other used ones are kept for their owners
		}
	}
	for _, one := range s.used {
		if len(s.chosen) < room && one.take() {
			s.chosen = append(s.chosen, one)
		}
	}
	if image := forecast.Superfluous(s.starts, ready); image != "" && len(s.chosen) == 0 && s.fresh[image][0].take() {
		s.chosen = s.fresh[image][:1]
		ready[image]--
	}
	wanted := forecast.Images(s.starts, ready, len(s.chosen))
	for _, one := range s.chosen[len(wanted):] {
		_ = one.lease.lock.Close()
	}
	s.chosen = s.chosen[:len(wanted)]
	for i, one := range s.chosen {
		one.plan = one.lease.aheadOf(s.images[wanted[i]], one.nonce)
	}
	return s
}

// lookAround reads what is known of all containers. Starters may change it meanwhile.
func (b *Backend) lookAround(private *os.Root) *stock {
	s := &stock{fresh: make(map[string][]*spare), images: make(map[string]imageref.Image)}
	for i, name := range b.opt.Containers {
		one := &spare{lease: &lease{backend: b, name: name, index: i, private: private}, nonce: podapi.NewNonce()}
		var err error
		if one.known, err = readSlot(private, name); err != nil {
			continue
		}
		if img, err := imageref.Parse(one.known.Job); err == nil && one.lease.canBeAhead(img, one.known) {
			s.images[img.String()] = img
			s.starts = append(s.starts, forecast.Start{Image: img.String(), Age: time.Since(one.known.Started)})
		}
		switch img, err := imageref.Parse(one.known.Image); {
		case one.known.InUse, one.known.Unproven, one.known.PlainOnly:
		case err == nil && one.lease.isReady(img, one.known):
			s.fresh[one.known.Image] = append(s.fresh[one.known.Image], one)
		case one.known.Nonce != "", one.known.Ahead, one.known == (slot{}):
			// Where a binding failed, the next one finds out why.
			s.used = append(s.used, one)
		}
	}
	slices.SortStableFunc(s.used, func(a, b *spare) int { return a.known.Started.Compare(b.known.Started) })
	return s
}

// aheadOf is the plan for a container of which no job is known.
func (l *lease) aheadOf(img imageref.Image, nonce string) plan {
	d := l.digestFor(img)
	return plan{image: img, spec: img.Once(imageref.OnceTag("ahead", nonce), d), digest: d}
}

// take leases the container, unless somebody has it or has had it since it was looked at.
func (s *spare) take() bool {
	l, err := s.lease.backend.leaseOf(s.lease.private, s.lease.index)
	if l == nil || err != nil {
		return false
	}
	if known, err := readSlot(l.private, l.name); err != nil || known != s.known {
		_ = l.lock.Close()
		return false
	}
	s.lease = l
	return true
}

// canBeAhead says whether a container can be made ahead with an image: only if the kubelet
// has nothing to pull or look up for it, and takes no new container for a crash.
func (l *lease) canBeAhead(img imageref.Image, known slot) bool {
	return l.backend.opt.ThrowawayTags && !known.PlainOnly && l.digestFor(img) != "" && l.isOnNode(img)
}
