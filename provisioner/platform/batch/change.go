package batch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"podstarter/provisioner/platform"
)

// Create implements platform.Platform. What was submitted without an answer counts
// until the status shows it or a minute is over, and is looked up before it is
// submitted again. A batch system that makes a job later than that has two then,
// under one name: they count as one unit, and are withdrawn together.
func (s *System) Create(ctx context.Context, spec platform.Spec) error {
	t, ok := s.templates[spec.Template]
	if !ok {
		return fmt.Errorf("making %s: there is no template %s", spec.Name, spec.Template)
	}
	if err := check(spec); err != nil {
		return fmt.Errorf("making a unit: %w", err)
	}
	s.turn.Lock()
	defer s.turn.Unlock()
	there, err := s.known(ctx, spec.Name)
	if err != nil || there {
		return err
	}
	s.mu.Lock()
	m := &memory{unit: platform.Unit{Spec: spec, Hosts: []string{spec.Name}, Created: s.now()}, spec: &spec, doubt: true}
	s.units[spec.Name] = m
	s.mu.Unlock()

	id, made, err := s.submit(ctx, t, spec)
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.shown.IsZero() {
		m.id = id
	}
	m.doubt = err != nil && m.shown.IsZero()
	if !made && m.shown.IsZero() {
		delete(s.units, spec.Name)
	}
	return err
}

// known reports whether a unit is there. The status is asked only if this process
// cannot know it.
func (s *System) known(ctx context.Context, name string) (bool, error) {
	s.mu.Lock()
	m := s.units[name]
	sure := m != nil && !m.doubt || m == nil && s.looked
	s.mu.Unlock()
	if sure {
		return m != nil, nil
	}
	there, err := s.look(ctx)
	return there[name] != nil, err
}

// submit submits a unit, and returns the batch system's identifier. made says
// whether it may have been made.
func (s *System) submit(ctx context.Context, t manifest, spec platform.Spec) (id string, made bool, err error) {
	v := values(s.name, t.Template, spec)
	text := t.text.fill(v)
	if s.config.submit.has("file") {
		file, err := write(text)
		if err != nil {
			return "", false, fmt.Errorf("writing what is submitted for %s: %w", spec.Name, err)
		}
		defer func() { _ = os.Remove(file) }() // one that stays has no secrets
		v["file"], text = file, ""
	}
	out, words, err := run(ctx, s.config.timeout, maxWords, text, s.config.submit.fill(v))
	var exit *exec.ExitError
	switch {
	case errors.Is(err, errNotStarted):
		return "", false, err
	case errors.As(err, &exit) && exit.Exited() && s.config.denied != nil && s.config.denied.MatchString(string(out)+"\n"+words):
		return "", false, fmt.Errorf("%w: %w", platform.ErrDenied, err)
	case err != nil:
		return "", true, err
	}
	match := s.config.id.FindSubmatch(out)
	if match == nil || !identifier.Match(match[1]) {
		return "", true, fmt.Errorf("submitting %s: batch.id finds no identifier in %q", spec.Name, shorten(string(out), 200))
	}
	return string(match[1]), true, nil
}

// write makes a file that only this user can read.
func write(text string) (string, error) {
	f, err := os.CreateTemp("", "podstarter-unit-*")
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// Withdraw implements platform.Platform. The status is asked just before. A job
// that begins after that and before the batch system cancels it is ended, unless
// the command cancels only jobs that wait.
func (s *System) Withdraw(ctx context.Context, name string) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	ids, err := s.waiting(ctx, name)
	if err != nil || len(ids) == 0 {
		return err
	}
	for _, id := range ids {
		argv := s.config.cancel.fill(map[string]string{"provisioner": s.name, "name": name, "id": id})
		if _, _, err = run(ctx, s.config.timeout, maxWords, "", argv); err != nil {
			break
		}
		if !s.config.cancel.has("id") {
			break // all that have the name
		}
	}
	if err != nil {
		// It may have begun, or have gone by itself.
		left, lookErr := s.waiting(ctx, name)
		if lookErr != nil || len(left) > 0 {
			return errors.Join(fmt.Errorf("cancelling %s: %w", name, err), lookErr)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.units[name]; m != nil {
		m.withdrawn = true
		if m.shown.IsZero() {
			delete(s.units, name)
		}
	}
	return nil
}

// waiting returns the identifiers of a unit's jobs, none of which has begun.
func (s *System) waiting(ctx context.Context, name string) ([]string, error) {
	jobs, err := s.look(ctx)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, j := range jobs[name] {
		if j.phase() != platform.Pending {
			return nil, fmt.Errorf("withdrawing %s: %w", name, platform.ErrBegun)
		}
		ids = append(ids, j.id)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.units[name]
	if len(ids) > 0 || m == nil || !m.shown.IsZero() {
		return ids, nil
	}
	// It was submitted a moment ago.
	if m.id == "" && s.config.cancel.has("id") {
		return nil, fmt.Errorf("withdrawing %s: the status does not show it yet, so its identifier is not known", name)
	}
	return []string{m.id}, nil
}
