package batch

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-multierror"
)

// File is what a site writes of its batch system, in the key batch of the
// configuration.
type File struct {
	// Submit submits one unit. It gets the template's manifest, filled in, on its
	// standard input, or in the file {file}.
	Submit []string `json:"submit"`
	// ID is a regular expression (RE2) with one group: the batch system's identifier
	// in what Submit prints.
	ID string `json:"id"`
	// Denied matches what Submit prints if the batch system refuses such units at
	// present and has certainly made none.
	Denied string `json:"denied"`
	// Status prints a line for each job: Fields, separated by blanks.
	Status []string          `json:"status"`
	Fields []string          `json:"fields"`
	States map[string]string `json:"states"`
	// Cancel cancels the job {id} or those with the name {name}.
	Cancel  []string `json:"cancel"`
	Timeout string   `json:"timeout"`
}

// Config is a File that was checked.
type Config struct {
	submit, status, cancel argv
	id, denied             *regexp.Regexp
	fields                 []string
	states                 map[string]state
	timeout                time.Duration
}

// CallTime returns how long it may take to make or to withdraw a unit. Status, submit
// or cancel, and the status again have their own time each; what is left is for a
// unit of which the batch system has two jobs.
func (c *Config) CallTime() time.Duration { return 4 * c.timeout }

// state is what a word of the batch system means.
type state string

// The states.
const (
	pending       state = "pending"
	unschedulable state = "unschedulable" // pending, and no node has room
	held          state = "held"          // pending, and it does not begin by itself
	running       state = "running"
	ended         state = "ended"
	failed        state = "failed" // ended, and came to nothing
	gone          state = "gone"   // it is in the list, and does not count any more
)

var states = []state{pending, unschedulable, held, running, ended, failed, gone}

// The fields of a line of the status. The first four must be there.
const (
	fieldName    = "name"
	fieldID      = "id"
	fieldState   = "state"
	fieldNote    = "note"
	fieldCreated = "created"
	fieldBegan   = "began"
	fieldEnded   = "ended"
	fieldReason  = "reason" // the rest of the line
	fieldSkip    = "-"
)

var (
	mustFields = []string{fieldName, fieldID, fieldState, fieldNote}
	fields     = append(slices.Clone(mustFields), fieldCreated, fieldBegan, fieldEnded, fieldReason, fieldSkip)
)

// Parse checks a file. All mistakes are reported together.
func (f File) Parse() (*Config, error) {
	var wrong *multierror.Error
	note := func(key string, err error) {
		if err != nil {
			wrong = multierror.Append(wrong, fmt.Errorf("batch.%s: %w", key, err))
		}
	}
	c := &Config{states: map[string]state{}, fields: f.Fields, timeout: time.Minute}
	var err error
	c.submit, err = parseArgv(f.Submit, append(slices.Clone(ofUnit), "file"))
	note("submit", err)
	c.status, err = parseArgv(f.Status, []string{"provisioner"})
	note("status", err)
	c.cancel, err = parseArgv(f.Cancel, []string{"provisioner", "name", "id"})
	if err == nil && !c.cancel.has("name") && !c.cancel.has("id") {
		err = fmt.Errorf("it has neither {id} nor {name}, so it does not say what to cancel")
	}
	note("cancel", err)
	c.id, err = regexp.Compile(f.ID)
	if err == nil && c.id.NumSubexp() != 1 {
		err = fmt.Errorf("%q has %d groups; it must have one, which is the identifier in what submit prints", f.ID, c.id.NumSubexp())
	}
	note("id", err)
	if f.Denied != "" {
		c.denied, err = regexp.Compile(f.Denied)
		note("denied", err)
	}
	note("fields", checkFields(f.Fields))
	note("states", c.read(f.States))
	if f.Timeout != "" {
		c.timeout, err = time.ParseDuration(f.Timeout)
		if err != nil || c.timeout < time.Second || c.timeout > 10*time.Minute {
			note("timeout", fmt.Errorf("it is %q; it must be a duration from 1s to 10m", f.Timeout))
		}
	}
	return c, wrong.ErrorOrNil()
}

func checkFields(list []string) error {
	for i, f := range list {
		switch {
		case !slices.Contains(fields, f):
			return fmt.Errorf("there is no field %q; there are %s", f, strings.Join(fields, ", "))
		case f != fieldSkip && slices.Contains(list[:i], f):
			return fmt.Errorf("%s is in it twice", f)
		case f == fieldReason && i != len(list)-1:
			return fmt.Errorf("%s is the rest of the line, so it must be the last one", f)
		}
	}
	for _, f := range mustFields {
		if !slices.Contains(list, f) {
			return fmt.Errorf("%s is not in it; it must have %s", f, strings.Join(mustFields, ", "))
		}
	}
	return nil
}

// read reads the table of states.
func (c *Config) read(table map[string]string) error {
	kinds := map[state]bool{}
	for name, s := range table {
		if !slices.Contains(states, state(s)) {
			return fmt.Errorf("%s means %q; it must mean one of %v", name, s, states)
		}
		if len(strings.Fields(name)) != 1 {
			return fmt.Errorf("%q is no word without blanks", name)
		}
		c.states[name] = state(s)
		kinds[state(s)] = true
	}
	if !kinds[pending] || !kinds[running] {
		return fmt.Errorf("no word means %s, or none means %s", pending, running)
	}
	return nil
}
