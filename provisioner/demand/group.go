package demand

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"podstarter/classads"
)

// Group is a number of idle jobs that match the same slots, of one or several
// schedds.
type Group struct {
	// ID is a digest of what the jobs match. It is the same on each schedd of this pool
	// and after each restart. Jobs of another pool's schedd are groups of their own, so
	// that what it says costs no others.
	ID string
	Ad *classads.Ad
	// Parts are the jobs by submitter, in the order of their names.
	Parts []Part
	// Clusters are those of which it is known that the group has jobs of them.
	Clusters []Cluster
	// Owners are who submitted them, whatever accounting group they named. Whose jobs
	// flock here counts as their schedd: that says who they are.
	Owners []string
	// Schedds are those that have such jobs.
	Schedds []Share
}

// Source is an access point.
type Source struct {
	Name string
	// Pool is its pool, if that is another one: then its jobs flock here.
	Pool string
}

// Flocks reports whether its jobs flock here.
func (s Source) Flocks() bool { return s.Pool != "" }

// String is the name, with that of another pool.
func (s Source) String() string {
	if s.Pool == "" {
		return s.Name
	}
	return s.Name + " of the pool " + s.Pool
}

// Answer is what a schedd has.
type Answer struct {
	Source
	Rows []Row
}

// Share is the idle jobs of one schedd in a group.
type Share struct {
	Schedd Source
	Idle   int
}

// Cluster is a cluster of jobs of a schedd.
type Cluster struct{ Schedd, Number string }

// Part is the jobs of one submitter in a group.
type Part struct {
	// User is charged for the jobs, and Owner has submitted them: jobs of an accounting
	// group are charged to that.
	User, Owner string
	Idle        int
	// Jobs names some of them, as "schedd: 12.0 ... 14.7".
	Jobs string
}

// Idle returns the number of jobs of all submitters.
func (g Group) Idle() int {
	n := 0
	for _, p := range g.Parts {
		n += p.Idle
	}
	return n
}

// Merge joins the groups of several schedds.
func Merge(schedds []Answer) []Group {
	// Users choose their accounting groups: what is known of a group of jobs is not
	// searched for each row.
	groups, parts, owners := map[string]*Group{}, map[[3]string]int{}, map[[2]string]bool{}
	schedds = slices.Clone(schedds)
	ours := map[string]bool{} // schedds of this pool
	for _, s := range schedds {
		ours[strings.ToLower(s.Name)] = ours[strings.ToLower(s.Name)] || !s.Flocks()
	}
	slices.SortStableFunc(schedds, func(a, b Answer) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Pool, b.Pool)) })
	for _, schedd := range schedds {
		for _, row := range schedd.Rows {
			id := identify(schedd.Source, row.Ad)
			g := groups[id]
			if g == nil {
				g = &Group{ID: id, Ad: row.Ad}
				groups[id] = g
			}
			owner := row.Owner
			if schedd.Flocks() {
				owner = schedd.String()
			}
			if key := [2]string{id, owner}; !owners[key] {
				owners[key] = true
				g.Owners = append(g.Owners, owner)
			}
			if last := len(g.Schedds) - 1; last < 0 || g.Schedds[last].Schedd != schedd.Source {
				g.Schedds = append(g.Schedds, Share{Schedd: schedd.Source})
			}
			g.Schedds[len(g.Schedds)-1].Idle += row.Jobs
			key, jobs := [3]string{id, row.User, row.Owner}, schedd.String()+": "+row.IDs
			if i, known := parts[key]; known {
				g.Parts[i].Idle += row.Jobs
				g.Parts[i].Jobs += "; " + jobs
			} else {
				parts[key] = len(g.Parts)
				g.Parts = append(g.Parts, Part{User: row.User, Owner: row.Owner, Idle: row.Jobs, Jobs: jobs})
			}
			if schedd.Flocks() && ours[strings.ToLower(schedd.Name)] {
				continue // in slots, its jobs have the same names as those of this pool's
			}
			for _, number := range row.clusters() {
				g.Clusters = append(g.Clusters, Cluster{Schedd: schedd.Name, Number: number})
			}
		}
	}
	all := make([]Group, 0, len(groups))
	for _, g := range groups {
		slices.SortFunc(g.Parts, func(a, b Part) int { return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(a.Owner, b.Owner)) })
		all = append(all, *g)
	}
	slices.SortFunc(all, func(a, b Group) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// clusters returns the numbers of the clusters that a row names: the schedd names
// the first and the last of its jobs.
func (r Row) clusters() []string {
	var numbers []string
	for _, id := range strings.Fields(r.IDs) {
		number, _, ok := strings.Cut(id, ".")
		if ok && number != "" && len(number) <= 10 && strings.Trim(number, "0123456789") == "" && !slices.Contains(numbers, number) && len(numbers) < 2 {
			numbers = append(numbers, number)
		}
	}
	return numbers
}

// flocked begins the IDs of groups of other pools' schedds.
const flocked = "flock-"

// Flocked reports whether an ID is of a group of another pool's schedd.
func Flocked(id string) bool { return strings.HasPrefix(id, flocked) }

// identify returns a digest of an ad. The schedd sends attributes in the order of
// their names, and each of them as it was submitted.
func identify(from Source, ad *classads.Ad) string {
	text, prefix := ad.FormatSorted(), ""
	if from.Flocks() {
		text, prefix = from.Name+"\n"+from.Pool+"\n"+text, flocked
	}
	sum := sha256.Sum256([]byte(text))
	return prefix + hex.EncodeToString(sum[:8])
}
