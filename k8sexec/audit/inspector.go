package audit

import (
	"context"
	"time"

	"podstarter/k8sexec/options"
	"podstarter/k8sexec/podapi"
)

// Inspector looks at a pod, and at the pilot in it, for whatever could keep jobs from
// running or make them less safe than they should be.
type Inspector struct {
	Options options.Options
	Connect func() (podapi.API, error) // gives the API client
	Time    time.Duration              // bounds all API calls of Check: the startd waits for it
	Proc    string                     // where procfs is mounted
	Root    int                        // the user that payload containers begin as
	Self    Identity                   // of the pilot
	// Try tries the wrapper with a nonce in a payload container that is free.
	Try func(ctx context.Context, container, nonce string) Trial
}

// Trial is what came of a try of a wrapper. If its container was not free, nothing did.
type Trial struct {
	Dialled   error // it does not take a connection
	Container error // its container cannot be told
	Usage     error // it does not tell the payload's usage
}
