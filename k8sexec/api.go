package k8sexec

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
)

// podAPI is what this package asks of the API server, all of it about the
// pilot's own pod.
type podAPI interface {
	// Get needs the permission "get".
	Get(ctx context.Context) (*corev1.Pod, error)
	// Patch applies a strategic merge patch and returns the pod as it is then.
	// With dryRun nothing is changed. It needs the permission "patch".
	Patch(ctx context.Context, patch []byte, dryRun bool) (*corev1.Pod, error)
	// Watch gives all changes since resourceVersion, until its channel is closed.
	// It needs the permission "watch".
	Watch(ctx context.Context, resourceVersion string) (watch.Interface, error)
	// Neighbour names another pod of the namespace, empty if there is none. It
	// needs a permission "watch" that names no pod.
	Neighbour(ctx context.Context) (string, error)
	// TryPatchOf is a dry run of a patch of another pod.
	TryPatchOf(ctx context.Context, pod string, patch []byte) error
	// May asks whether a right is granted. It needs what every authenticated user
	// has by default (ClusterRole system:basic-user).
	May(ctx context.Context, q right) (bool, error)
}

// patient repeats a call while the API server is away or overloaded, with a
// growing pause, for a bounded time. The call must be idempotent. The error is
// that of the last attempt, or the cause of ctx's end.
func (b *Backend) patient(ctx context.Context, what string, call func(context.Context) error) error {
	start := time.Now()
	pause := b.timing.apiRetry
	var last error
	for {
		attempt, cancel := context.WithTimeout(ctx, b.timing.apiCall)
		err := call(attempt)
		cancel()
		if err == nil {
			return nil
		}
		waited := time.Since(start)
		if last == nil || ctx.Err() == nil {
			last = err
		}
		if ctx.Err() != nil {
			return endOf(ctx, waited, last)
		}
		if !isPassing(err) {
			return err
		}
		if waited+pause > b.timing.apiPatience {
			return noSuccess(waited, err)
		}
		b.log.Warn("API server does not serve, will try again", "call", what, "pause", pause, "error", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return endOf(ctx, time.Since(start), last)
		}
		pause = min(2*pause, b.timing.apiCall/2)
	}
}

func noSuccess(waited time.Duration, err error) error {
	return fmt.Errorf("no success in %s: %w", waited.Round(time.Second), err)
}

// endOf is the error of calls that were still failing when ctx ended. That a
// binding took too long says less than why.
func endOf(ctx context.Context, waited time.Duration, last error) error {
	cause := context.Cause(ctx)
	if !errors.Is(cause, errTimeout) {
		return cause
	}
	if errors.Is(last, cause) {
		// The only attempt hung until the binding's time was over: that the API server
		// did not answer is the news, not the time.
		last = errors.New(last.Error())
	}
	return noSuccess(waited, last)
}

// isPassing tells errors that the same call may not meet again in a moment: no
// connection, an API server that is starting, stopping or overloaded, a
// conflict with another writer, a webhook that did not answer.
func isPassing(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return isNetwork(err)
	}
	switch {
	case apierrors.IsConflict(err), apierrors.IsServerTimeout(err), apierrors.IsTimeout(err),
		apierrors.IsTooManyRequests(err), apierrors.IsServiceUnavailable(err), apierrors.IsInternalError(err),
		apierrors.IsUnexpectedServerError(err):
		return true
	}
	return status.Status().Code >= 500
}

// isNetwork tells a failure to reach the server from, say, one to encode the
// request or to read the token.
func isNetwork(err error) bool {
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded) || isEOF(err)
}
