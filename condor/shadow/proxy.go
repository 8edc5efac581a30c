package shadow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"podstarter/internal/cedar"
)

// GetDelegatedProxy has the shadow delegate the job's X.509 proxy, for a job
// without file transfer, and returns the text of the proxy's file. source is
// the proxy's path at the access point and expires the time until which it
// should be valid; zero means as long as the original. If the shadow's own job
// ad says less, that counts. If the shadow has no proxy to delegate the error
// wraps [cedar.ErrNoDelegation]; the connection survives
// (condor_starter.V6.1/NTsenders.cpp: REMOTE_CONDOR_get_delegated_proxy).
func (c *Client) GetDelegatedProxy(ctx context.Context, source string, expires time.Time) ([]byte, error) {
	const name = "get_delegated_proxy"
	var until int64
	if !expires.IsZero() {
		until = expires.Unix()
	}
	a := ask(ctx, c, call{name: name, number: CallGetDelegatedProxy, bare: true, whole: true, put: func(s *cedar.Stream) {
		s.PutString(source)
		s.PutInt(until)
	}}, takeProxy)
	if a.err == nil && a.value.refused != nil {
		a.err = fmt.Errorf("shadow call %s: %w", name, a.value.refused)
	}
	return a.value.text, a.err
}

// delegated is a reply of get_delegated_proxy; the connection survives refused.
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
