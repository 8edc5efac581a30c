package k8sexec

import (
	"cmp"
	"os"
	"slices"

	"podstarter/payload"
)

// A pick is how good a free container is for a job: the best first.
type pick int

const (
	pickKept   pick = iota // has the job's image and owner, and the site keeps such containers
	pickFresh              // was made ahead with the job's image
	pickComing             // is being made with the job's image, in one of the kubelet's next turns
	pickAny                // a new one has to be made
	pickOthers             // was made ahead for another image
)

// order is the payload containers that the job may have, by their index, the best first.
// Without spares a slot has little choice, and takes the first.
func (b *Backend) order(private *os.Root, wish payload.Wish) []int {
	all := make([]int, 0, len(b.opt.Containers))
	for i, name := range b.opt.Containers {
		if wish.Only == nil || slices.Contains(wish.Only, name) {
			all = append(all, i)
		}
	}
	if b.opt.Spares == 0 {
		return all
	}
	picks := make([]pick, len(b.opt.Containers))
	for _, i := range all {
		picks[i] = (&lease{backend: b, name: b.opt.Containers[i], index: i, private: private}).pick(wish)
	}
	slices.SortStableFunc(all, func(i, j int) int { return cmp.Compare(picks[i], picks[j]) })
	return all
}

// pick judges by what is known of the container. Another starter may take it at any time.
func (l *lease) pick(wish payload.Wish) pick {
	known, err := readSlot(l.private, l.name)
	if err != nil || known.Nonce == "" || known.Fresh && l.backend.isOverdue(l.name, known) {
		return pickAny
	}
	img, err := l.wanted(wish.Image, known)
	switch {
	case err == nil && l.mayReuse(wish.Owner, img, "", known):
		return pickKept
	case !known.Fresh:
		return pickAny
	case err != nil || !l.isReady(img, known):
		return pickOthers
	case l.backend.isAnnounced(l.name, known):
		return pickFresh
	}
	return pickComing
}
