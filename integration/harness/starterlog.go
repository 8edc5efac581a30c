package harness

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Names of the phases in our starter's log.
const (
	PhaseBind    = "bind"
	PhaseStageIn = "stage-in"
	PhaseStart   = "start"  // from the request to the running payload
	PhaseFinish  = "finish" // stage-out and the reports to shadow and startd
)

// Line is one line of a daemon's log.
type Line struct {
	Time time.Time // in no particular zone: good for differences
	Text string    // without stamp and category
}

// Run is what one starter wrote into its log, from the banner to its exit.
type Run struct {
	PID        int
	Job        string // "cluster.proc", empty when it never got so far
	Began      time.Time
	Ended      time.Time                // zero when the log does not tell
	Status     int                      // exit status, -1 when the log does not tell
	Phases     map[string]time.Duration // how long each phase took, as the log tells
	PhaseOrder []string                 // names of the phases, in order
	Lines      []Line
}

// Has reports whether a line of the run contains text.
func (r Run) Has(text string) bool {
	for _, line := range r.Lines {
		if strings.Contains(line.Text, text) {
			return true
		}
	}
	return false
}

// Text is all that the run wrote.
func (r Run) Text() string {
	var b strings.Builder
	for _, line := range r.Lines {
		b.WriteString(line.Text)
		b.WriteByte('\n')
	}
	return b.String()
}

var (
	linePattern = regexp.MustCompile(
		`^(\d\d/\d\d/\d\d \d\d:\d\d:\d\d(?:\.\d+)?) (?:\((?:(?:pid|fd|cid|tid):\d+|D_[A-Z_]+(?::\d+)?(?:\|D_[A-Z_]+)*)\) )*(.*)$`)
	bannerPattern = regexp.MustCompile(`\(CONDOR_STARTER\) STARTING UP`)
	pidPattern    = regexp.MustCompile(`^\*\* PID = (\d+)`)
	jobPattern    = regexp.MustCompile(`Starting an? .* universe job with ID: (\d+\.\d+)`)
	exitPattern   = regexp.MustCompile(`\(condor_STARTER\) pid \d+ EXITING WITH STATUS (-?\d+)`)
	phasePattern  = regexp.MustCompile(`Phase (.+) took ([0-9.]+) ?s`)
)

// ParseStarterLog reads the log of a slot's starters. It ignores lines before the
// first banner.
func ParseStarterLog(text string) ([]Run, error) {
	var runs []Run
	for number, raw := range strings.Split(text, "\n") {
		m := linePattern.FindStringSubmatch(strings.TrimRight(raw, "\r"))
		if m == nil {
			// A message of several lines: the rest belongs to the line before.
			if n := len(runs); n > 0 && raw != "" && len(runs[n-1].Lines) > 0 {
				last := &runs[n-1].Lines[len(runs[n-1].Lines)-1]
				last.Text += "\n" + raw
			}
			continue
		}
		stamp, err := time.Parse("01/02/06 15:04:05", m[1])
		if err != nil {
			return runs, fmt.Errorf("starter log, line %d: %w", number+1, err)
		}
		line := Line{Time: stamp, Text: m[2]}
		if bannerPattern.MatchString(line.Text) {
			runs = append(runs, Run{Began: stamp, Status: -1, Phases: map[string]time.Duration{}})
		}
		if len(runs) == 0 {
			continue
		}
		if err := runs[len(runs)-1].take(line); err != nil {
			return runs, fmt.Errorf("starter log, line %d: %w", number+1, err)
		}
	}
	return runs, nil
}

func (r *Run) take(line Line) error {
	r.Lines = append(r.Lines, line)
	if m := pidPattern.FindStringSubmatch(line.Text); m != nil {
		r.PID, _ = strconv.Atoi(m[1])
	}
	if m := jobPattern.FindStringSubmatch(line.Text); m != nil {
		r.Job = m[1]
	}
	if m := exitPattern.FindStringSubmatch(line.Text); m != nil {
		r.Status, _ = strconv.Atoi(m[1])
		r.Ended = line.Time
	}
	if m := phasePattern.FindStringSubmatch(line.Text); m != nil {
		seconds, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			return fmt.Errorf("reading the duration in %q: %w", line.Text, err)
		}
		if _, ok := r.Phases[m[1]]; !ok {
			r.PhaseOrder = append(r.PhaseOrder, m[1])
		}
		r.Phases[m[1]] += time.Duration(seconds * float64(time.Second))
	}
	return nil
}

// RunsOf returns the runs of one job, in order.
func RunsOf(runs []Run, job string) []Run {
	var picked []Run
	for _, run := range runs {
		if run.Job == job {
			picked = append(picked, run)
		}
	}
	return picked
}
