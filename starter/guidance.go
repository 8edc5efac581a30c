package main

import (
	"context"
	"errors"
	"time"

	"podstarter/classads"
)

// What a shadow can be asked for guidance about (HTCondor
// src/condor_utils/guidance.h).
const (
	guidanceSetup       = "JobSetup"
	guidanceEnvironment = "JobEnvironment"
)

var (
	errRetryTransfer = errors.New("the shadow asks for the transfer to be repeated")
	errAbort         = errors.New("the shadow asks for the job to be given up")
)

const (
	// defaultRetryDelay is how long to wait before asking again when the
	// shadow does not say (starter_guidance.cpp).
	defaultRetryDelay = 20 * time.Second
	// firstEnvironmentDelay is how soon to ask again about the environment:
	// the shadow says 5 s when it has not yet reaped its own half of the
	// transfer, which takes it a millisecond, and keeps no state of the asking.
	firstEnvironmentDelay = 100 * time.Millisecond
	// maxGuidance bounds one conversation.
	maxGuidance = 100000
)

// converse asks the shadow what to do next and follows its answers until it
// says to carry on. A shadow that knows no guidance, and one whose answer is
// not understood, means the same: carry on.
func (a *activation) converse(ctx context.Context, about string) error {
	if mum, err := a.cfg.Bool("GUIDANCE_MUMS_THE_WORD", false); err != nil || mum {
		return nil
	}
	request := classads.NewAd()
	request.SetString("RequestType", about)
	if about == guidanceSetup {
		// HasCommonFilesTransfer stays out: common files are not done here.
		request.SetAd("ContextAd", classads.NewAd())
	}
	delay := firstEnvironmentDelay
	for range maxGuidance {
		guidance, err := a.shadow.RequestGuidance(uncut(ctx), request)
		if err != nil || guidance.Code != 0 || guidance.Ad == nil {
			return nil // without a shadow, too, what was begun goes on
		}
		command := guidance.Ad.StringOr("Command", "CarryOn")
		a.log.Debug("Guidance from the shadow", "about", about, "command", command)
		switch command {
		case "RetryReqest": // sic: the wire's spelling (guidance.h)
			wait := time.Duration(guidance.Ad.IntOr("RetryDelay", int64(defaultRetryDelay/time.Second))) * time.Second
			if about == guidanceEnvironment && wait > delay {
				wait = delay
				delay *= 2
			}
			if err := pause(ctx, wait); err != nil {
				return err
			}
			if next, ok := guidance.Ad.Lookup("ContextAd"); ok && about == guidanceSetup {
				request.Insert("ContextAd", next)
			}
		case "RunDiagnostic":
			a.refuseDiagnostic(ctx, guidance.Ad.StringOr("Diagnostic", ""))
		case "RetryTransfer":
			return errRetryTransfer
		case "Abort":
			return errAbort
		default: // CarryOn, StartJob, and what is not known here
			return nil
		}
	}
	return nil
}

// refuseDiagnostic answers a request for a diagnostic, so that the shadow goes
// on to what it wants to be done.
func (a *activation) refuseDiagnostic(ctx context.Context, name string) {
	event := classads.NewAd()
	event.SetString("EventType", "DiagnosticResult")
	event.SetString("Diagnostic", name)
	event.SetString("Result", "Error - Unregistered")
	if _, err := a.shadow.EventNotification(uncut(ctx), event); err != nil {
		a.log.Warn("Failed to tell the shadow that there are no diagnostics here", "error", err)
	}
}

// uncut is a context for calls to the shadow: one that is cut short leaves half
// a message behind, and so costs the connection. The calls have a time limit of
// their own, and a shadow answers at once.
func uncut(ctx context.Context) context.Context { return context.WithoutCancel(ctx) }

// pause waits, or gives the reason why ctx ended.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
