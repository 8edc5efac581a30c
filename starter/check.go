package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"podstarter/condor/config"
	"podstarter/internal/buildinfo"
	"podstarter/payload"
	"podstarter/starter/activation"
	"podstarter/starter/failure"
	"podstarter/starter/outlet"
	"podstarter/starter/settings"
)

// checkOptions are the only arguments of a call that audits the execution point
// and runs nothing: -check, or -check -json for programs.
func checkOptions(args []string) (check, asJSON bool) {
	switch {
	case len(args) == 1 && args[0] == "-check":
		return true, false
	case len(args) == 2 && args[0] == "-check" && args[1] == "-json":
		return true, true
	}
	return false, false
}

// printAudit audits the execution point from inside and prints what it finds. The
// exit code is 0 unless something is bad.
func printAudit(ctx context.Context, out io.Writer, cfg *config.Config, asJSON bool) int {
	title, found := audit(ctx, cfg)
	print := printFindings
	if asJSON {
		print = encodeFindings
	}
	if err := print(out, title, found); err != nil {
		fmt.Fprintf(os.Stderr, "condor_pod_starter: print the findings: %v\n", err)
		return activation.ExitGeneral
	}
	for _, f := range found {
		if f.Grade == payload.Bad {
			return activation.ExitGeneral
		}
	}
	return activation.ExitNormal
}

// audit collects the findings: HTCondor's side here, the pod's in the backend.
func audit(ctx context.Context, cfg *config.Config) (title string, found []payload.Finding) {
	title = "podstarter " + buildinfo.Version() + ", HTCondor " + cfg.String("CONDOR_VERSION", "of unknown version")
	set, err := settings.Read(cfg)
	found = append(unknownKnobs(cfg), knobsNotGiven(set)...)
	if err != nil {
		for _, l := range failure.Lines(err) {
			found = append(found, badKnob(l))
		}
		return title, found
	}
	title += ", backend " + set.Backend
	if set.Backend == settings.BackendPod {
		title += ", pod " + set.PodNamespace + "/" + set.PodName
	}
	found = append(found, auditKnobs(cfg, set)...)
	backend, err := newBackend(ctx, set, cfg, &calls{}, slog.New(slog.DiscardHandler))
	if err != nil {
		for _, l := range failure.Lines(err) {
			found = append(found, badKnob(l))
		}
		return title, found
	}
	return title, append(append(found, backend.Audit(ctx)...), auditJava(ctx, set, cfg)...)
}

// unknownKnobs are the names in the configuration that look like knobs of ours.
func unknownKnobs(cfg *config.Config) (found []payload.Finding) {
	for _, u := range settings.UnknownKnobs(cfg) {
		found = append(found, payload.Finding{Grade: payload.Warn, What: "configuration", Detail: u.String(), Fix: u.Name})
	}
	return found
}

// knobsNotGiven are knobs of HTCondor that the site has set, and that are not obeyed here.
// So are knobs that are not understood.
func knobsNotGiven(set settings.Settings) (found []payload.Finding) {
	for _, n := range settings.KnobsNotGiven(set.Config, set.InPod()) {
		found = append(found, payload.Finding{Grade: payload.Warn, What: "configuration", Detail: n.String(), Fix: n.Instead})
	}
	for _, w := range set.Condor.Warnings {
		found = append(found, payload.Finding{Grade: payload.Warn, What: "configuration", Detail: w.Error(), Fix: "the knob; meanwhile its default holds"})
	}
	return found
}

// badKnob is a line of settings.Read's or newBackend's error: it begins with
// the knob.
func badKnob(text string) payload.Finding {
	knob, detail, ok := strings.Cut(text, ": ")
	if !ok {
		knob, detail = "", text
	}
	return payload.Finding{Grade: payload.Bad, What: "configuration", Detail: detail, Fix: knob}
}

// auditKnobs looks at the knobs of HTCondor that have to fit ours.
func auditKnobs(cfg *config.Config, set settings.Settings) []payload.Finding {
	var found []payload.Finding
	add := func(grade payload.Grade, what, fix, format string, args ...any) {
		found = append(found, payload.Finding{Grade: grade, What: what, Fix: fix, Detail: fmt.Sprintf(format, args...)})
	}
	program, err := os.Executable()
	configured := cfg.String("STARTER", "")
	switch {
	case err != nil || !sameFile(program, configured):
		add(payload.Bad, "starter", "STARTER = "+program, "the startd runs %q, which is not this program", configured)
	default:
		add(payload.OK, "starter", "", "the startd runs %s", configured)
	}
	owner, err := settings.CondorOwner(cfg)
	if err != nil {
		add(payload.Bad, "user of HTCondor", "CONDOR_IDS", "%v", err)
	}
	last := set.PayloadUID + len(set.Containers) - 1
	if err == nil && owner.UID >= set.PayloadUID && owner.UID <= last {
		add(payload.Bad, "user of HTCondor", settings.KnobPayloadUID.Name, "user %d owns HTCondor's files, and is the user of a payload container as well", owner.UID)
	}
	auditBroker(cfg, add)
	if w := set.BesideStarter(); w != "" {
		knob, detail, _ := strings.Cut(w, ": ")
		add(payload.Warn, "backend", knob, "%s", detail)
	}
	if set.Backend == settings.BackendPod {
		auditSlots(cfg, set, add)
		auditLog(set, add)
		auditGPUs(cfg, set, add)
		found = append(found, hostOf(set).Audit()...)
	}
	return found
}

// auditBroker looks whether a broker (CCB) can reach starters: the shared port registers there, starters do
// not; and whether starters are to reach everybody through one.
func auditBroker(cfg *config.Config, add func(grade payload.Grade, what, fix, format string, args ...any)) {
	if outbound, ok := cfg.Lookup("OUTBOUND_CCB_ADDRESS"); ok {
		add(payload.Bad, "broker", "remove OUTBOUND_CCB_ADDRESS", "starters open no connections through the broker %s: they call shadows themselves, for files, and pods must have a way to them", outbound)
	}
	broker, ok := cfg.Lookup("CCB_ADDRESS")
	if !ok {
		return
	}
	if shared, err := cfg.Bool("USE_SHARED_PORT", true); err == nil && !shared {
		add(payload.Bad, "broker", "USE_SHARED_PORT = True", "the broker %s cannot reach a starter without a shared port: shadows that come back and condor_ssh_to_job will not find it", broker)
		return
	}
	add(payload.OK, "broker", "", "starters are reached by %s, through the shared port", broker)
}

// auditLog looks whether somebody reads what the keeper has to tell.
func auditLog(set settings.Settings, add func(grade payload.Grade, what, fix, format string, args ...any)) {
	const what = "log"
	if set.EventLog == settings.EventLogNone {
		add(payload.OK, what, "", "nothing about jobs is wanted on standard output")
		return
	}
	out := outlet.Outlet{Dir: set.StateDir()}
	defer out.Close()
	if err := out.Open(); err != nil {
		add(payload.Warn, what, "the entrypoint of the pilot image, or the two lines in docs/operator/logs.md", "what becomes of jobs cannot reach kubectl logs: %v", err)
		return
	}
	add(payload.OK, what, "", "what becomes of jobs is on standard output of the pilot container")
}

// auditSlots compares the number of jobs that the startd may run with that of
// containers for them.
func auditSlots(cfg *config.Config, set settings.Settings, add func(grade payload.Grade, what, fix, format string, args ...any)) {
	const what = "slots"
	containers := set.ForSlots()
	if w := settings.SlotsBeyondContainers(cfg, len(set.Containers), set.Spares); w != "" {
		knob, detail, _ := strings.Cut(w, ": ")
		add(payload.Warn, what, knob, "%s", detail)
		return
	}
	fixed, cut := settings.SlotsOf(cfg)
	counted, counts := settings.CountedContainers(cfg)
	switch {
	case !cut && fixed < containers:
		fix := "NUM_SLOTS_TYPE_1 = " + strconv.Itoa(containers)
		if fixed > 0 {
			fix += fmt.Sprintf(", or %s = %d", settings.KnobSpares.Name, len(set.Containers)-fixed)
		}
		add(payload.Warn, what, fix, "there are %d payload containers for slots, and slots for %d jobs", containers, fixed)
	case cut && counts && counted < set.Counted():
		add(payload.Warn, what, "condor_config.d/95-podstarter-slots.conf", "there are %d payload containers for slots, besides those with GPUs, and the startd gives out %d", set.Counted(), counted)
	case cut && counts && counted > set.Counted():
		add(payload.Bad, what, "condor_config.d/95-podstarter-slots.conf", "the startd gives out %d payload containers beside those with GPUs, and there are %d: install the file of this version", counted, set.Counted())
	case set.Spares > 0:
		add(payload.OK, what, "", "the startd never runs more jobs than there are payload containers for slots (%d), and leaves the spares (%d)", containers, set.Spares)
	default:
		add(payload.OK, what, "", "the startd never runs more jobs than there are payload containers (%d)", containers)
	}
}

func sameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(filepath.Clean(b))
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// encodeFindings prints them for programs.
func encodeFindings(out io.Writer, title string, found []payload.Finding) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(struct {
		Title    string            `json:"title"`
		Findings []payload.Finding `json:"findings"`
	}{title, found})
}

// printFindings prints them for people: one line each, and one more for what to
// change.
func printFindings(out io.Writer, title string, found []payload.Finding) error {
	var b strings.Builder
	b.WriteString(plain(title) + "\n\n")
	width := 0
	count := map[payload.Grade]int{}
	for _, f := range found {
		width = max(width, len(f.What))
		count[f.Grade]++
	}
	marks := map[payload.Grade]string{payload.OK: "ok  ", payload.Warn: "WARN", payload.Bad: "BAD "}
	for _, f := range found {
		fmt.Fprintf(&b, "%s  %-*s  %s\n", marks[f.Grade], width, f.What, plain(f.Detail))
		if f.Fix != "" {
			fmt.Fprintf(&b, "      %-*s  change: %s\n", width, "", plain(f.Fix))
		}
	}
	fmt.Fprintf(&b, "\n%d ok, %d to be warned of, %d bad\n", count[payload.OK], count[payload.Warn], count[payload.Bad])
	_, err := io.WriteString(out, b.String())
	return err
}

// plain is text from elsewhere on one line and without control characters: it
// goes to a terminal.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0:
			return -1
		}
		return r
	}, text)
}
