package batch

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-multierror"

	"podstarter/provisioner/backoff"
	"podstarter/provisioner/platform"
	"podstarter/provisioner/template"
)

const (
	// unseen is how long a unit that was submitted counts although the status does not
	// show it, and one that was shown before.
	unseen = time.Minute
	// remember is how long a unit that vanished from the status is in the list as one
	// that ended.
	remember = 10 * time.Minute
)

// System is the platform of a batch system.
type System struct {
	name      string
	config    *Config
	templates map[string]manifest
	now       func() time.Time
	// pause waits, or returns why it does not.
	pause func(ctx context.Context, d time.Duration) error

	// turn is held by whoever submits or cancels: one command after the other.
	turn sync.Mutex

	mu     sync.Mutex
	units  map[string]*memory
	looked bool // the status was read at some time
}

// manifest is a template with what is submitted of it.
type manifest struct {
	template.Template
	text text
}

// memory is what is known of a unit beside the status.
type memory struct {
	unit platform.Unit
	spec *platform.Spec // as it was made, if this process made it
	id   string
	// doubt: the answer of its submission was lost, so that it may be there or not.
	doubt bool
	// withdrawn: it was cancelled, and nobody wonders that it vanishes.
	withdrawn bool
	// shown is when the last status was asked for that showed it, and missed when the
	// first one after that which did not.
	shown, missed time.Time
}

// New returns the platform for templates. Nothing is run.
func New(name string, c *Config, templates []template.Template) (*System, error) {
	s := &System{name: name, config: c, templates: map[string]manifest{}, units: map[string]*memory{}, now: time.Now, pause: pause}
	var wrong *multierror.Error
	for _, t := range templates {
		m, err := c.parse(t)
		if err != nil {
			wrong = multierror.Append(wrong, fmt.Errorf("reading %s of the template %s: %w", t.File, t.Name, err))
			continue
		}
		s.templates[t.Name] = m
	}
	return s, wrong.ErrorOrNil()
}

// parse reads the manifest of a template, and checks that what is submitted says
// what it must.
func (c *Config) parse(t template.Template) (manifest, error) {
	text, err := parseText(t.Manifest, ofUnit)
	if err != nil {
		return manifest{}, err
	}
	has := func(key string) bool { return text.has(key) || c.submit.has(key) }
	for _, key := range []string{"name", "note"} {
		if !has(key) {
			return manifest{}, fmt.Errorf("neither it nor batch.submit has {%s}; without it the status cannot tell which unit is which", key)
		}
	}
	for _, s := range t.Shapes {
		first, size := t.Shapes[0].Size, s.Size
		for key, differs := range map[string]bool{"cpus": size.CPUs != first.CPUs, "memory": size.Memory != first.Memory, "disk": size.Disk != first.Disk, "gpus": size.GPUs != first.GPUs} {
			if differs && !has(key) {
				return manifest{}, fmt.Errorf("the shapes differ in %s, and neither it nor batch.submit has {%s}", key, key)
			}
		}
		if s.Lifetime <= 0 && (has("lifetime") || has("minutes")) {
			return manifest{}, fmt.Errorf("{lifetime} or {minutes} is used, and the template has no lifetime")
		}
	}
	return manifest{Template: t, text: text}, nil
}

// List implements platform.Platform, by one call of the status command.
func (s *System) List(ctx context.Context) ([]platform.Unit, error) {
	if _, err := s.look(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []platform.Unit
	for _, m := range s.units {
		if !m.withdrawn || !m.shown.IsZero() {
			all = append(all, m.unit)
		}
	}
	slices.SortFunc(all, func(a, b platform.Unit) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// look reads the status, and returns the jobs of each unit that it shows.
func (s *System) look(ctx context.Context) (map[string][]job, error) {
	asked := s.now()
	there, err := s.ask(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	first := !s.looked && len(s.units) == 0
	s.mu.Unlock()
	if first && len(there) == 0 {
		// A batch system that starts anew lists nothing for a moment. Nobody here knows yet
		// what it had, and all of it would be made again.
		if err := s.pause(ctx, unseen); err != nil {
			return nil, fmt.Errorf("asking the batch system for its jobs again, of which it has listed none: %w", err)
		}
		asked = s.now()
		if there, err = s.ask(ctx); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looked = true
	for name, of := range there {
		s.show(name, of, asked)
	}
	for name, m := range s.units {
		if there[name] == nil && s.vanished(m, asked) {
			delete(s.units, name)
		}
	}
	return there, nil
}

// ask asks for the status.
func (s *System) ask(ctx context.Context) (map[string][]job, error) {
	out, _, err := run(ctx, s.config.timeout, maxStatus, "", s.config.status.fill(map[string]string{"provisioner": s.name}))
	if err != nil {
		return nil, fmt.Errorf("asking the batch system for its jobs: %w", err)
	}
	jobs, err := s.config.readStatus(out, s.name+"-")
	if err != nil {
		return nil, fmt.Errorf("asking the batch system for its jobs: %w", err)
	}
	there := map[string][]job{}
	for _, j := range jobs {
		// A provisioner "site" has no units of one that is called "site-b".
		if owner, _, ok := readNote(j.note); !ok || owner == s.name {
			there[j.name] = append(there[j.name], j)
		}
	}
	return there, nil
}

// pause waits, unless ctx ends before.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// show notes what the status says of a unit. A submission that was repeated may
// have made several jobs with its name: the one that has come farthest and is not
// over counts.
func (s *System) show(name string, jobs []job, asked time.Time) {
	m := s.units[name]
	if m == nil {
		m = &memory{unit: platform.Unit{Created: asked}}
		s.units[name] = m
	}
	if m.shown.After(asked) {
		return // a later look was faster
	}
	j := slices.MaxFunc(jobs, func(a, b job) int { return cmp.Compare(a.rank(), b.rank()) })
	old := m.unit
	u := platform.Unit{Spec: s.spec(j), Hosts: []string{name}, Phase: j.phase(), Created: first(j.created, old.Created)}
	if m.spec != nil {
		u.Spec = *m.spec
	}
	if u.Phase >= platform.Running {
		u.Began = first(j.began, old.Began)
	}
	if u.Phase == platform.Running {
		u.Began = first(u.Began, asked)
	}
	if u.Phase == platform.Ended {
		u.Ended = first(j.ended, old.Ended, asked)
	}
	if u.Trouble = j.trouble(); u.Trouble != "" {
		u.Detail = j.reason
		if u.Detail == "" {
			u.Detail = "its state is " + j.word
		}
	}
	m.unit, m.id, m.doubt, m.shown, m.missed = u, j.id, false, asked, time.Time{}
}

// first is the first time that is known.
func first(times ...time.Time) time.Time {
	for _, t := range times {
		if !t.IsZero() {
			return t
		}
	}
	return time.Time{}
}

// vanished notes that the status does not show a unit, and reports whether it can
// be forgotten.
func (s *System) vanished(m *memory, asked time.Time) bool {
	switch {
	case m.unit.Phase == platform.Ended && m.unit.Detail == goneDetail:
		return asked.Sub(m.unit.Ended) > remember
	case m.withdrawn, m.unit.Phase == platform.Ended:
		return m.shown.Before(asked)
	case m.shown.IsZero() && asked.Sub(m.unit.Created) <= unseen, !m.shown.Before(asked):
		return false // the batch system may be late, or this answer is
	case m.doubt:
		return true // it was never made
	}
	// A status that is empty by mistake would have all units made again.
	if m.missed.IsZero() || m.missed.After(asked) {
		m.missed = asked
	}
	if asked.Sub(m.missed) < unseen {
		return false
	}
	// What became of it nobody knows. If its startd has reported, nothing is wrong; if
	// not, the next ones must not be made as fast as they end.
	m.unit.Phase, m.unit.Ended = platform.Ended, asked
	m.unit.Trouble, m.unit.Detail = backoff.Failed, goneDetail
	return false
}

const goneDetail = "the batch system does not list it any more"

// spec is what the status says of what a unit is. Without a note that can be read
// it has no size, so that it counts and has nothing for jobs.
func (s *System) spec(j job) platform.Spec {
	_, spec, ok := readNote(j.note)
	if !ok {
		rest := strings.TrimPrefix(j.name, s.name+"-")
		if i := strings.LastIndexByte(rest, '-'); i > 0 {
			spec.Template = rest[:i]
		}
	}
	spec.Name = j.name
	return spec
}

func (j job) phase() platform.Phase {
	switch j.state {
	case running:
		return platform.Running
	case ended, failed:
		return platform.Ended
	}
	return platform.Pending
}

func (j job) trouble() backoff.Reason {
	switch j.state {
	case unschedulable:
		return backoff.Unschedulable
	case held, failed:
		return backoff.Failed
	}
	return ""
}

// rank orders jobs of one unit: one that runs, one that may, one that has ended.
func (j job) rank() int {
	return map[platform.Phase]int{platform.Ended: 0, platform.Pending: 1, platform.Running: 2}[j.phase()]
}
