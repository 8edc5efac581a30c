package report

import (
	"context"
	"io"
	"log/slog"
	"math"

	"podstarter/payload"
	"podstarter/starter/journal"
	"podstarter/starter/settings"
)

// newLines is the log of lines in a format.
func newLines(format string, out io.Writer) *slog.Logger {
	switch format {
	case settings.EventLogNone:
		return slog.New(slog.DiscardHandler)
	case settings.EventLogJSON:
		return slog.New(slog.NewJSONHandler(out, nil))
	}
	return slog.New(slog.NewTextHandler(out, nil))
}

// print prints an event as one line, at the time at which it happened. Its texts are clean.
func print(to *slog.Logger, e journal.Event) {
	level := levelOf(e)
	if level < slog.LevelInfo {
		return
	}
	message := string(e.Kind)
	if e.Kind == journal.Checked {
		message = "pod takes jobs"
		if e.Reason != "" {
			message = "pod takes no jobs until this is corrected"
		}
	}
	r := slog.NewRecord(e.Time.UTC(), level, message, 0)
	text := func(key, value string) {
		if value != "" {
			r.AddAttrs(slog.String(key, value))
		}
	}
	number := func(key string, value float64) {
		if value > 0 {
			r.AddAttrs(slog.Float64(key, math.Round(value*1000)/1000))
		}
	}
	integer := func(key string, value int) {
		if value != 0 {
			r.AddAttrs(slog.Int(key, value))
		}
	}
	text("job", e.Job)
	text("owner", e.Owner)
	text("slot", e.Slot)
	if e.Kind == journal.JobBegins {
		text("from", e.SubmitHost)
	}
	text("container", e.Container)
	text("image", e.Image)
	text("how", e.How)
	text("outcome", string(e.Outcome))
	if e.Exit != nil {
		r.AddAttrs(slog.Int("exit", *e.Exit))
	}
	integer("signal", e.Signal)
	integer("code", e.Code)
	integer("subcode", e.Subcode)
	text("blame", e.Blame)
	text("cause", e.Cause)
	number("seconds", e.Seconds)
	number("fetched_seconds", e.Fetched)
	number("copied_seconds", e.Copied)
	number("copied_mib", float64(e.CopiedBytes)/(1<<20))
	number("ran_seconds", e.Ran)
	number("cpu_seconds", e.CPU)
	number("memory_mib", float64(e.Memory)/(1<<20))
	text("reason", e.Reason)
	_ = to.Handler().Handle(context.Background(), r) // the outlet counts what is lost
}

// levelOf says how much an operator should care: an error is something to repair here, a
// warning may become one.
func levelOf(e journal.Event) slog.Level {
	switch {
	case e.Blame == payload.Pilot.String(), e.Kind == journal.Checked && e.Reason != "":
		return slog.LevelError
	case e.Outcome == journal.Requeued, e.Outcome == journal.Lost:
		return slog.LevelWarn
	case e.Kind == journal.JobBegins, e.Kind == journal.ImageBound, e.Kind == journal.JobEnds, e.Kind == journal.Checked:
		return slog.LevelInfo
	}
	return slog.LevelDebug // of a newer version
}
