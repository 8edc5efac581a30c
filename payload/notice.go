package payload

import "time"

// Notice announces that something outside will end a container and everything in it before
// its job ends by itself.
type Notice struct {
	// Reason is a sentence that says who ends it and, if known, why.
	Reason string
	// Left is how long the container has from now on; 0 if it ends at once.
	Left time.Duration
}
