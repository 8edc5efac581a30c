package startd

import (
	"context"
	"errors"
	"fmt"

	"podstarter/classads"
	"podstarter/condor/version"
	"podstarter/internal/cedar"
)

// GivesReasons reports whether a startd of this version says why it ends a job, with
// STARTER_VACATE_JOB. Older ones only send a signal (condor_startd.V6/Starter.cpp).
func GivesReasons(condorVersion string) bool {
	return version.Of(condorVersion).AtLeast(24, 9, 2)
}

// SlotState asks the startd at an address for the State of one of its slots, by the slot's
// name. While a startd of 23.9 ends a job of its own accord, that is "Preempting"; if the
// submit side has deactivated the claim, it is still "Claimed"
// (condor_startd.V6/command.cpp:deactivate_claim, command_query_ads).
func SlotState(ctx context.Context, client *cedar.Client, address, claimID, name string) (string, error) {
	fail := func(err error) (string, error) {
		return "", fmt.Errorf("ask the startd for the state of slot %.200q: %w", name, err)
	}
	session, err := cedar.ImportSession(claimID, "execute-side@matchsession", cedar.Daemon)
	if err != nil {
		return fail(err)
	}
	s, err := client.Command(ctx, address, cedar.QueryStartdAds, session)
	if err != nil {
		return fail(err)
	}
	defer s.Close()
	defer s.Cancel(ctx)()
	query := classads.NewAd()
	query.SetString("MyType", "Query")
	query.SetString("TargetType", "Machine")
	query.SetString("Projection", "Name State")
	if err := query.SetExpr("Requirements", "TARGET.Name =?= "+classads.QuoteOld(name)); err != nil {
		return fail(err)
	}
	s.PutAd(query)
	if err := s.EndMessage(); err != nil {
		return fail(err)
	}
	more, err := s.GetInt()
	if err != nil {
		return fail(err)
	}
	if more == 0 {
		return fail(errors.New("it has no such slot"))
	}
	ad, err := s.GetAd() // what follows does not matter
	if err != nil {
		return fail(err)
	}
	return ad.GetString("State")
}
