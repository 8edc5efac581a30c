package audit

import (
	"context"
	"time"

	"podstarter/k8sexec/options"
	"podstarter/k8sexec/podapi"
)

// Inspector checks a pod, and the pilot in it, for whatever could keep jobs from
// running or make them less safe than they should be.
type Inspector struct {
	Options options.Options
	Connect func() (podapi.API, error) // gives the API client
	// ConnectTo gives that of another pod of the namespace.
	ConnectTo func(pod string) (podapi.API, error)
	Time      time.Duration // bounds all API calls of Check: the startd waits for it
	Proc      string        // where procfs is mounted
	Root      int           // the user ID that payload containers start with
	Self      Identity      // of the pilot
	// Try tests the wrapper that has the nonce, if its payload container is free.
	Try func(ctx context.Context, container, nonce string) Trial
}

// Trial is the outcome of such a test. It is zero if the container was not free.
type Trial struct {
	Dialled   error // the wrapper does not accept a connection
	Container error // nothing shows which container it runs in
	Usage     error // it does not report the payload's usage
}
