// Package forecast guesses in which images the next jobs of a pod will run.
package forecast

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Start is the latest start of a job in one payload container.
type Start struct {
	// Image is the job's, spelled out.
	Image string
	// Age is how long ago it was.
	Age time.Duration
}

// settled is added to each age, so that a start of this moment does not outweigh all others.
const settled = 5 * time.Second

// Images says which images so many free containers should get, when ready counts the
// containers that are fresh already. It gives fewer if no start is known.
//
// A container whose latest start was a second ago starts many jobs, one whose job has been
// running for hours starts few: one over its age estimates how often. Each image gets its
// share of all fresh containers by that.
func Images(starts []Start, ready map[string]int, free int) []string {
	d := newDemand(starts, ready, free)
	var chosen []string
	for len(chosen) < free && len(d.images) > 0 {
		image := slices.MaxFunc(d.images, func(a, b string) int { return cmp.Compare(d.lacks(a), d.lacks(b)) })
		d.ready[image]++
		chosen = append(chosen, image)
	}
	return chosen
}

// Superfluous names an image of which a fresh container should get another: it has at
// least one more than its share, and another image has one less. It is empty if there is none.
// Less than a whole container is no reason: shares change with each start.
func Superfluous(starts []Start, ready map[string]int) string {
	d := newDemand(starts, ready, 0)
	if !slices.ContainsFunc(d.images, func(image string) bool { return d.lacks(image) >= 1 }) {
		return ""
	}
	for _, image := range slices.Sorted(maps.Keys(ready)) {
		if d.lacks(image) <= -1 {
			return image
		}
	}
	return ""
}

// demand is how many fresh containers each image should have, and has.
type demand struct {
	images []string // the latest start first: it wins a tie
	shares map[string]float64
	ready  map[string]int
}

func newDemand(starts []Start, ready map[string]int, free int) demand {
	d := demand{shares: make(map[string]float64), ready: maps.Clone(ready)}
	if d.ready == nil {
		d.ready = make(map[string]int)
	}
	whole, total := 0.0, float64(free)
	for _, n := range ready {
		total += float64(n)
	}
	starts = slices.Clone(starts)
	slices.SortStableFunc(starts, func(a, b Start) int { return cmp.Compare(a.Age, b.Age) })
	for _, s := range starts {
		weight := 1 / (max(s.Age, 0) + settled).Seconds()
		if d.shares[s.Image] == 0 {
			d.images = append(d.images, s.Image)
		}
		d.shares[s.Image] += weight
		whole += weight
	}
	for image := range d.shares {
		d.shares[image] *= total / whole
	}
	return d
}

// lacks is how many fresh containers the image has less than its share.
func (d demand) lacks(image string) float64 { return d.shares[image] - float64(d.ready[image]) }
