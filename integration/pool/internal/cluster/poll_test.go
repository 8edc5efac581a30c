package cluster

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestPollSaysWhatWasLast(t *testing.T) {
	ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, errors.New("too long"))
	defer cancel()
	err := Poll(ctx, time.Millisecond, func(context.Context) (bool, error) { return false, errors.New("not yet") })
	if err == nil || err.Error() != "too long; last: not yet" {
		t.Errorf("Poll = %v", err)
	}
}
