package demand

import (
	"fmt"
	"slices"
	"strings"

	"podstarter/classads"
)

// attributes decide what every job matches, what it takes of a slot, who is charged
// for it and to which pools it may flock.
var attributes = []string{
	"AccountingGroup", "ContainerImage", "DockerImage", "FlockTo", "JobStatus", "JobUniverse", "MaxHosts", "Rank",
	"RequestCpus", "RequestDisk", "RequestGPUs", "RequestMemory", "Requirements", "Scheduler", "User",
}

// idle selects the jobs that the negotiator serves: idle ones of the universes
// that run on slots. The scheduler, local and grid universes need none.
const idle = "JobStatus == 1 && JobUniverse != 7 && JobUniverse != 9 && JobUniverse != 12"

// MaxGroups is how many groups a schedd is asked for. Requests that are
// different for each job make as many groups as jobs.
const MaxGroups = 20000

// Query is what a schedd is asked.
type Query struct {
	constraint string
	keys       []string
	most       int // groups; 0 is MaxGroups
}

// Target is the schedd that is asked, and the collector that says where it is.
type Target struct {
	// Pool is the collector; empty is that of the configuration.
	Pool string
	Name string
	// Address is the schedd's own, by which it is told from others of its name. The
	// collector must have an ad with it.
	Address string
}

// NewQuery returns a query for the idle jobs that the site's filter selects, which
// may be nil. The jobs are also grouped by other attributes of the job, to which
// START and the ranks of templates refer.
//
// A schedd applies the constraint to each job, and then to each group
// (HTCondor src/condor_schedd.V6/autocluster.cpp:JobAggregationResults), so
// groups have all attributes to which the constraint refers.
func NewQuery(filter *classads.Expr, others []string) (Query, error) {
	q := Query{constraint: idle, keys: slices.Clone(attributes)}
	if filter != nil {
		q.constraint = fmt.Sprintf("(%s) && (%s)", idle, filter)
		for ref := range filter.References() {
			if !strings.EqualFold(ref.Name, "MY") && !strings.EqualFold(ref.Name, "TARGET") {
				others = append(slices.Clip(others), ref.Name)
			}
		}
	}
	for _, name := range others {
		if !usable(name) {
			return Query{}, fmt.Errorf("grouping jobs by the attribute %q: condor_q takes no such name; take it out of the filter or the template", name)
		}
		if !slices.ContainsFunc(q.keys, func(k string) bool { return strings.EqualFold(k, name) }) {
			q.keys = append(q.keys, name)
		}
	}
	q.sort()
	return q, nil
}

// With returns the query that groups jobs by other attributes, too. Names that
// condor_q does not take are left out: they come from slots.
func (q Query) With(others []string) Query {
	q.keys = slices.Clone(q.keys)
	for _, name := range others {
		if usable(name) && !slices.ContainsFunc(q.keys, func(k string) bool { return strings.EqualFold(k, name) }) {
			q.keys = append(q.keys, name)
		}
	}
	q.sort()
	return q
}

func (q Query) sort() {
	slices.SortFunc(q.keys, func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
}

// usable reports whether condor_q takes the name of an attribute.
func usable(name string) bool {
	return name != "" && len(name) <= 128 && !strings.ContainsAny(name, ", \t\n'\"")
}

// Without returns the query for the jobs of all but some users.
func (q Query) Without(owners []string) Query {
	for _, name := range owners {
		q.constraint += " && User isnt " + classads.Quote(name)
	}
	return q
}

// AtMost returns the query for so many groups.
func (q Query) AtMost(groups int) Query {
	q.most = groups
	return q
}

// Arguments returns the arguments of condor_q for a schedd.
func (q Query) Arguments(to Target) []string {
	args := []string{"-allusers"}
	if to.Pool != "" {
		args = append(args, "-pool", to.Pool)
	}
	switch {
	case to.Address != "":
		args = append(args, "-addr", to.Address)
	case to.Name != "":
		args = append(args, "-name", to.Name)
	}
	most := q.most
	if most == 0 {
		most = MaxGroups
	}
	return append(args, "-constraint", q.constraint, "-group-by", "-attributes", strings.Join(q.keys, ","), "-limit", fmt.Sprint(most), "-long")
}
