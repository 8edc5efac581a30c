package provision

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"podstarter/integration/harness"
)

// A State is what the provisioner says of itself for Prometheus.
type State struct {
	// Rounds, Made and Withdrawn count since its start.
	Rounds, Made, Withdrawn int
	// Idle jobs, and those of them that get no place, and pods, as the last round saw them.
	Idle, Waiting, Pending, Running int
}

// metrics are those that a State has, and where.
var metrics = map[string]func(*State) *int{
	"podstarter_provisioner_round_seconds_count":  func(s *State) *int { return &s.Rounds },
	"podstarter_provisioner_pods_made_total":      func(s *State) *int { return &s.Made },
	"podstarter_provisioner_pods_withdrawn_total": func(s *State) *int { return &s.Withdrawn },
	"podstarter_provisioner_idle_jobs":            func(s *State) *int { return &s.Idle },
	"podstarter_provisioner_waiting_jobs":         func(s *State) *int { return &s.Waiting },
}

// State asks the provisioner. In its first round it knows nothing yet.
func (s *Site) State(ctx context.Context) (State, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/metrics", s.port), nil)
	if err != nil {
		return State{}, err
	}
	client := http.Client{Timeout: 10 * time.Second}
	resp, err := client.Do(req)
	if err != nil {
		return State{}, fmt.Errorf("asking the provisioner: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return State{}, fmt.Errorf("asking the provisioner: %s, %w", resp.Status, err)
	}
	return parseState(string(text))
}

func parseState(text string) (State, error) {
	var is State
	for line := range strings.Lines(text) {
		series, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		name, labels, _ := strings.Cut(series, "{")
		var into *int
		switch {
		case metrics[name] != nil:
			into = metrics[name](&is)
		case name == "podstarter_provisioner_pods" && strings.Contains(labels, `phase="pending"`):
			into = &is.Pending
		case name == "podstarter_provisioner_pods" && strings.Contains(labels, `phase="running"`):
			into = &is.Running
		default:
			continue
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return State{}, fmt.Errorf("reading %q: %w", line, err)
		}
		*into += int(v)
	}
	return is, nil
}

// WaitState waits until the provisioner's state is as it should be.
func (s *Site) WaitState(ctx context.Context, what string, enough func(State) bool) (State, error) {
	var last State
	err := harness.Poll(ctx, what, func() (bool, error) {
		var err error
		last, err = s.State(ctx)
		return err == nil && enough(last), err
	})
	if err != nil {
		err = fmt.Errorf("%w; the provisioner's state is %+v", err, last)
	}
	return last, err
}
