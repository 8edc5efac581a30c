package payload

import "time"

// Notice is a backend's word that a container will be ended from outside, with
// everything in it, before its job has come to an end by itself.
type Notice struct {
	// Reason is a sentence that says who ends it, and why as far as is known.
	Reason string
	// Left is how long the container has from now on; 0 if it is to end at once.
	Left time.Duration
}
