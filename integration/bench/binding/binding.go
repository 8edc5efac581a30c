// Package binding is what the bench and its program in the pilot container
// exchange.
package binding

import "time"

// The ways to bind an image to a payload container.
const (
	// Ours is k8sexec, as the starter uses it.
	Ours = "ours"
	// Polling patches the image, with a throw-away tag, and polls the pod's status.
	Polling = "polling"
	// PollingPlain is the same with images as a user writes them.
	PollingPlain = "polling-plain"
)

// Binding is one measured binding.
type Binding struct {
	// Image is what was bound, Before what the container ran until then.
	Image, Before string
	// Quiet is the time between the binding before and this one.
	Quiet time.Duration
	// Took is the time until the container was known to be ready.
	Took time.Duration
}
