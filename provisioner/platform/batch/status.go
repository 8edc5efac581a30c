package batch

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Limits of what the status may say.
const (
	maxStatus = 64 << 20
	maxLine   = 64 << 10
	maxReason = 500
)

// job is what the batch system says of one of its jobs.
type job struct {
	name, id, word, note, reason string
	state                        state
	created, began, ended        time.Time
}

// identifier is what identifiers of batch systems look like: 12, 12.0, 12[3],
// 12.server.example.org. It becomes an argument.
var identifier = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.:@\[\]-]{0,199}$`)

// readStatus reads what the status command has printed. Lines of jobs whose names
// do not begin with prefix are of others, and may look as they like. A line of ours
// that cannot be read is an error: without it a unit would be made twice.
func (c *Config) readStatus(text []byte, prefix string) ([]job, error) {
	var jobs []job
	in := bufio.NewScanner(bytes.NewReader(text))
	in.Buffer(nil, maxLine)
	for n := 1; in.Scan(); n++ {
		j, ours, err := c.readLine(in.Text(), prefix)
		if err != nil {
			return nil, fmt.Errorf("line %d of the status: %w", n, err)
		}
		if ours && j.state != gone {
			jobs = append(jobs, j)
		}
	}
	if err := in.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("the status has a line of more than %d bytes", maxLine)
	} else if err != nil {
		return nil, fmt.Errorf("reading the status: %w", err)
	}
	return jobs, nil
}

// readLine reads one line, and reports whether it is of a unit.
func (c *Config) readLine(line, prefix string) (job, bool, error) {
	words := strings.Fields(line)
	at := slices.Index(c.fields, fieldName)
	if at >= len(words) || !strings.HasPrefix(words[at], prefix) {
		return job{}, false, nil
	}
	least := len(c.fields)
	if c.fields[least-1] == fieldReason {
		least--
	}
	if len(words) < least {
		return job{}, false, fmt.Errorf("%q has %d fields, and batch.fields has %d: no field may be empty", shorten(line, 100), len(words), least)
	}
	var j job
	var err error
	for i, f := range c.fields {
		switch f {
		case fieldName:
			j.name = words[i]
		case fieldID:
			j.id = words[i]
		case fieldState:
			j.word = words[i]
		case fieldNote:
			j.note = words[i]
		case fieldReason:
			j.reason = shorten(strings.Join(words[i:], " "), maxReason)
		case fieldCreated:
			j.created, err = clock(words[i])
		case fieldBegan:
			j.began, err = clock(words[i])
		case fieldEnded:
			j.ended, err = clock(words[i])
		}
		if err != nil {
			return job{}, false, fmt.Errorf("the field %s of %s: %w", f, shorten(j.name, 100), err)
		}
	}
	if !label.MatchString(j.name) {
		return job{}, false, nil // nobody here makes such names
	}
	if !identifier.MatchString(j.id) {
		return job{}, false, fmt.Errorf("%s has the identifier %q, which cannot be an argument", j.name, shorten(j.id, 100))
	}
	if j.state = c.states[j.word]; j.state == "" {
		return job{}, false, fmt.Errorf("%s is in the state %q; add to batch.states what that means", j.name, shorten(j.word, 100))
	}
	return j, true, nil
}

// never are words for a time that has not come.
var never = []string{"0", "-", "N/A", "n/a", "NONE", "None", "none", "null", "(null)", "Unknown", "undefined", "error"}

// clock reads a time: seconds since 1970, or a date of ISO 8601, which is local if
// it has no zone.
func clock(text string) (time.Time, error) {
	if slices.Contains(never, text) {
		return time.Time{}, nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 && n < 1<<40 {
		return time.Unix(n, 0), nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	if t, err := time.ParseInLocation("2006-01-02T15:04:05", text, time.Local); err == nil {
		return t, nil
	}
	return time.Time{}, fmt.Errorf("%q is no time; write seconds since 1970, or a date such as 2026-11-02T08:00:00", shorten(text, 50))
}
