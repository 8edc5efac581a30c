package main

import (
	"context"
	"errors"
	"time"

	"podstarter/classads"
	"podstarter/condor/shadow"
)

// What a shadow can be asked for guidance about (HTCondor
// src/condor_utils/guidance.h).
const (
	guidanceSetup       = "JobSetup"
	guidanceEnvironment = "JobEnvironment"
)

// What a shadow may want that ends a conversation.
var (
	errStartJob      = errors.New("the shadow asks for the job to be started")
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
	// maxRetryDelay is the longest delay in seconds that is believed.
	maxRetryDelay = 86400
	// maxGuidance bounds one conversation.
	maxGuidance = 100000
)

// converse asks the shadow what to do next and follows its answers until it
// says to carry on, which is no error, or one of the errors above. A shadow that
// knows no guidance, and one whose answer is not understood, means the same:
// carry on (starter_guidance.cpp:handleJobSetupCommand,
// handleJobEnvironmentCommand).
func (a *activation) converse(ctx context.Context, about string) error {
	return a.converseFrom(ctx, about, classads.NewAd())
}

// converseFrom begins with a context, the result of what was done last.
func (a *activation) converseFrom(ctx context.Context, about string, result *classads.Ad) error {
	if a.set.Condor.Silent {
		return nil
	}
	request := classads.NewAd()
	request.SetString("RequestType", about)
	if about == guidanceSetup {
		// HasCommonFilesTransfer stays out: common files are not done here.
		request.SetAd("ContextAd", result)
	}
	delay := firstEnvironmentDelay
	for range maxGuidance {
		guidance, err := a.shadow.RequestGuidance(uncut(ctx), request)
		if err != nil || guidance.Code != shadow.GuidanceCommand || guidance.Ad == nil {
			return nil // without a shadow, too, what was begun goes on
		}
		command := guidance.Command()
		a.log.Debug("Guidance from the shadow", "about", about, "command", command)
		if about == guidanceSetup && !ofSetup(command) {
			return nil
		}
		switch command {
		case shadow.CommandRetryRequest:
			wait := retryDelay(guidance.Ad)
			if about == guidanceEnvironment && wait > delay {
				wait = delay
				delay *= 2
			}
			if err := pause(ctx, wait); err != nil {
				return err
			}
			if about == guidanceSetup {
				if next, ok := guidance.Ad.Lookup("ContextAd"); ok {
					request.Insert("ContextAd", next)
				} else {
					request.SetAd("ContextAd", classads.NewAd())
				}
			}
		case shadow.CommandRunDiagnostic:
			name, err := guidance.Ad.GetString("Diagnostic")
			if err != nil {
				return nil
			}
			if err := a.diagnose(ctx, name); err != nil {
				return err
			}
		case shadow.CommandDoJobSetup:
			ready := classads.NewAd()
			ready.SetBool("JobEnvironmentReady", true)
			if err := a.converseFrom(ctx, guidanceSetup, ready); err != nil {
				return err
			}
		case shadow.CommandStartJob:
			return errStartJob
		case shadow.CommandRetryTransfer:
			return errRetryTransfer
		case shadow.CommandAbort:
			return errAbort
		default: // CarryOn, and what is not known here
			return nil
		}
	}
	return nil
}

// ofSetup says whether a command is one of the conversation before the transfer;
// the others mean there what is not known means.
func ofSetup(command string) bool {
	return command == shadow.CommandRetryRequest || command == shadow.CommandAbort
}

// retryDelay is how long the shadow wants to be left alone.
func retryDelay(answer *classads.Ad) time.Duration {
	usual := int64(defaultRetryDelay / time.Second)
	seconds := answer.IntOr("RetryDelay", usual)
	if seconds < 0 || seconds > maxRetryDelay {
		seconds = usual
	}
	return time.Duration(seconds) * time.Second
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
