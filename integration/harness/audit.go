package harness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// APICall is one request of a pod's starter to the API server, from that server's
// audit log.
type APICall struct {
	Verb  string // get, patch, watch ...
	Code  int
	Began time.Time
	Ended time.Time // zero for a watch that is open
}

// APILog is a place in the audit log of the API server.
type APILog struct {
	path   string
	offset int64
}

// starterAgent is the user agent of starters (k8sexec).
const starterAgent = "podstarter"

// APILog is the place where the audit log ends now.
func (p *Pool) APILog() (*APILog, error) {
	l := &APILog{path: filepath.Join(p.State, "log", "audit.log")}
	info, err := os.Stat(l.path)
	if err != nil {
		return nil, fmt.Errorf("looking for the API server's audit log: %w", err)
	}
	l.offset = info.Size()
	return l, nil
}

// Calls are our starters' requests since that place in the log, in the order in
// which they ended; open watches come last.
func (l *APILog) Calls() ([]APICall, error) {
	text, err := os.ReadFile(l.path)
	if err != nil {
		return nil, err
	}
	if int64(len(text)) < l.offset {
		return nil, fmt.Errorf("%s has become shorter", l.path)
	}
	return parseAudit(text[l.offset:])
}

// parseAudit reads lines of audit events (audit.k8s.io/v1).
func parseAudit(text []byte) ([]APICall, error) {
	var calls []APICall
	open := map[string]APICall{}
	var order []string // of those
	for line := range bytes.Lines(text) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // being written
		}
		var event struct {
			AuditID                                  string
			Stage, Verb, UserAgent                   string
			ResponseStatus                           struct{ Code int }
			RequestReceivedTimestamp, StageTimestamp time.Time
		}
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("reading the audit log: %w\n%s", err, line)
		}
		if event.UserAgent != starterAgent {
			continue
		}
		call := APICall{Verb: event.Verb, Code: event.ResponseStatus.Code, Began: event.RequestReceivedTimestamp, Ended: event.StageTimestamp}
		if event.Stage == "ResponseStarted" {
			call.Ended = time.Time{}
			open[event.AuditID] = call
			order = append(order, event.AuditID)
			continue
		}
		delete(open, event.AuditID)
		calls = append(calls, call)
	}
	for _, id := range order {
		if call, ok := open[id]; ok {
			calls = append(calls, call)
		}
	}
	return calls, nil
}
