package main

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"podstarter/classads"
	"podstarter/condor/shadow"
	"podstarter/internal/cedar"
	"podstarter/sandbox/filetransfer"
)

// jobAd answers one call for the job's ad.
func jobAd(answer string) play {
	return func(s *cedar.Stream) error {
		const callJobInfo = -63
		number, err := s.GetInt()
		if err == nil && number != callJobInfo {
			err = fmt.Errorf("call %d, want %d", number, callJobInfo)
		}
		if err == nil {
			err = s.EndOfMessage()
		}
		if err != nil {
			return err
		}
		ad, err := classads.ParseOld(answer)
		if err != nil {
			return err
		}
		s.PutInt(0)
		s.PutAd(ad)
		return s.EndMessage()
	}
}

// failed takes the word that the job cannot go on, after which the shadow is gone.
func failed(s *cedar.Stream) error {
	const callULog = 284
	_, err := takeAdCall(s, callULog)
	return err
}

// TestNoted: a shadow is told of a failure when it has noted the end of its half
// of the transfer, and not before.
func TestNoted(t *testing.T) {
	const in, out = "TransferringInput", "TransferringOutput"
	met := &filetransfer.Result{Met: true}
	for name, tt := range map[string]struct {
		before func(a *activation)
		plays  []play
	}{
		"no transfer":        {before: func(*activation) {}},
		"no half of it":      {before: func(a *activation) { a.overHere(&filetransfer.Result{}, out) }},
		"another shadow's":   {before: func(a *activation) { a.files.half.Store(&half{attribute: out, shadow: make(chan struct{})}) }},
		"noted":              {before: func(a *activation) { a.overHere(met, out) }, plays: []play{jobAd(out + " = false")}},
		"noted, of input":    {before: func(a *activation) { a.overHere(met, in) }, plays: []play{jobAd(in + " = false\n" + out + " = true")}},
		"noted after a time": {before: func(a *activation) { a.overHere(met, out) }, plays: []play{jobAd(out + " = true"), jobAd(out + " = true"), jobAd(out + " = false")}},
		"nothing heard yet":  {before: func(a *activation) { a.overHere(met, out) }, plays: []play{jobAd(in + " = false"), jobAd(out + " = false")}},
		"the last counts":    {before: func(a *activation) { a.overHere(met, in); a.overHere(met, out) }, plays: []play{jobAd(in + " = true\n" + out + " = false")}},
		"noted once":         {before: func(a *activation) { a.overHere(met, out); a.awaitNoted(t.Context()) }, plays: []play{jobAd(out + " = false")}},
	} {
		t.Run(name, func(t *testing.T) {
			a := &activation{log: slog.New(slog.DiscardHandler)}
			all := append(slices.Clone(tt.plays), failed)
			plays, played := make(chan play, len(all)), make(chan error, len(all))
			for _, p := range all {
				plays <- func(s *cedar.Stream) error {
					err := p(s)
					played <- err
					return err
				}
			}
			close(plays)
			withShadow(t, a, plays)
			tt.before(a)
			if err := a.hold(t.Context(), shadow.HoldFailedToCheckpoint, -1, "no checkpoint"); err != nil {
				t.Error(err)
			}
			for range all {
				if err := <-played; err != nil {
					t.Fatalf("the shadow: %v", err)
				}
			}
		})
	}
}
