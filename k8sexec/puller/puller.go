// Package puller gets images onto the pilot's node in companion pods, the pullers. A
// kubelet works on a pod serially: while it pulls the image of one container, it starts no
// other in that pod. A pull in a puller keeps no job waiting but those that want its image.
//
// A puller's container runs the wrapper in the mode -hold, which does nothing. Nothing
// but the pod's status tells how far a pull has come.
package puller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/hashicorp/go-multierror"
	"github.com/opencontainers/go-digest"

	"podstarter/k8sexec/imageref"
	"podstarter/k8sexec/options"
	"podstarter/k8sexec/podapi"
	"podstarter/k8sexec/podwatch"
	"podstarter/k8sexec/privatedir"
	"podstarter/k8sexec/verdict"
)

// Pullers are those of one pilot. Several processes may use them at the same time.
type Pullers struct {
	Names []options.Puller
	// Dir is the pilot's private directory: locks, and what is known of each puller.
	Dir string
	// Connect gives the API client of a pod of the pilot's namespace.
	Connect func(pod string) (podapi.API, error)
	// Timeout bounds a pull. The wait for a free puller does not count.
	Timeout time.Duration
	Times   podwatch.Times
	Pace    Pace
	Log     *slog.Logger
}

// Pace has the periods of this package, so that tests can shorten them.
type Pace struct {
	// Poll is how often a free puller is looked for: no event tells that a lock was
	// released.
	Poll time.Duration
	// Occupied is how often a puller is asked whether it is done with a pull that nobody
	// waits for.
	Occupied time.Duration
	// Progress is when a slow wait or pull first reports; the pause doubles each time.
	Progress time.Duration
	// Stir is when the kubelet is first made to look at the pod, if it may know more than
	// it has published.
	Stir time.Duration
	// Doubt: see [podwatch.Change].
	Doubt time.Duration
}

// Request is an image that a job waits for.
type Request struct {
	Image imageref.Image
	// Spec is how it is to stand in the pod's specification.
	Spec string
	// Node gives the name of the pilot's node.
	Node func(context.Context) (string, error)
	// Report gets progress, for the job's log.
	Report func(string)
	// There says whether the image has come onto the node meanwhile.
	There func() bool
}

// Hold keeps an image on the node: the kubelet removes no image that a container has. The
// zero value keeps none.
type Hold struct {
	// Digest is that of the image; empty if the status does not show it.
	Digest digest.Digest
	// Started says whether the puller's container runs the image. If not, the image is
	// there, but the runtime could not start it.
	Started bool
	puller  *puller
}

// Release lets the puller go. It may be called twice.
func (h *Hold) Release() {
	if h.puller == nil {
		return
	}
	// Until now others who want the image waited for it.
	h.puller.known.Fetching = ""
	h.puller.noteOrWarn()
	h.puller.release()
	h.puller = nil
}

// ErrNone means that no puller can be used, for reasons that are not the image's.
var ErrNone = errors.New("no puller can be used")

// Fetch gets the image onto the node, and returns when it is there. If several jobs want
// the same image, one of them fetches it. An error is a *[verdict.Failure] about the image
// or the time, or wraps [ErrNone], or is the cause of ctx's end. The caller releases the
// hold when a payload container has the image.
func (p *Pullers) Fetch(ctx context.Context, req Request) (*Hold, error) {
	private, err := privatedir.Open(p.Dir)
	if err != nil {
		return nil, &verdict.Failure{Origin: verdict.FromPilot, Reason: verdict.ReasonPrivateDir, Err: err}
	}
	hold, err := p.fetch(ctx, private, req)
	if hold == nil || hold.puller == nil {
		_ = private.Close()
	}
	return hold, err
}

func (p *Pullers) fetch(ctx context.Context, private *os.Root, req Request) (*Hold, error) {
	var broken *multierror.Error
	out := make(map[options.Puller]bool)
	for {
		one, err := p.take(ctx, private, req, out)
		if err != nil {
			return nil, err
		}
		if one == nil {
			return &Hold{}, nil
		}
		hold, err := one.fetch(ctx, req)
		if err == nil {
			return hold, nil
		}
		_ = one.lock.Close()
		if !errors.Is(err, errUnusable) {
			return nil, err
		}
		p.Log.Warn("cannot use a puller", "puller", one.name, "error", err)
		out[one.name] = true
		broken = multierror.Append(broken, err)
		if len(out) == len(p.Names) {
			broken.ErrorFormat = oneLine
			return nil, fmt.Errorf("%w: %w", ErrNone, broken)
		}
	}
}

func oneLine(errs []error) string {
	words := make([]string, len(errs))
	for i, err := range errs {
		words[i] = err.Error()
	}
	return strings.Join(words, "; ")
}

// take waits for a puller that is free, and leases it. It returns nil without an error
// when the image has come onto the node meanwhile.
func (p *Pullers) take(ctx context.Context, private *os.Root, req Request, out map[options.Puller]bool) (*puller, error) {
	began, next := time.Now(), p.Pace.Progress
	poll := time.NewTicker(p.Pace.Poll)
	defer poll.Stop()
	occupied := make(map[options.Puller]bool) // with a pull that nobody waits for
	again := began
	for {
		if req.There() {
			return nil, nil
		}
		one, others, err := p.tryTake(private, req, out, occupied)
		if err != nil {
			return nil, &verdict.Failure{Origin: verdict.FromPilot, Reason: verdict.ReasonPrivateDir, Err: err}
		}
		if one != nil {
			if !one.isOccupied(ctx) {
				return one, nil
			}
			occupied[one.name] = true
			one.known.Fetching = one.left
			one.noteOrWarn()
			_ = one.lock.Close()
			continue
		}
		if waited := time.Since(began); waited >= next {
			next = 2 * waited
			req.Report(fmt.Sprintf("has waited %s for a puller to fetch %s: %s", waited.Round(time.Second), req.Spec, others))
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if time.Since(again) > p.Pace.Occupied {
			clear(occupied)
			again = time.Now()
		}
	}
}
