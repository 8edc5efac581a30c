package corev1

import (
	"errors"
	"net/http"
)

// Status is how the API server answers a call that it does not carry out: meta/v1 Status.
type Status struct {
	Message string       `json:"message,omitempty"`
	Reason  StatusReason `json:"reason,omitempty"`
	Code    int          `json:"code,omitempty"`
}

// StatusReason is a reason in one word.
type StatusReason string

// The reasons that a starter tells apart.
const (
	StatusReasonForbidden          StatusReason = "Forbidden"
	StatusReasonNotFound           StatusReason = "NotFound"
	StatusReasonConflict           StatusReason = "Conflict"
	StatusReasonGone               StatusReason = "Gone"
	StatusReasonInvalid            StatusReason = "Invalid"
	StatusReasonServerTimeout      StatusReason = "ServerTimeout"
	StatusReasonTimeout            StatusReason = "Timeout"
	StatusReasonTooManyRequests    StatusReason = "TooManyRequests"
	StatusReasonExpired            StatusReason = "Expired"
	StatusReasonInternalError      StatusReason = "InternalError"
	StatusReasonServiceUnavailable StatusReason = "ServiceUnavailable"
)

// StatusError is a call that was answered with a Status, or with a code of HTTP and
// something else.
type StatusError struct {
	Status

	// Foreign says that the answer was no Status: it comes from a proxy, or from an API
	// server that is starting.
	Foreign bool
}

func (e *StatusError) Error() string { return e.Message }

// IsForbidden says whether a call failed because it is not allowed.
func IsForbidden(err error) bool {
	var e *StatusError
	return errors.As(err, &e) && (e.Reason == StatusReasonForbidden || e.Code == http.StatusForbidden)
}
