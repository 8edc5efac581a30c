package demand

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/hashicorp/go-multierror"

	"podstarter/classads"
)

// Limits of what a schedd may say.
const (
	MaxBytes = 64 << 20 // all its groups
	maxText  = 64 << 10 // one group
	maxNodes = 20000
	maxBad   = 10 // groups of which it is said why they cannot be read
	// maxName bounds names of users, groups and jobs: they are kept for each group and
	// each pod. Those of HTCondor are much shorter.
	maxName = 512
	// parallel is the universe of jobs with several nodes, and maxHosts bounds these.
	parallel = 11
	maxHosts = 1 << 16
	maxJobs  = 1 << 40
)

// Bounds are how much of a schedd's answer is read.
type Bounds struct{ Groups, Bytes int }

// Row is one group of one schedd.
type Row struct {
	Ad   *classads.Ad
	User string // whom the accountant charges
	// Owner is who has submitted the jobs.
	Owner string
	Jobs  int
	// IDs names some of the jobs.
	IDs string
	// FlockTo are the pools to which the jobs ask to flock.
	FlockTo string
}

// Errors of reading.
var (
	// ErrPartial is in an error if jobs are not known that may need the pods that are
	// there. A group that cannot be read is no such error: its jobs get no pods, and
	// whoever submits one must not keep pods from being withdrawn.
	ErrPartial = errors.New("not all idle jobs are known")
	// ErrTooMuch is returned with what was read before.
	ErrTooMuch = fmt.Errorf("%w: there are more groups than are read", ErrPartial)
)

// parser reads one group.
var parser = classads.Parser{MaxText: maxText, MaxNodes: maxNodes}

// TooMuchError is ErrTooMuch with the users who have the most of it. Without their
// groups there may be room for all others.
type TooMuchError struct {
	err    error
	Owners []string
}

func (e *TooMuchError) Error() string { return e.err.Error() }

func (e *TooMuchError) Unwrap() error { return e.err }

// Read reads what condor_q prints. Groups that cannot be read are left out; they
// are in the error, and the others are returned with it.
func Read(r io.Reader) ([]Row, error) { return Bounds{MaxGroups, MaxBytes}.Read(r) }

// Read reads no more than the bounds allow.
func (b Bounds) Read(r io.Reader) ([]Row, error) {
	var t tally
	in := newSplitter(r, b.Bytes)
	var rows []Row
	var bad *multierror.Error
	wrong := 0
	note := func(err error) {
		if wrong++; wrong <= maxBad {
			bad = multierror.Append(bad, fmt.Errorf("reading a group of idle jobs: %w", err))
		}
	}
	for {
		text, err := in.next()
		t.count(in.owner, in.size)
		switch {
		// Also after groups that were skipped: what comes behind them is not known.
		case in.read > b.Bytes:
			err = fmt.Errorf("%w (%d bytes)", ErrTooMuch, b.Bytes)
		case errors.Is(err, io.EOF):
			return rows, summary(bad, wrong)
		case errors.Is(err, errHuge):
			note(err)
			continue
		case err == nil && len(rows) == b.Groups:
			err = fmt.Errorf("%w (%d)", ErrTooMuch, b.Groups)
		}
		if err != nil {
			if errors.Is(err, ErrTooMuch) {
				err = &TooMuchError{err, t.heavy()}
			}
			if !errors.Is(err, ErrPartial) {
				err = fmt.Errorf("%w: %w", ErrPartial, err)
			}
			return rows, multierror.Append(bad, fmt.Errorf("reading the groups of idle jobs: %w", err))
		}
		ad, err := parser.Old(text)
		if err != nil {
			note(err)
			continue
		}
		row, err := newRow(ad)
		if err != nil {
			note(err)
			continue
		}
		rows = append(rows, row)
	}
}

func summary(bad *multierror.Error, wrong int) error {
	if wrong > maxBad {
		bad = multierror.Append(bad, fmt.Errorf("%d other groups of idle jobs cannot be read", wrong-maxBad))
	}
	return bad.ErrorOrNil()
}

// text returns an attribute as it was sent, or its beginning.
func text(ad *classads.Ad, name string) string {
	if e, ok := ad.Lookup(name); ok {
		s := e.OldString()
		return strings.ToValidUTF8(s[:min(len(s), 100)], "")
	}
	return "it has none"
}

// nameOf returns an attribute that is a name, or nothing.
func nameOf(ad *classads.Ad, attribute string) (string, error) {
	name := ad.StringOr(attribute, "")
	if len(name) > maxName {
		return "", fmt.Errorf("its %s has %d bytes, and at most %d are read", attribute, len(name), maxName)
	}
	return name, nil
}

func newRow(ad *classads.Ad) (Row, error) {
	jobs, err := ad.GetInt("JobCount")
	if err != nil || jobs < 0 || jobs > maxJobs {
		return Row{}, fmt.Errorf("its JobCount is no number of jobs: %s", text(ad, "JobCount"))
	}
	if ad.IntOr("JobUniverse", 0) == parallel {
		// Each node of such a job takes a slot (machine_count).
		jobs = min(jobs*min(max(ad.IntOr("MaxHosts", 1), 1), maxHosts), maxJobs)
	}
	row := Row{Ad: ad, Jobs: int(jobs), FlockTo: ad.StringOr("FlockTo", "")}
	if row.IDs, err = nameOf(ad, "JobIds"); err != nil {
		row.IDs = "" // they are for people
	}
	if row.Owner, err = nameOf(ad, "User"); err != nil {
		return Row{}, err
	}
	if row.User, err = submitter(ad, row.Owner); err != nil {
		return Row{}, err
	}
	for _, name := range []string{"Id", "JobCount", "JobIds", "JobStatus", "AccountingGroup", "User"} {
		if name == "User" && ad.Has("Owner") {
			continue // something refers to the owner: users differ in what they match
		}
		ad.Delete(name)
	}
	return row, nil
}

// submitter returns whom the accountant charges: the accounting group, if the job
// has one, in the pool's domain (HTCondor src/condor_schedd.V6/schedd.cpp:
// the submitter of a job).
func submitter(ad *classads.Ad, user string) (string, error) {
	group, err := nameOf(ad, "AccountingGroup")
	if group == "" {
		return user, err
	}
	if at := strings.LastIndexByte(user, '@'); at >= 0 && !strings.Contains(group, "@") {
		group += user[at:]
	}
	return group, nil
}

// errHuge is returned for a group of which the text is too long.
var errHuge = fmt.Errorf("it has more than %d bytes", maxText)

// splitter returns the text of one ad after the other. One that is too long is
// skipped, so that it costs nobody but itself.
type splitter struct {
	in   *bufio.Reader
	read int
	// owner and size are of the last text, also of one that was skipped.
	owner string
	size  int
}

func newSplitter(r io.Reader, most int) *splitter {
	return &splitter{in: bufio.NewReader(io.LimitReader(r, int64(most)+1))}
}

// next returns the next text, io.EOF after the last, or errHuge.
func (s *splitter) next() (string, error) {
	var text []byte
	s.owner, s.size = "", 0
	huge, begun := false, false // begun: a line longer than the buffer goes on
	for {
		line, err := s.in.ReadSlice('\n')
		s.read += len(line)
		s.size += len(line)
		if name, ok := bytes.CutPrefix(line, []byte(`User = "`)); ok && !begun {
			s.owner, _, _ = strings.Cut(string(name), `"`)
		}
		end := err != nil && !errors.Is(err, bufio.ErrBufferFull)
		if end && !errors.Is(err, io.EOF) {
			return "", err
		}
		more := errors.Is(err, bufio.ErrBufferFull)
		blank := !begun && !more && len(bytes.TrimSpace(line)) == 0
		begun = more
		if huge = huge || len(text)+len(line) > maxText; !huge && !blank {
			text = append(text, line...)
		}
		switch {
		case !blank && !end:
		case huge:
			return "", errHuge
		case len(text) > 0:
			return string(text), nil
		case end:
			return "", io.EOF
		}
	}
}
