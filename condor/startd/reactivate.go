package startd

import (
	"context"
	"errors"
	"fmt"

	"podstarter/condor/version"
	"podstarter/internal/cedar"
)

// KnowsReactivation reports whether a startd of this version answers
// [MayReactivate].
func KnowsReactivation(condorVersion string) bool {
	return version.Of(condorVersion).AtLeast(25, 5, 0)
}

// MayReactivate asks the startd at an address whether it would let a claim be
// activated again: not while it drains, or when a better job waits for the
// slot. A restart of a job from its checkpoint counts as a new activation
// (condor_daemon_client/dc_startd.cpp:DCStartd::reactivateClaimCheck,
// condor_startd.V6/command.cpp:deactivate_claim).
func MayReactivate(ctx context.Context, client *cedar.Client, address, claimID string) (bool, error) {
	fail := func(err error) (bool, error) {
		return false, fmt.Errorf("ask the startd whether the job may go on: %w", err)
	}
	if claimID == "" {
		return fail(errors.New("the claim's id is unknown"))
	}
	session, err := cedar.ImportSession(claimID, "execute-side@matchsession", cedar.Daemon)
	if err != nil {
		return fail(err)
	}
	s, err := client.Command(ctx, address, cedar.ReactivateClaimCheck, session)
	if err != nil {
		return fail(err)
	}
	defer s.Close()
	defer s.Cancel(ctx)()
	s.PutSecret(claimID)
	if err := s.EndMessage(); err != nil {
		return fail(err)
	}
	ad, err := s.GetAd()
	if err == nil {
		err = s.EndOfMessage()
	}
	if err != nil {
		return fail(err)
	}
	return ad.BoolOr("Start", true), nil
}
