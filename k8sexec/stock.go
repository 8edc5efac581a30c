package k8sexec

import (
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"

	"podstarter/k8sexec/forecast"
	"podstarter/k8sexec/imageref"
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

// stock is what a pod has of free containers.
type stock struct {
	// chosen are those to make new, with their leases taken.
	chosen []*spare
}

// giveBack gives the leases back.
func (s stock) giveBack() {
	for _, one := range s.chosen {
		_ = one.lease.lock.Close()
	}
}

// takeStock chooses the containers to make new: used ones that are free, at most as many as
// there are spares, since the kubelet does nothing else to the pod meanwhile. If there is
// none, it may be one that was made for an image that is wanted less than another now.
func (b *Backend) takeStock(private *os.Root) stock {
	var used []*spare
	var starts []forecast.Start
	images := make(map[string]imageref.Image) // that can be made ahead
	fresh := make(map[string][]*spare)
	for i, name := range b.opt.Containers {
		s := &spare{lease: &lease{backend: b, name: name, index: i, private: private}}
		var err error
		if s.known, err = readSlot(private, name); err != nil {
			continue
		}
		if img, err := imageref.Parse(s.known.Job); err == nil && s.lease.canBeAhead(img, s.known) {
			images[img.String()] = img
			starts = append(starts, forecast.Start{Image: img.String(), Age: time.Since(s.known.Started)})
		}
		switch img, err := imageref.Parse(s.known.Image); {
		case s.known.InUse, s.known.Unproven, s.known.PlainOnly:
		case err == nil && s.lease.isReady(img, s.known):
			fresh[s.known.Image] = append(fresh[s.known.Image], s)
		case s.known.Nonce != "", s.known == (slot{}):
			// Where a binding failed, the next one finds out why.
			used = append(used, s)
		}
	}
	ready := make(map[string]int)
	for image, all := range fresh {
		ready[image] = len(all)
	}
	var taken stock
	for _, s := range used {
		if len(taken.chosen) < b.opt.Spares && s.take() {
			taken.chosen = append(taken.chosen, s)
		}
	}
	if image := forecast.Superfluous(starts, ready); image != "" && len(taken.chosen) == 0 && fresh[image][0].take() {
		taken.chosen = fresh[image][:1]
		ready[image]--
	}
	wanted := forecast.Images(starts, ready, len(taken.chosen))
	for _, s := range taken.chosen[len(wanted):] {
		_ = s.lease.lock.Close()
	}
	taken.chosen = taken.chosen[:len(wanted)]
	for i, s := range taken.chosen {
		img := images[wanted[i]]
		s.nonce = podapi.NewNonce()
		d := s.lease.digestFor(img)
		s.plan = plan{image: img, spec: img.Once(imageref.OnceTag("ahead", s.nonce), d), digest: d}
	}
	return taken
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
