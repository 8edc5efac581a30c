package demand

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"podstarter/classads"
)

// JobID names a job of a schedd. Without the schedd, it may be of any.
type JobID struct {
	Schedd        string
	Cluster, Proc int
}

// ParseJobID reads 123.4 or SCHEDD#123.4.
func ParseJobID(text string) (JobID, error) {
	var id JobID
	schedd, rest, ok := strings.Cut(text, "#")
	if !ok {
		schedd, rest = "", text
	}
	cluster, proc, dot := strings.Cut(rest, ".")
	var e1, e2 error
	id.Cluster, e1 = strconv.Atoi(cluster)
	id.Proc, e2 = strconv.Atoi(proc)
	if !dot || e1 != nil || e2 != nil || id.Cluster <= 0 || id.Proc < 0 || ok && (schedd == "" || strings.HasPrefix(schedd, "-")) {
		return JobID{}, fmt.Errorf("%q is no job; write 123.4, or SCHEDD#123.4", text)
	}
	id.Schedd = schedd
	return id, nil
}

// String writes the ID as ParseJobID reads it.
func (id JobID) String() string {
	text := fmt.Sprintf("%d.%d", id.Cluster, id.Proc)
	if id.Schedd != "" {
		text = id.Schedd + "#" + text
	}
	return text
}

// Job is one job, whatever its status.
type Job struct {
	ID JobID
	// Group is that of which the job is, or would be if it were idle.
	Group string
	Ad    *classads.Ad
	User  string
	// Status is its JobStatus, and Universe its JobUniverse.
	Status, Universe int
	// Schedd is where it is, and Flocks says what that wants for the job's user if it is
	// of another pool; Refused says why no pod is made for the jobs of the user there.
	Schedd          Source
	Flocks, Refused string
}

// the number of a job is of two attributes.
var number = []string{"ClusterId", "ProcId"}

// Job returns the arguments of condor_q for one job. The schedd is asked for it as
// for a group, so that its ad is that of its group.
func (q Query) Job(to Target, id JobID) []string {
	q = q.With(number)
	q.constraint = fmt.Sprintf("ClusterId == %d && ProcId == %d", id.Cluster, id.Proc)
	return q.Arguments(to)
}

// ReadJob reads what condor_q prints for one job of a schedd, or nil if there is none.
func ReadJob(r io.Reader, id JobID, from Source) (*Job, error) {
	in := newSplitter(r, MaxBytes)
	text, err := in.next()
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	var ad *classads.Ad
	if err == nil {
		ad, err = parser.Old(text)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the job %s: %w", id, err)
	}
	j := &Job{ID: id, Status: int(ad.IntOr("JobStatus", 0)), Universe: int(ad.IntOr("JobUniverse", 0))}
	for _, name := range number {
		ad.Delete(name)
	}
	row, err := newRow(ad)
	if err != nil {
		return nil, fmt.Errorf("reading the job %s: %w", id, err)
	}
	j.Ad, j.User, j.Group, j.Schedd = row.Ad, row.User, identify(from, row.Ad), from
	return j, nil
}

// Idle says why the job is none of those that pods are made for, or is empty if it
// is one.
func (j *Job) Idle(filter *classads.Expr) string {
	// HTCondor src/condor_includes/proc.h
	status := map[int]string{2: "running", 3: "removed", 4: "completed", 5: "held", 6: "transferring its output", 7: "suspended"}[j.Status]
	universe := map[int]string{7: "scheduler", 9: "grid", 12: "local"}[j.Universe]
	switch {
	case status != "":
		return "it is " + status + "; pods are made for idle jobs"
	case j.Status != 1:
		return fmt.Sprintf("its JobStatus is %d; pods are made for idle jobs", j.Status)
	case universe != "":
		return "it is of the " + universe + " universe, which needs no slot"
	}
	if filter != nil {
		if b, ok := filter.Eval(classads.Env{My: j.Ad, Limits: classads.Limits{Steps: 50_000, Bytes: 1 << 20}}).Bool(); !ok || !b {
			return fmt.Sprintf("the filter of the configuration does not hold for it: %s", filter)
		}
	}
	return ""
}
