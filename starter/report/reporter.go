package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/procfs"

	"podstarter/k8sexec/privatedir"
	"podstarter/starter/failure"
	"podstarter/starter/journal"
	"podstarter/starter/outlet"
	"podstarter/starter/podhealth"
	"podstarter/starter/settings"
	"podstarter/starter/tally"
)

// Options are what a reporter tells, and where.
type Options struct {
	// StateDir is the directory of the journal, see podhealth.Pod.
	StateDir string
	// PublishDir is where the totals go for metrics: HTCondor's LOCK; empty for nowhere.
	PublishDir string
	// Format of the lines: settings.EventLogText and its like.
	Format string
	// Slots is how many jobs may run at a time.
	Slots int
	// Pod, Version and Condor are the names of the pod and of the versions of starter and
	// HTCondor.
	Pod, Version, Condor string
	// Announce makes events of the pod; nil for none.
	Announce Announcer
	Log      *slog.Logger
}

// pause is how often a reporter looks whether the starters of running jobs are alive.
const pause = 15 * time.Second

// Reporter reads the journal, prints it and adds it up. It belongs to one goroutine.
type Reporter struct {
	opt    Options
	out    outlet.Outlet
	lines  *slog.Logger
	reader *journal.Reader
	memory memory
	health podhealth.Condition
	// changed says that memory or health is not what was written last, failed that it could
	// not be written.
	changed, failed bool
	herald          *herald
}

// memory is what outlives a reporter: the condor_master starts another if one dies.
type memory struct {
	Read    journal.Position `json:"read"`
	Totals  tally.Totals     `json:"totals"`
	Running running          `json:"running,omitempty"`
	Master  string           `json:"master"` // which pilot has been announced
}

const (
	memoryDir  = "report"
	memoryFile = "totals.json"
	maxMemory  = 1 << 20
)

// New makes a reporter. It must be closed.
func New(o Options) (*Reporter, error) {
	r := &Reporter{opt: o, out: outlet.Outlet{Dir: o.StateDir}}
	r.lines = newLines(o.Format, &r.out)
	var err error
	if r.reader, err = (journal.Journal{StateDir: o.StateDir}).Follow(); err != nil {
		return nil, err
	}
	if err := r.recall(); err != nil {
		o.Log.Warn("What was counted before is lost; metrics begin at zero", "error", err)
	}
	if r.memory.Running == nil {
		r.memory.Running = make(running)
	}
	return r, nil
}

// Close ends the reporter.
func (r *Reporter) Close() {
	r.reader.Close()
	r.out.Close()
}

// Run reports until stop ends and no job runs any more, or until ctx ends. health says how
// the pod is, whenever that changes.
func (r *Reporter) Run(ctx, stop context.Context, health <-chan podhealth.Condition) error {
	r.herald = newHerald(ctx, r.opt.Announce, r.opt.Log)
	seen := r.announce()
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	_ = r.attempt(seen)
	stopping := stop.Done()
	for {
		select {
		case <-ctx.Done():
			return r.turn(r.memory.Running.look(false))
		case <-stopping:
			stopping = nil
			r.say(slog.LevelInfo, "pilot stops", "running", len(r.memory.Running))
			ticker.Reset(time.Second)
		case h := <-health:
			r.tellHealth(h)
		case <-ticker.C:
			if len(r.memory.Running) == 0 && stopping != nil && !r.failed {
				continue // nothing can have changed
			}
		case <-r.reader.Changed():
		}
		if err := r.attempt(r.memory.Running.look(false)); err != nil && stopping == nil {
			return err // the next keeper tries again
		}
		if stopping == nil && len(r.memory.Running) == 0 {
			r.say(slog.LevelInfo, "pilot has stopped")
			return nil
		}
	}
}

// attempt is a turn that may be repeated: a disk that is full may have room later, and
// nobody else counts. The first of several failures is logged.
func (r *Reporter) attempt(seen looks) error {
	err := r.turn(seen)
	switch {
	case err != nil && !r.failed:
		r.opt.Log.Error("What happens in the pod is not noted; trying again", "error", failure.OneLine(err))
	case err == nil && r.failed:
		r.opt.Log.Info("What happens in the pod is noted again")
	}
	if r.failed = err != nil; r.failed {
		r.changed = true
	}
	return err
}

// turn reads what is new, prints it, and puts the totals in place. seen are the starters
// a moment before.
func (r *Reporter) turn(seen looks) error {
	events, at, err := r.reader.Read(r.memory.Read)
	if err != nil {
		return err
	}
	for _, e := range events {
		r.take(e)
	}
	for _, e := range r.memory.Running.lost(seen) {
		r.take(e)
	}
	if r.out.Lost > 0 {
		r.memory.Totals.LinesLost += r.out.Lost
		r.out.Lost, r.changed = 0, true
	}
	if !r.changed && at == r.memory.Read {
		return nil
	}
	r.memory.Read, r.changed = at, false
	if err := r.remember(); err != nil {
		return err
	}
	r.publish()
	return r.reader.Renew(at)
}

func (r *Reporter) take(e journal.Event) {
	r.changed = true
	for _, each := range append(r.memory.Running.take(e), e) {
		r.memory.Totals.Add(each)
		print(r.lines, each)
		r.herald.tellEnd(each)
	}
}

// publish lets metrics be served. That they cannot be is no reason to end.
func (r *Reporter) publish() {
	if r.opt.PublishDir == "" {
		return
	}
	s := tally.Snapshot{
		Totals: r.memory.Totals, Slots: r.opt.Slots, Running: len(r.memory.Running),
		Sick: r.health.Until, Keeper: os.Getpid(), Version: r.opt.Version, Condor: r.opt.Condor,
	}
	for _, rest := range r.health.Rests {
		s.Rests = append(s.Rests, rest.Until)
	}
	if err := s.Write(r.opt.PublishDir); err != nil {
		r.opt.Log.Warn("Failed to publish metrics", "error", err)
	}
}

// say prints a line about the pod.
func (r *Reporter) say(level slog.Level, message string, args ...any) {
	r.lines.Log(context.Background(), level, message, args...)
}

// SayOnce says that something keeps a pod from working, where there can be no reporter. A
// state directory that is not there has no operator to tell.
func SayOnce(stateDir, message string, err error) {
	out := outlet.Outlet{Dir: stateDir}
	defer out.Close()
	newLines(settings.EventLogText, &out).Error(message, "reason", journal.Clean(failure.OneLine(err), reasonBytes))
}

// announce says that a pilot, or another keeper of the same pilot, begins. It gives what is
// known of the starters.
func (r *Reporter) announce() looks {
	master, message := masterOf(), "keeper begins anew"
	gone := master != r.memory.Master
	if gone {
		message = "pilot begins"
	}
	r.memory.Master, r.changed = master, true
	r.say(slog.LevelInfo, message, "pod", r.opt.Pod, "slots", r.opt.Slots, "version", r.opt.Version, "htcondor", r.opt.Condor)
	return r.memory.Running.look(gone)
}

// masterOf names the process that started this one: its ID and when it began.
func masterOf() string {
	pid := os.Getppid()
	p, err := procfs.NewProc(pid)
	if err != nil {
		return fmt.Sprint(pid)
	}
	stat, err := p.Stat()
	if err != nil {
		return fmt.Sprint(pid)
	}
	return fmt.Sprint(pid, " ", stat.Starttime)
}

// tellHealth says what has changed.
func (r *Reporter) tellHealth(h podhealth.Condition) {
	before := r.health
	r.health, r.changed = h, true
	switch {
	case h.Until.IsZero() && !before.Until.IsZero():
		r.say(slog.LevelInfo, "pod takes jobs again")
		r.herald.tell("", Event{Reason: "PodWell", Message: "The pod takes jobs again."})
	case !h.Until.IsZero() && (before.Until.IsZero() || h.Reason != before.Reason):
		r.say(slog.LevelError, "pod is sick and takes no jobs", "until", utc(h.Until), "reason", journal.Clean(h.Reason, reasonBytes))
		r.herald.tell(h.Reason, Event{Warning: true, Reason: "PodSick", Message: "The pod takes no jobs: " + h.Reason})
	}
	for slot, rest := range h.Rests {
		if !rest.Until.Equal(before.Rests[slot].Until) && time.Now().Before(rest.Until) {
			r.say(slog.LevelWarn, "slot rests and takes no jobs", "slot", "slot"+slot, "until", utc(rest.Until), "reason", journal.Clean(rest.Reason, reasonBytes))
		}
	}
}

const reasonBytes = 500

func utc(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// recall reads what an earlier reporter left.
func (r *Reporter) recall() error {
	dir, err := r.open()
	if err != nil {
		return err
	}
	defer dir.Close()
	data, err := privatedir.Read(dir, memoryFile, maxMemory)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var m memory
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err == nil {
		r.memory = m
	}
	return err
}

// remember writes it: position and totals in one step, so that each event counts once.
func (r *Reporter) remember() error {
	dir, err := r.open()
	if err == nil {
		defer dir.Close()
		err = privatedir.WriteJSON(dir, memoryFile, r.memory)
	}
	if err != nil {
		return fmt.Errorf("note in %s what has been reported: %w", r.opt.StateDir, err)
	}
	return nil
}

// open gives a directory of its own, since the keeper watches the state directory.
func (r *Reporter) open() (*os.Root, error) {
	state, err := privatedir.Open(r.opt.StateDir)
	if err != nil {
		return nil, err
	}
	defer state.Close()
	if err := state.Mkdir(memoryDir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return state.OpenRoot(memoryDir)
}
