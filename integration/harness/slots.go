package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Wrappers keeps the wrappers of an execution point's payload containers.
func (p *Pool) Wrappers(side Side) func(Process) bool {
	at := p.sides[side]
	return func(q Process) bool {
		return q.Comm == WrapperComm && q.UID == 0 && q.Namespace == at.namespace
	}
}

// Payloads keeps the processes of jobs of all slots. There are as many users as the
// execution point has payload containers.
func (p *Pool) Payloads(side Side, users int) func(Process) bool {
	at := p.sides[side]
	return func(q Process) bool {
		return q.UID >= at.uid && q.UID < at.uid+users && q.Pod == at.pod && (q.Namespace == at.namespace) == at.shared
	}
}

// PayloadUsers is how many users jobs run as in our execution point: one for each payload
// container, and none for a slot.
func (p *Pool) PayloadUsers() int { return p.Slots + p.Spares }

// Containers are the payload containers of our execution point.
func (p *Pool) Containers(ctx context.Context) ([]string, error) {
	names, err := p.Config(ctx, Ours, "POD_STARTER_CONTAINERS")
	return strings.FieldsFunc(names, func(r rune) bool { return r == ',' || r == ' ' }), err
}

// InPullers keeps the processes of the pullers' pods.
func (p *Pool) InPullers(ctx context.Context) (func(Process) bool, error) {
	uids, err := p.Kubectl(ctx, nil, "-n", Namespace, "get", "pod", "-l", "app.kubernetes.io/component=puller", "-o", "jsonpath={.items[*].metadata.uid}")
	if err != nil {
		return nil, err
	}
	pods := strings.Fields(uids)
	if len(pods) != p.Pullers {
		return nil, fmt.Errorf("there are %d pods of pullers, and should be %d", len(pods), p.Pullers)
	}
	return func(q Process) bool { return slices.Contains(pods, q.Pod) }, nil
}

// LogMarks are the lengths of an execution point's logs at some moment.
type LogMarks map[string]int64

// starterLogs is the pattern of the logs of all slots' starters.
const starterLogs = "StarterLog.slot*"

// startdLog is the startd's own log.
const startdLog = "StartLog"

// MarkLogs notes where the logs of startd and starters end now.
func (p *Pool) MarkLogs(side Side) (LogMarks, error) {
	marks := LogMarks{}
	for _, pattern := range []string{starterLogs, startdLog} {
		paths, err := filepath.Glob(filepath.Join(p.sides[side].logs, pattern))
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			info, err := os.Stat(path)
			if err != nil {
				return nil, fmt.Errorf("marking a log: %w", err)
			}
			marks[filepath.Base(path)] = info.Size()
		}
	}
	return marks, nil
}

// since is what was written into a log after the marks were made.
func (p *Pool) since(side Side, name string, marks LogMarks) (string, error) {
	text, err := os.ReadFile(filepath.Join(p.sides[side].logs, name))
	if err != nil {
		return "", fmt.Errorf("reading a log: %w", err)
	}
	if mark := marks[name]; mark <= int64(len(text)) {
		return string(text[mark:]), nil
	}
	return "", fmt.Errorf("log %s has become shorter", name)
}

// SlotRun is a run of a starter, with its slot.
type SlotRun struct {
	Slot string
	Run
}

// RunsSince are the runs of all slots' starters after the marks, including those that
// were cut short.
func (p *Pool) RunsSince(side Side, marks LogMarks) ([]SlotRun, error) {
	paths, err := filepath.Glob(filepath.Join(p.sides[side].logs, starterLogs))
	if err != nil {
		return nil, err
	}
	slices.Sort(paths)
	var all []SlotRun
	for _, path := range paths {
		name := filepath.Base(path)
		text, err := p.since(side, name, marks)
		if err != nil {
			return nil, err
		}
		runs, err := ParseStarterLog(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, run := range runs {
			all = append(all, SlotRun{strings.TrimPrefix(name, "StarterLog."), run})
		}
	}
	return all, nil
}

// starterExit is how the startd logs the end of a starter (condor_startd.V6/Starter.cpp:
// exited, daemon_core.cpp: statusString).
var starterExit = regexp.MustCompile(`(?m)Starter pid (\d+) (?:exited with (status \d+)|died on (signal \d+))`)

// ExitsSince returns how the startd saw starters end after the marks, by process ID in
// the pod.
func (p *Pool) ExitsSince(side Side, marks LogMarks) (map[int]string, error) {
	text, err := p.since(side, startdLog, marks)
	if err != nil {
		return nil, err
	}
	return parseExits(text), nil
}

func parseExits(text string) map[int]string {
	exits := map[int]string{}
	for _, m := range starterExit.FindAllStringSubmatch(text, -1) {
		pid, _ := strconv.Atoi(m[1])
		exits[pid] = m[2] + m[3]
	}
	return exits
}
