package audit

import (
	"context"
	"time"

	"github.com/opencontainers/go-digest"

	"podstarter/k8sexec/imageref"
	"podstarter/k8sexec/options"
	"podstarter/k8sexec/podapi"
	"podstarter/k8sexec/registry"
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
	Registry  Registry      // nil if nobody asks registries
	// Try tests the wrapper that has the nonce, if its payload container is free.
	Try func(ctx context.Context, container, nonce string) Trial
}

// Registry is what is asked of registries; see [registry.Client].
type Registry interface {
	// Resolve gives the digest that a tag points to.
	Resolve(ctx context.Context, img imageref.Image) (digest.Digest, error)
	// Command gives what the image with a digest runs by itself.
	Command(ctx context.Context, img imageref.Image, d digest.Digest) (registry.Command, error)
}

// Trial is the outcome of such a test. It is zero if the container was not free.
type Trial struct {
	Dialled   error // the wrapper does not accept a connection
	Container error // nothing shows which container it runs in
	Usage     error // it does not report the payload's usage
}
