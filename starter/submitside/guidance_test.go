package submitside

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/condor/shadow"
)

// guiding is a shadow that gives one answer after the other.
type guiding struct {
	answers []answer
}

// answer is what the shadow says, and what it expects in the question.
type answer struct {
	code  int
	text  string
	wants []string
}

func (g *guiding) RequestGuidance(_ context.Context, ad *classads.Ad) (shadow.Guidance, error) {
	if len(g.answers) == 0 {
		return shadow.Guidance{}, errors.New("one question too many")
	}
	a := g.answers[0]
	g.answers = g.answers[1:]
	for _, want := range a.wants {
		if !strings.Contains(ad.FormatOld(), want) {
			return shadow.Guidance{}, fmt.Errorf("asked %q without %q", ad.FormatOld(), want)
		}
	}
	parsed, err := classads.ParseOld(a.text)
	return shadow.Guidance{Code: a.code, Ad: parsed}, err
}

// TestConverse: what each answer of a shadow leads to, and what is asked next.
func TestConverse(t *testing.T) {
	const setup, environment = `RequestType = "JobSetup"`, `RequestType = "JobEnvironment"`
	say := func(text string, wants ...string) answer { return answer{text: text, wants: wants} }
	start := say(`Command = "StartJob"`, environment)
	broken := errors.New("cut short")
	for name, tt := range map[string]struct {
		about     string
		silent    bool
		answers   []answer
		diagnosed []string
		diagnosis error
		want      error
	}{
		"setup: carry on":       {about: AboutSetup, answers: []answer{say(`Command = "CarryOn"`, setup, "ContextAd")}},
		"setup: abort":          {about: AboutSetup, answers: []answer{say(`Command = "Abort"`, setup)}, want: ErrAbort},
		"setup: not done here":  {about: AboutSetup, answers: []answer{say(`Command = "StageCommonFiles"`, setup)}},
		"setup: not of setup":   {about: AboutSetup, answers: []answer{say(`Command = "StartJob"`, setup)}},
		"setup: unknown":        {about: AboutSetup, answers: []answer{say(`Command = "DanceNow"`, setup)}},
		"setup: no command":     {about: AboutSetup, answers: []answer{say(`Other = 1`, setup)}},
		"setup: not understood": {about: AboutSetup, answers: []answer{{code: -1, wants: []string{setup}}}},
		"setup: again, with a context": {about: AboutSetup, answers: []answer{
			say("Command = \"RetryReqest\"\nRetryDelay = 0\nContextAd = [ Mark = 5 ]", setup),
			say(`Command = "CarryOn"`, setup, "Mark = 5")}},
		"environment: start":    {about: AboutEnvironment, answers: []answer{start}, want: ErrStartJob},
		"environment: carry on": {about: AboutEnvironment, answers: []answer{say(`Command = "CarryOn"`, environment)}},
		"environment: again":    {about: AboutEnvironment, answers: []answer{say("Command = \"RetryReqest\"\nRetryDelay = 5", environment), start}, want: ErrStartJob},
		"environment: transfer": {about: AboutEnvironment, answers: []answer{say(`Command = "RetryTransfer"`, environment)}, want: ErrRetryTransfer},
		"environment: abort":    {about: AboutEnvironment, answers: []answer{say(`Command = "Abort"`, environment)}, want: ErrAbort},
		"environment: setup once more": {about: AboutEnvironment, answers: []answer{
			say(`Command = "DoJobSetup"`, environment),
			say(`Command = "CarryOn"`, setup, "JobEnvironmentReady = true"),
			start}, want: ErrStartJob},
		"diagnostic": {about: AboutEnvironment, answers: []answer{
			say("Command = \"RunDiagnostic\"\nDiagnostic = \"x\"", environment), start}, diagnosed: []string{"x"}, want: ErrStartJob},
		"diagnostic: no name": {about: AboutEnvironment, answers: []answer{say(`Command = "RunDiagnostic"`, environment)}},
		"diagnostic: cut short": {about: AboutEnvironment, answers: []answer{say("Command = \"RunDiagnostic\"\nDiagnostic = \"x\"", environment)},
			diagnosed: []string{"x"}, diagnosis: broken, want: broken},
		"a shadow that is lost": {about: AboutEnvironment},
		"told to be quiet":      {about: AboutEnvironment, silent: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &guiding{answers: tt.answers}
			var diagnosed []string
			g := Guide{Shadow: s, Silent: tt.silent, Log: slog.New(slog.DiscardHandler),
				Diagnose: func(_ context.Context, name string) error { diagnosed = append(diagnosed, name); return tt.diagnosis }}
			if err := g.Converse(t.Context(), tt.about); !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			if len(s.answers) > 0 {
				t.Errorf("%d answers were not asked for", len(s.answers))
			}
			if diff := cmp.Diff(tt.diagnosed, diagnosed); diff != "" {
				t.Errorf("diagnostics (-want +got):\n%s", diff)
			}
		})
	}
}

// TestConverseEnds: a shadow that always asks for another try is left when ctx ends.
func TestConverseEnds(t *testing.T) {
	why := errors.New("ended by order")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	s := &guiding{answers: []answer{{text: "Command = \"RetryReqest\"\nRetryDelay = 86400"}}}
	g := Guide{Shadow: s, Log: slog.New(slog.DiscardHandler)}
	if err := g.Converse(ctx, AboutSetup); !errors.Is(err, why) {
		t.Errorf("%v, want %v", err, why)
	}
}

// TestEnvironmentIsAskedAgain: the first pauses are shorter than the shadow says, and grow up
// to that.
func TestEnvironmentIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &guiding{}
		for range 8 {
			s.answers = append(s.answers, answer{text: "Command = \"RetryReqest\"\nRetryDelay = 5"})
		}
		s.answers = append(s.answers, answer{text: `Command = "StartJob"`})
		g := Guide{Shadow: s, Log: slog.New(slog.DiscardHandler)}
		began := time.Now()
		if err := g.Converse(t.Context(), AboutEnvironment); !errors.Is(err, ErrStartJob) {
			t.Error(err)
		}
		const want = (100 + 200 + 400 + 800 + 1600 + 3200 + 5000 + 5000) * time.Millisecond
		if waited := time.Since(began); waited != want {
			t.Errorf("the pauses are %v together, want %v", waited, want)
		}
	})
}

func TestRetryDelay(t *testing.T) {
	for text, want := range map[string]int{
		"RetryDelay = 7": 7, "RetryDelay = 0": 0, "RetryDelay = -1": 20, "RetryDelay = 86400": 86400, "RetryDelay = 86401": 20, "Other = 1": 20,
	} {
		ad, err := classads.ParseOld(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := int(retryDelay(ad).Seconds()); got != want {
			t.Errorf("%s: %d s, want %d", text, got, want)
		}
	}
}
