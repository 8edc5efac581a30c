package submitside

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"podstarter/classads"
	"podstarter/condor/shadow"
)

// What a shadow can be asked for guidance about (HTCondor src/condor_utils/guidance.h).
const (
	AboutSetup       = "JobSetup"
	AboutEnvironment = "JobEnvironment"
)

// What a shadow may want that ends a conversation.
var (
	ErrStartJob      = errors.New("the shadow asks for the job to be started")
	ErrRetryTransfer = errors.New("the shadow asks for the transfer to be repeated")
	ErrAbort         = errors.New("the shadow asks for the job to be given up")
)

const (
	// defaultRetryDelay is how long to wait before asking again when the shadow does
	// not say (starter_guidance.cpp).
	defaultRetryDelay = 20 * time.Second
	// firstEnvironmentDelay is how soon to ask again about the environment. The shadow
	// says 5 s when it has not yet reaped its own half of the transfer, which takes it
	// a millisecond; it keeps no state of the questions.
	firstEnvironmentDelay = 100 * time.Millisecond
	// maxRetryDelay is the longest delay in seconds that is believed.
	maxRetryDelay = 86400
	// maxGuidance bounds one conversation.
	maxGuidance = 100000
)

// Guide asks a shadow what to do next.
type Guide struct {
	Shadow interface {
		RequestGuidance(ctx context.Context, ad *classads.Ad) (shadow.Guidance, error)
	}
	// Diagnose runs a diagnostic and sends what it found. Its errors end the
	// conversation.
	Diagnose func(ctx context.Context, name string) error
	// Common are the commands about common files that can be followed, by their names; empty
	// where the starter offers none.
	Common map[string]Follow
	// Await waits for a shadow when the connection is lost. With it, a conversation about
	// set-up then goes on where it was; else it ends, and means to carry on.
	Await  func(ctx context.Context) error
	Silent bool // nothing is asked (GUIDANCE_MUMS_THE_WORD)
	Log    *slog.Logger
}

// Follow does what a shadow wants done about common files. The result is the context of the
// next question; nil if the guidance makes no sense, which means to carry on.
type Follow func(ctx context.Context, guidance *classads.Ad) (result *classads.Ad)

// CommonFilesVersion is the version of HTCondor's protocol for common files that is spoken
// here (CFT_VERSION).
const CommonFilesVersion = 2

// Converse asks the shadow what to do next and follows its answers until it says to
// carry on, which is nil, or one of the errors above. A shadow without guidance, or
// an answer that is not understood, means carry on
// (starter_guidance.cpp:handleJobSetupCommand, handleJobEnvironmentCommand).
func (g Guide) Converse(ctx context.Context, about string) error {
	return g.converse(ctx, about, classads.NewAd())
}

// converse begins with a context, the result of what was done last.
func (g Guide) converse(ctx context.Context, about string, result *classads.Ad) error {
	if g.Silent {
		return nil
	}
	request := classads.NewAd()
	request.SetString("RequestType", about)
	if about == AboutSetup {
		if len(g.Common) > 0 {
			request.SetInt("HasCommonFilesTransfer", CommonFilesVersion)
		}
		request.SetAd("ContextAd", result)
	}
	delay := firstEnvironmentDelay
	for range maxGuidance {
		g.Log.Info("Requesting guidance from the shadow about " + about + "...")
		guidance, err := g.Shadow.RequestGuidance(context.WithoutCancel(ctx), request)
		if errors.Is(err, shadow.ErrLost) && about == AboutSetup && g.Await != nil {
			if err := g.Await(ctx); err != nil {
				return err
			}
			continue
		}
		if err != nil || guidance.Code != shadow.GuidanceCommand || guidance.Ad == nil {
			g.Log.Info(fmt.Sprintf("Problem requesting guidance from AP (%d); carrying on.", guidance.Code))
			return nil // what was begun goes on without a shadow, too
		}
		command := guidance.Command()
		g.told(about, command)
		if about == AboutSetup && g.Common[command] != nil {
			next := g.Common[command](ctx, guidance.Ad)
			if err := context.Cause(ctx); err != nil {
				return err
			}
			if next == nil {
				return nil
			}
			request.SetAd("ContextAd", next)
			continue
		}
		if about == AboutSetup && !ofSetup(command) {
			return nil
		}
		switch command {
		case shadow.CommandRetryRequest:
			wait := retryDelay(guidance.Ad)
			if about == AboutEnvironment && wait > delay {
				wait = delay
				delay *= 2
			}
			if err := Pause(ctx, wait); err != nil {
				return err
			}
			if about == AboutSetup {
				if next, ok := guidance.Ad.Lookup("ContextAd"); ok {
					request.Insert("ContextAd", next)
				} else {
					request.SetAd("ContextAd", classads.NewAd())
				}
			}
		case shadow.CommandRunDiagnostic:
			name, err := guidance.Ad.GetString("Diagnostic")
			if err != nil {
				g.Log.Info("Received guidance 'RunDiagnostic', but could not find a diagnostic to run; carrying on, instead.", "error", err)
				return nil
			}
			g.Log.Info("Running diagnostic '" + clipped(name) + "' as guided...")
			if err := g.Diagnose(ctx, name); err != nil {
				return err
			}
		case shadow.CommandDoJobSetup:
			ready := classads.NewAd()
			ready.SetBool("JobEnvironmentReady", true)
			if err := g.converse(ctx, AboutSetup, ready); err != nil {
				return err
			}
		case shadow.CommandStartJob:
			return ErrStartJob
		case shadow.CommandRetryTransfer:
			return ErrRetryTransfer
		case shadow.CommandAbort:
			return ErrAbort
		default: // CarryOn, and what is not known here
			return nil
		}
	}
	return nil
}

// told logs a command as stock does (starter_guidance.cpp:handleJobEnvironmentCommand,
// handleJobSetupCommand). Before the transfer, stock logs only what is unusual.
func (g Guide) told(about, command string) {
	level, shown := slog.LevelInfo, clipped(command)
	if about == AboutSetup {
		level = slog.LevelDebug
	}
	g.Log.Log(context.Background(), level, "Received the following guidance: '"+shown+"'")
	if about == AboutSetup && g.Common[command] != nil {
		return
	}
	switch command {
	case shadow.CommandRetryRequest, shadow.CommandRunDiagnostic, shadow.CommandDoJobSetup:
		return
	case shadow.CommandAbort:
		g.Log.Info("Aborting job as guided...")
		return
	case shadow.CommandCarryOn:
		g.Log.Log(context.Background(), level, "Carrying on according to guidance...")
		return
	}
	switch {
	case about == AboutEnvironment && command == shadow.CommandStartJob:
		g.Log.Info("Starting job as guided...")
	case about == AboutEnvironment && command == shadow.CommandRetryTransfer:
		g.Log.Info("Retrying transfer as guided...")
	default:
		g.Log.Info("Guidance '" + shown + "' unknown, carrying on.")
	}
}

// clipped bounds a word of the shadow for the log, which makes it harmless.
func clipped(word string) string {
	const most = 200
	return word[:min(len(word), most)]
}

// ofSetup says whether a command belongs to the conversation before the transfer.
// Other commands mean carry on there.
func ofSetup(command string) bool {
	return command == shadow.CommandRetryRequest || command == shadow.CommandAbort
}

// retryDelay is how long the shadow wants to wait for the next question.
func retryDelay(answer *classads.Ad) time.Duration {
	usual := int64(defaultRetryDelay / time.Second)
	seconds := answer.IntOr("RetryDelay", usual)
	if seconds < 0 || seconds > maxRetryDelay {
		seconds = usual
	}
	return time.Duration(seconds) * time.Second
}
