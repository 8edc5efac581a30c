package shadow

import (
	"context"
	"fmt"

	"podstarter/classads"
	"podstarter/internal/cedar"
)

// Numbers of the calls (condor_includes/condor_sys.h), also for what answers them in the place of a shadow.
const (
	CallGetJobInfo          = -63
	CallJobExit             = -65
	CallGetUserInfo         = -76
	CallRegisterStarterInfo = -77
	CallBeginExecution      = -78
	CallRegisterJobInfo     = -81
	CallJobTermination      = -82
	CallDprintfStats        = -84
	CallGetDockerCreds      = -85
	CallULog                = 284
	CallGetJobAttr          = 285
	CallSetJobAttr          = 286
	CallConstrain           = 287
	CallGetSecSessionInfo   = 288
	CallWhoAmI              = 297
	CallGetCreds            = 302
	CallGetDelegatedProxy   = 303
	CallEventNotification   = 304
	CallRequestGuidance     = 305
)

// GetJobInfo fetches the job's ad, secrets included. It is the first call.
func (c *Client) GetJobInfo(ctx context.Context) (*classads.Ad, error) {
	return c.getAd(ctx, "get_job_info", CallGetJobInfo)
}

// GetUserInfo asks for Uid and Gid of the job's owner on the submit side, for a
// machine that shares user ids but has no account for the user.
func (c *Client) GetUserInfo(ctx context.Context) (*classads.Ad, error) {
	return c.getAd(ctx, "get_user_info", CallGetUserInfo)
}

func (c *Client) getAd(ctx context.Context, name string, number int64) (*classads.Ad, error) {
	a := ask(ctx, c, call{name: name, number: number}, takeAd)
	return a.value, a.err
}

func takeAd(s *cedar.Stream, _ int64) (*classads.Ad, error) { return s.GetAd() }

func (c *Client) putAd(ctx context.Context, name string, number int64, ad *classads.Ad) error {
	_, err := c.tell(ctx, call{name: name, number: number, put: func(s *cedar.Stream) { s.PutAd(ad) }})
	return err
}

// RegisterStarterInfo tells the shadow who runs its job; once, before every other
// call except GetJobInfo.
func (c *Client) RegisterStarterInfo(ctx context.Context, ad *classads.Ad) error {
	return c.putAd(ctx, "register_starter_info", CallRegisterStarterInfo, ad)
}

// RegisterJobInfo sends an update. It is also the heartbeat between both sides.
func (c *Client) RegisterJobInfo(ctx context.Context, ad *classads.Ad) error {
	return c.putAd(ctx, "register_job_info", CallRegisterJobInfo, ad)
}

// BeginExecution tells the shadow that the job's process is about to be executed;
// the shadow logs it.
func (c *Client) BeginExecution(ctx context.Context) error {
	_, err := c.tell(ctx, call{name: "begin_execution", number: CallBeginExecution})
	return err
}

// JobTermination tells how a job ended whose output could not be transferred,
// before that failure is reported.
func (c *Client) JobTermination(ctx context.Context, ad *classads.Ad) error {
	return c.putAd(ctx, "job_termination", CallJobTermination, ad)
}

// JobExit ends the run; it is the last call. An earlier update must have told how
// the job ended: the shadow uses that.
func (c *Client) JobExit(ctx context.Context, waitStatus int, reason Reason, ad *classads.Ad) error {
	if ad == nil {
		ad = classads.NewAd() // the shadow always reads one
	}
	_, err := c.tell(ctx, call{name: "job_exit", number: CallJobExit, last: true, put: func(s *cedar.Stream) {
		s.PutInt(int64(waitStatus))
		s.PutInt(int64(reason))
		s.PutAd(ad)
	}})
	return err
}

// EventNotification reports an event; the ad's EventType names its kind. The result
// says little: shadows answer -3, unknown, even for recorded events. A shadow too
// old for the call is not asked, and the result is 0.
func (c *Client) EventNotification(ctx context.Context, ad *classads.Ad) (int, error) {
	const name = "event_notification"
	if c.since(name, 9, 4, 1) != nil {
		return 0, nil
	}
	result, err := c.tell(ctx, call{name: name, number: CallEventNotification, noErrno: true,
		put: func(s *cedar.Stream) { s.PutAd(ad) }})
	return int(result), err
}

// ForgetsCheckpoints reports whether the shadow acts upon [EventInvalidCheckpoint].
// An older one only answers as if it did.
func (c *Client) ForgetsCheckpoints() bool { return c.Version().AtLeast(24, 1, 0) }

// Event returns the ad of an event.
func Event(kind string) *classads.Ad {
	ad := classads.NewAd()
	ad.SetString("EventType", kind)
	return ad
}

// Kinds of events (condor_utils/event_notification.h).
const (
	EventExecutionExit        = "ActivationExecutionExit"
	EventSuccessfulCheckpoint = "SuccessfulCheckpoint"
	EventFailedCheckpoint     = "FailedCheckpoint"
	EventInvalidCheckpoint    = "InvalidCheckpointDownload"
	EventDiagnosticResult     = "DiagnosticResult"
)

// Guidance is a shadow's advice about the next step.
type Guidance struct {
	Code int          // GuidanceCommand, or what was wrong with the question
	Ad   *classads.Ad // Command says what to do
}

// Results of RequestGuidance (condor_utils/guidance.h). All except GuidanceCommand
// mean to carry on.
const (
	GuidanceCommand          = 0
	GuidanceUnknownRequest   = -1
	GuidanceMalformedRequest = -2
	GuidanceInvalid          = -3
)

// Values of Command.
const (
	CommandCarryOn       = "CarryOn"
	CommandStartJob      = "StartJob"
	CommandAbort         = "Abort"
	CommandRetryRequest  = "RetryReqest" // as it is spelled on the wire
	CommandRetryTransfer = "RetryTransfer"
	CommandRunDiagnostic = "RunDiagnostic"
	CommandDoJobSetup    = "DoJobSetup"
	CommandStageCommon   = "StageCommonFiles"
	CommandMapCommon     = "MapCommonFiles"
	CommandColorSlot     = "ColorSlot"
)

// Command returns the next step: CarryOn unless the shadow clearly asked for
// something else.
func (g Guidance) Command() string {
	if g.Code != GuidanceCommand || g.Ad == nil {
		return CommandCarryOn
	}
	return g.Ad.StringOr("Command", CommandCarryOn)
}

// RequestGuidance asks for the next step; the ad's RequestType says about what. For
// a shadow too old for the call the answer is CarryOn.
func (c *Client) RequestGuidance(ctx context.Context, ad *classads.Ad) (Guidance, error) {
	const name = "request_guidance"
	if c.since(name, 24, 5, 0) != nil {
		answer := classads.NewAd()
		answer.SetString("Command", CommandCarryOn)
		return Guidance{Ad: answer}, nil
	}
	a := ask(ctx, c, call{name: name, number: CallRequestGuidance, noErrno: true,
		put: func(s *cedar.Stream) { s.PutAd(ad) }}, takeAd)
	return Guidance{Code: int(a.result), Ad: a.value}, a.err
}

// WhoAmI asks for a sign of life.
func (c *Client) WhoAmI(ctx context.Context) (string, error) {
	const room = 32
	a := ask(ctx, c, call{name: "whoami", number: CallWhoAmI, put: func(s *cedar.Stream) { s.PutInt(room) }},
		func(s *cedar.Stream, n int64) ([]byte, error) { return getBytes(s, n, room) })
	return string(a.value), a.err
}

// getBytes reads the bytes of an answer, at most most.
func getBytes(s *cedar.Stream, n int64, most int) ([]byte, error) {
	if n > int64(most) {
		return nil, fmt.Errorf("the shadow answers with %d bytes where %d were asked for", n, most)
	}
	return s.GetBytes(int(n))
}

// DprintfStats sends the shadow a line about a transfer for its log.
func (c *Client) DprintfStats(ctx context.Context, line string) error {
	const name = "dprintf_stats"
	if err := c.since(name, 8, 5, 8); err != nil {
		return err
	}
	_, err := c.tell(ctx, call{name: name, number: CallDprintfStats, put: func(s *cedar.Stream) { s.PutString(line) }})
	return err
}
