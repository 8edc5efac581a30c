package podapi

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// IsPassing says whether the same call may succeed in a moment. The errors are: no
// connection, an API server that is starting, stopping or overloaded, a conflict with
// another writer, a webhook that did not answer.
func IsPassing(err error) bool {
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

// isNetwork says whether the call failed to reach the server, and not, say, to encode
// the request or to read the token.
func isNetwork(err error) bool {
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded) || isEOF(err)
}

// isEOF says whether the connection was closed during a request.
func isEOF(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// IsExpired says whether the API server no longer has the version at which a watch
// should begin (410 Gone).
func IsExpired(err error) bool {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return true
	}
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code == http.StatusGone
}
