package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"podstarter/classads"
	"podstarter/condor/config"
	"podstarter/condor/version"
	"podstarter/internal/cedar"
)

const (
	callEvent    = 304
	callGuidance = 305
)

// takeAdCall takes a call that has one ad as its field.
func takeAdCall(s *cedar.Stream, number int64) (*classads.Ad, error) {
	n, err := s.GetInt()
	if err != nil {
		return nil, err
	}
	if n != number {
		return nil, fmt.Errorf("call %d, want %d", n, number)
	}
	ad, err := s.GetAd()
	if err != nil {
		return nil, err
	}
	return ad, s.EndOfMessage()
}

// guide answers one question for guidance. wants are attributes of the question, in the
// old syntax.
func guide(code int, answer string, wants ...string) play {
	return func(s *cedar.Stream) error {
		asked, err := takeAdCall(s, callGuidance)
		if err != nil {
			return err
		}
		for _, want := range wants {
			if !strings.Contains(asked.FormatOld(), want) {
				return fmt.Errorf("asked with %q, want %q", asked.FormatOld(), want)
			}
		}
		ad, err := classads.ParseOld(answer)
		if err != nil {
			return err
		}
		s.PutInt(int64(code))
		s.PutAd(ad)
		return s.EndMessage()
	}
}

// diagnosed takes the result of a diagnostic.
func diagnosed(wants ...string) play {
	return func(s *cedar.Stream) error {
		event, err := takeAdCall(s, callEvent)
		if err != nil {
			return err
		}
		for _, want := range append(wants, `EventType = "DiagnosticResult"`) {
			if !strings.Contains(event.FormatOld(), want) {
				return fmt.Errorf("told %q, want %q", event.FormatOld(), want)
			}
		}
		s.PutInt(0)
		return s.EndMessage()
	}
}

// TestGuidance: what each answer of a shadow leads to, and what is asked next.
func TestGuidance(t *testing.T) {
	const setup, environment = `RequestType = "JobSetup"`, `RequestType = "JobEnvironment"`
	start := guide(0, `Command = "StartJob"`, environment)
	base64Of := func(text string) string { return `"` + base64.StdEncoding.EncodeToString([]byte(text)) + `"` }
	for name, tt := range map[string]struct {
		about   string
		old     bool
		knobs   map[string]string
		program string // of the diagnostic "x"
		plays   []play
		want    error
	}{
		"setup: carry on":       {about: guidanceSetup, plays: []play{guide(0, `Command = "CarryOn"`, setup, "ContextAd")}},
		"setup: abort":          {about: guidanceSetup, plays: []play{guide(0, `Command = "Abort"`, setup)}, want: errAbort},
		"setup: not done here":  {about: guidanceSetup, plays: []play{guide(0, `Command = "StageCommonFiles"`, setup)}},
		"setup: not of setup":   {about: guidanceSetup, plays: []play{guide(0, `Command = "StartJob"`, setup)}},
		"setup: unknown":        {about: guidanceSetup, plays: []play{guide(0, `Command = "DanceNow"`, setup)}},
		"setup: no command":     {about: guidanceSetup, plays: []play{guide(0, `Other = 1`, setup)}},
		"setup: not understood": {about: guidanceSetup, plays: []play{guide(-1, ``, setup)}},
		"setup: again, with a context": {about: guidanceSetup, plays: []play{
			guide(0, "Command = \"RetryReqest\"\nRetryDelay = 0\nContextAd = [ Mark = 5 ]", setup),
			guide(0, `Command = "CarryOn"`, setup, "Mark = 5")}},
		"environment: start":    {about: guidanceEnvironment, plays: []play{start}, want: errStartJob},
		"environment: carry on": {about: guidanceEnvironment, plays: []play{guide(0, `Command = "CarryOn"`, environment)}},
		"environment: again":    {about: guidanceEnvironment, plays: []play{guide(0, "Command = \"RetryReqest\"\nRetryDelay = 5", environment), start}, want: errStartJob},
		"environment: transfer": {about: guidanceEnvironment, plays: []play{guide(0, `Command = "RetryTransfer"`, environment)}, want: errRetryTransfer},
		"environment: abort":    {about: guidanceEnvironment, plays: []play{guide(0, `Command = "Abort"`, environment)}, want: errAbort},
		"environment: setup once more": {about: guidanceEnvironment, plays: []play{
			guide(0, `Command = "DoJobSetup"`, environment),
			guide(0, `Command = "CarryOn"`, setup, "JobEnvironmentReady = true"),
			start}, want: errStartJob},
		"diagnostic: not here": {about: guidanceEnvironment, plays: []play{
			guide(0, "Command = \"RunDiagnostic\"\nDiagnostic = \"x\"", environment),
			diagnosed(`Diagnostic = "x"`, `Result = "Error - Unregistered"`), start}, want: errStartJob},
		"diagnostic: an odd name": {about: guidanceEnvironment, plays: []play{
			guide(0, "Command = \"RunDiagnostic\"\nDiagnostic = \"../x\"", environment),
			diagnosed(`Result = "Error - Unregistered"`), start}, want: errStartJob},
		"diagnostic: no name": {about: guidanceEnvironment, plays: []play{guide(0, `Command = "RunDiagnostic"`, environment)}},
		"diagnostic: no file": {about: guidanceEnvironment, knobs: map[string]string{"STARTER_DIAGNOSTIC_X": "/no/such/file"}, plays: []play{
			guide(0, "Command = \"RunDiagnostic\"\nDiagnostic = \"x\"", environment),
			diagnosed(`Result = "Error - specified path does not exist"`), start}, want: errStartJob},
		"diagnostic: done": {about: guidanceEnvironment, program: "echo out $BASE ${_CONDOR_STARTER_PID:+with pid}; echo err >&2; exit 3\n", plays: []play{
			guide(0, "Command = \"RunDiagnostic\"\nDiagnostic = \"x\"", environment),
			diagnosed(`Result = "Completed"`, "ExitStatus = 768", "Contents = "+base64Of("out yes with pid\nerr\n")), start}, want: errStartJob},
		"a shadow that knows none": {about: guidanceEnvironment, old: true},
		"told to be quiet":         {about: guidanceEnvironment, knobs: map[string]string{"GUIDANCE_MUMS_THE_WORD": "True"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := &activation{log: slog.New(slog.DiscardHandler), environ: []string{"BASE=yes", "PATH=/usr/bin:/bin"}}
			plays := make(chan play, len(tt.plays))
			for _, p := range tt.plays {
				plays <- p
			}
			close(plays)
			withShadow(t, a, plays)
			if tt.program != "" {
				tt.knobs = map[string]string{"STARTER_DIAGNOSTIC_X": siteProgram(t, tt.program)}
			}
			a.useKnobs(config.FromMap(tt.knobs))
			v := "$CondorVersion: 25.14.1 2026-10-01 BuildID: 1 $"
			if tt.old {
				v = "$CondorVersion: 23.9.6 2024-08-08 BuildID: 1 $"
			}
			a.shadow.SetVersion(version.Of(v))
			if err := a.converse(t.Context(), tt.about); !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			if left := len(plays); left > 0 {
				t.Errorf("%d answers were not asked for", left)
			}
			if err := a.shadow.Over(); err != nil {
				t.Errorf("the shadow is lost: %v", err)
			}
		})
	}
}
