package podapi

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"

	"podstarter/k8sexec/corev1"
)

// IsPassing says whether the same call may succeed in a moment. The errors are: no
// connection, an API server that is starting, stopping or overloaded, a conflict with
// another writer, a webhook that did not answer.
func IsPassing(err error) bool {
	var status *corev1.StatusError
	if !errors.As(err, &status) {
		return isNetwork(err)
	}
	switch status.Reason {
	case corev1.StatusReasonConflict, corev1.StatusReasonServerTimeout, corev1.StatusReasonTimeout, corev1.StatusReasonTooManyRequests,
		corev1.StatusReasonServiceUnavailable, corev1.StatusReasonInternalError:
		return true
	}
	return status.Foreign || status.Code >= http.StatusInternalServerError ||
		status.Code == http.StatusConflict || status.Code == http.StatusTooManyRequests
}

// isNetwork says whether the call failed to reach the server, and not, say, to encode
// the request or to read the token.
func isNetwork(err error) bool {
	var file *fs.PathError // errors of files, too, have the methods of net.Error
	if errors.As(err, &file) {
		return false
	}
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded) || isEOF(err)
}

// isEOF says whether the connection was closed during a request.
func isEOF(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// IsExpired says whether the API server no longer has the version at which a watch
// should begin (410 Gone).
func IsExpired(err error) bool {
	var status *corev1.StatusError
	return errors.As(err, &status) &&
		(status.Reason == corev1.StatusReasonExpired || status.Reason == corev1.StatusReasonGone || status.Code == http.StatusGone)
}
