package shadow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"podstarter/internal/cedar"
)

// GetDelegatedProxy has the shadow delegate the job's X.509 proxy, for a job
// whose files are not transferred, and returns the text of the proxy's file.
// Source is where the proxy lies at the access point and expires how long it
// shall be good, the zero time for as long as the original; the shadow goes by
// what its own job ad says of both, if that is less. The error of a shadow that
// has no proxy to delegate wraps [cedar.ErrNoDelegation]; the connection is
// good after it (condor_starter.V6.1/NTsenders.cpp:
// REMOTE_CONDOR_get_delegated_proxy).
func (c *Client) GetDelegatedProxy(ctx context.Context, source string, expires time.Time) ([]byte, error) {
	const name = "get_delegated_proxy"
	var until int64
	if !expires.IsZero() {
		until = expires.Unix()
	}
	a := ask(ctx, c, call{name: name, number: numGetDelegatedProxy, bare: true, whole: true, put: func(s *cedar.Stream) {
		s.PutString(source)
		s.PutInt(until)
	}}, takeProxy)
	if a.err == nil && a.value.refused != nil {
		a.err = fmt.Errorf("shadow call %s: %w", name, a.value.refused)
	}
	return a.value.text, a.err
}

// delegated is a reply of get_delegated_proxy; refused does not spoil the
// connection.
type delegated struct {
	text    []byte
	refused error
}

func takeProxy(s *cedar.Stream, _ int64) (delegated, error) {
	text, err := s.ReceiveProxy()
	if errors.Is(err, cedar.ErrNoDelegation) {
		return delegated{refused: err}, nil
	}
	return delegated{text: text}, err
}
