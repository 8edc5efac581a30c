package flock

import (
	"cmp"
	"slices"
	"strings"

	"podstarter/classads"
	"podstarter/provisioner/demand"
)

// Limits of what an ad may say. Ads with longer names are no use to anybody.
const (
	maxName    = 512
	maxAddress = 4 << 10
	maxIdle    = 1 << 30
)

// ScheddAttributes and SubmitterAttributes are those that count.
var (
	ScheddAttributes    = []string{"Name", "ScheddIpAddr", "MyAddress", "CollectorHost"}
	SubmitterAttributes = []string{"Name", "ScheddName", "ScheddIpAddr", "MyAddress", "IdleJobs", "SubmitterTag"}
)

// Ad is the ad of a schedd.
type Ad struct {
	Name, Address string
	// Pool is the collector of its own pool, as the schedd says.
	Pool string
}

// Submitter is the ad of a submitter at one schedd.
type Submitter struct {
	Name, Schedd, Address string
	// Tag is empty in the schedd's own pool.
	Tag string
	// Idle is how many idle jobs the negotiator is to serve.
	Idle int
}

// ReadSchedd reads the ad of a schedd. It reports whether it is one.
func ReadSchedd(ad *classads.Ad) (Ad, bool) {
	a := Ad{Name: ad.StringOr("Name", ""), Address: address(ad), Pool: ad.StringOr("CollectorHost", "")}
	if len(a.Pool) > maxName {
		a.Pool = a.Pool[:maxName]
	}
	return a, named(a.Name) && len(a.Address) <= maxAddress
}

// ReadSubmitter reads the ad of a submitter. It reports whether it is one.
func ReadSubmitter(ad *classads.Ad) (Submitter, bool) {
	s := Submitter{
		Name: ad.StringOr("Name", ""), Schedd: ad.StringOr("ScheddName", ""), Address: address(ad), Tag: ad.StringOr("SubmitterTag", ""),
		Idle: int(min(max(ad.IntOr("IdleJobs", 0), 0), maxIdle)),
	}
	return s, named(s.Name) && named(s.Schedd) && len(s.Address) <= maxAddress && len(s.Tag) <= maxName
}

// named reports whether a name can be one: it becomes an argument of condor_q.
func named(name string) bool {
	return name != "" && len(name) <= maxName && !strings.HasPrefix(name, "-")
}

// address is the schedd's. Where an ad has both attributes, they are the same
// (HTCondor src/condor_collector.V6/collector_engine.cpp:ValidateClassAd).
func address(ad *classads.Ad) string {
	return cmp.Or(ad.StringOr("ScheddIpAddr", ""), ad.StringOr("MyAddress", ""))
}

// Schedd is a schedd that may be asked.
type Schedd struct {
	demand.Source
	// Address is its own if it must be told from others of its name.
	Address string
	// Served: the negotiator serves jobs of it.
	Served bool
	known  bool                 // its ads are known
	wants  map[string]Submitter // by name
	// locals has the names without their domain, if all have the same domain.
	locals map[string]string
	domain string
}

// Book is what the ads of a collector say.
type Book struct {
	schedds []Schedd // one for each ad, in order of names
	// away has the submitters that flock here, by the name of their schedd.
	away map[string][]Submitter
}

// key is what tells schedds apart: two pools may have schedds of one name.
type key struct{ name, address string }

// NewBook reads what ads say.
func NewBook(ads []Ad, submitters []Submitter) *Book {
	b := &Book{away: map[string][]Submitter{}}
	of := map[key][]Submitter{}
	for _, s := range submitters {
		k := key{strings.ToLower(s.Schedd), s.Address}
		of[k] = append(of[k], s)
		if s.Tag != "" {
			b.away[k.name] = append(b.away[k.name], s)
		}
	}
	foreign := func(k key) bool {
		return len(of[k]) > 0 && !slices.ContainsFunc(of[k], func(s Submitter) bool { return s.Tag == "" })
	}
	// A schedd that was started anew may have two ads for a while: if it is asked by
	// name, its ad of before does no harm. With one of another pool it would be asked
	// for both.
	shared := map[string]bool{}
	for _, a := range ads {
		k := key{strings.ToLower(a.Name), a.Address}
		shared[k.name] = shared[k.name] || foreign(k)
	}
	own := map[string][]Submitter{}
	for _, a := range ads {
		if k := (key{strings.ToLower(a.Name), a.Address}); !shared[k.name] {
			own[k.name] = append(own[k.name], of[k]...)
		}
	}
	seen := map[key]bool{}
	for _, a := range ads {
		k := key{strings.ToLower(a.Name), a.Address}
		mine := of[k]
		if !shared[k.name] {
			mine, k.address = own[k.name], ""
		}
		if seen[k] {
			continue
		}
		seen[k] = true
		s := newSchedd(a.Name, mine, foreign(k))
		s.Address = k.address
		if foreign(k) {
			// By its name, one of this pool could be asked in its place.
			s.Pool, s.Served = cmp.Or(a.Pool, a.Address), s.Served && a.Address != ""
		}
		b.schedds = append(b.schedds, s)
	}
	slices.SortStableFunc(b.schedds, func(x, y Schedd) int {
		return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.Pool, y.Pool), cmp.Compare(x.Address, y.Address))
	})
	return b
}

// newSchedd puts together what the submitters of a schedd say.
func newSchedd(name string, submitters []Submitter, foreign bool) Schedd {
	s := Schedd{Source: demand.Source{Name: name}, known: true, wants: map[string]Submitter{}, locals: map[string]string{}}
	for _, u := range submitters {
		if foreign == (u.Tag == "") {
			continue
		}
		s.Served = s.Served || u.Idle > 0 || !foreign
		u.Idle = min(u.Idle+s.wants[u.Name].Idle, maxIdle)
		local, domain, _ := strings.Cut(u.Name, "@")
		if len(s.wants) > 0 && domain != s.domain {
			s.locals = nil
		}
		s.wants[u.Name] = u
		s.domain = domain
		if s.locals != nil {
			s.locals[local] = u.Name
		}
	}
	return s
}

// All returns the schedds that the negotiator serves: those of this pool, and those
// of others that flock here.
func (b *Book) All() (own, away []Schedd) {
	for _, s := range b.schedds {
		switch {
		case !s.Served:
		case s.Flocks():
			away = append(away, s)
		default:
			own = append(own, s)
		}
	}
	return own, away
}

// Own returns the schedds of this pool, whether they are served or not.
func (b *Book) Own() []Schedd {
	return slices.DeleteFunc(slices.Clone(b.schedds), func(s Schedd) bool { return s.Flocks() })
}

// Named returns the schedds of a name, whether they are served or not. If pool is not
// empty, it is the collector of another pool, which knows where the schedd is: it
// flocks here. One that the collector does not know is asked without knowing it.
func (b *Book) Named(name, pool string) []Schedd {
	if pool != "" {
		s := newSchedd(name, b.away[strings.ToLower(name)], true)
		s.Pool = pool
		return []Schedd{s}
	}
	var found []Schedd
	for _, s := range b.schedds {
		if strings.EqualFold(s.Name, name) {
			found = append(found, s)
		}
	}
	if found == nil {
		found = []Schedd{{Source: demand.Source{Name: name}, Served: true}}
	}
	return found
}
