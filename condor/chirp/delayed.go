package chirp

import (
	"fmt"
	"strings"
	"sync"

	"podstarter/classads"
	"podstarter/condor/config"
)

// Delayed holds the attributes that a job has set for the next update
// (set_job_attr_delayed). It is safe for concurrent use.
type Delayed struct {
	prefixes []string
	most     int

	mu      sync.Mutex
	names   map[string]bool // lower case, of all that were ever set
	pending *classads.Ad
	set     *classads.Ad // all of them, including those already sent
}

// NewDelayed makes an empty set. Names must match one of the patterns, a comma-
// or blank-separated, case-insensitive list in which one * stands for anything
// (CHIRP_DELAYED_UPDATE_PREFIX); at most so many different names can be set
// (CHIRP_DELAYED_UPDATE_MAX_ATTRS).
func NewDelayed(patterns string, most int) *Delayed {
	return &Delayed{
		prefixes: config.Split(patterns), most: most,
		names: map[string]bool{}, pending: classads.NewAd(), set: classads.NewAd(),
	}
}

// maxExpression is the length of a value in bytes
// (io_proxy_handler.cpp:handle_standard_request).
const maxExpression = 993

// maxName bounds a name, in bytes; stock limits only the line.
const maxName = 256

// put records a value. The error says why it was refused.
func (d *Delayed) put(name string, e *classads.Expr) error {
	if !plainName(name) || len(name) > maxName {
		return fmt.Errorf("%.64q is not an attribute name", name)
	}
	matches := false
	for _, p := range d.prefixes {
		matches = matches || matchFold(p, name)
	}
	if !matches {
		return fmt.Errorf("attribute %s does not match CHIRP_DELAYED_UPDATE_PREFIX, %q", name, d.prefixes)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	key := strings.ToLower(name)
	if !d.names[key] && len(d.names) >= d.most {
		return fmt.Errorf("attribute %s: %d attributes have been set, which is all that CHIRP_DELAYED_UPDATE_MAX_ATTRS allows", name, len(d.names))
	}
	d.names[key] = true
	d.pending.Insert(name, e)
	d.set.Insert(name, e)
	return nil
}

// get returns the latest value of an attribute.
func (d *Delayed) get(name string) (*classads.Expr, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.set.Lookup(name)
}

// Take returns the attributes set since the last call, for an update. If the
// update is lost, give it back with Restore.
func (d *Delayed) Take() *classads.Ad {
	d.mu.Lock()
	defer d.mu.Unlock()
	ad := d.pending
	d.pending = classads.NewAd()
	return ad
}

// Restore takes back the attributes of an update that did not arrive, whether
// they are in an ad of their own or among others (see job.PublishActivation).
// Values that were set since then win.
func (d *Delayed) Restore(update *classads.Ad) {
	from := update
	if nested, err := update.GetAd("ChirpDelayedAttrs"); err == nil {
		from = nested
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, e := range from.All() {
		if d.names[strings.ToLower(name)] && !d.pending.Has(name) {
			d.pending.Insert(name, e)
		}
	}
}

// plainName reports whether an attribute of that name needs no quotes. Other
// names could break the wire format.
func plainName(name string) bool {
	for i, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', c == '_', i > 0 && '0' <= c && c <= '9':
		default:
			return false
		}
	}
	return name != ""
}

// matchFold matches a name against a pattern in which the first * stands for
// anything (condor_utils/stl_string_utils.cpp:matches_withwildcard_impl).
func matchFold(pattern, name string) bool {
	before, after, wild := strings.Cut(strings.ToLower(pattern), "*")
	name = strings.ToLower(name)
	if !wild {
		return name == before
	}
	return len(name) >= len(before)+len(after) && strings.HasPrefix(name, before) && strings.HasSuffix(name, after)
}
