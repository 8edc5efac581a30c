package shadow

import (
	"context"
	"strings"
	"time"

	"podstarter/classads"
	"podstarter/internal/cedar"
)

// RemoteError is a failure for the job's event log.
type RemoteError struct {
	Message string // may have several lines
	// Code and Subcode decide what happens to the job if the error is critical;
	// see [ShouldVacate]. With code 0 the shadow fills in VacateStarterError.
	Code, Subcode int
	// Critical ends the run: the shadow deactivates the claim and hangs up.
	Critical bool
}

// ReportError reports a failure to the shadow; a critical one puts the job on
// hold, and no call can follow it. The shadow does not answer, so an error only
// means that the message could not be sent
// (condor_starter.V6.1/jic_shadow.cpp:JICShadow::notifyStarterError).
func (c *Client) ReportError(ctx context.Context, e RemoteError) error {
	if e.Code < VacateBase && e.Subcode <= SubcodeRequeue && !c.Version().AtLeast(25, 2, 1) {
		// Older ones would hold the job because of the code. Their own starters
		// send none.
		e.Code, e.Subcode = HoldUnspecified, 0
	}
	return c.ulog(ctx, e.event(time.Now()), e.Critical)
}

// event is a RemoteErrorEvent
// (condor_utils/condor_event.cpp:RemoteErrorEvent::toClassAd).
func (e RemoteError) event(now time.Time) *classads.Ad {
	const remoteErrorNumber = 21 // condor_utils/condor_event.h: ULOG_REMOTE_ERROR
	ad := event("RemoteErrorEvent", remoteErrorNumber, now)
	ad.SetString("Daemon", "starter")
	if e.Message != "" {
		ad.SetString("ErrorMsg", clean(e.Message))
	}
	if !e.Critical {
		ad.SetInt("CriticalError", 0) // true if it is not there
	}
	if e.Code != 0 {
		ad.SetInt("HoldReasonCode", int64(e.Code))
		ad.SetInt("HoldReasonSubCode", int64(e.Subcode))
	}
	return ad
}

func event(kind string, number int64, now time.Time) *classads.Ad {
	ad := classads.NewAd()
	ad.SetString("MyType", kind)
	ad.SetInt("EventTypeNumber", number)
	ad.SetString("EventTime", now.UTC().Format("2006-01-02T15:04:05Z")) // the shadow sets its own
	return ad
}

// clean prepares a text for a string on the wire, which ends at a NUL.
func clean(s string) string { return strings.ReplaceAll(s, "\x00", "?") }

// maxGeneric is the room for text in a generic event, in bytes
// (condor_utils/condor_event.h: GenericEvent::info).
const maxGeneric = 1023

// LogGeneric writes a line into the job's event log.
func (c *Client) LogGeneric(ctx context.Context, text string) error {
	const genericNumber = 8 // ULOG_GENERIC
	text = clean(text)
	if len(text) > maxGeneric {
		text = strings.ToValidUTF8(text[:maxGeneric], "")
	}
	ad := event("GenericEvent", genericNumber, time.Now())
	ad.SetString("Info", text)
	return c.ulog(ctx, ad, false)
}

func (c *Client) ulog(ctx context.Context, ad *classads.Ad, last bool) error {
	_, err := c.tell(ctx, call{name: "ulog", number: CallULog, noReply: true, last: last,
		put: func(s *cedar.Stream) { s.PutAd(ad) }})
	return err
}
