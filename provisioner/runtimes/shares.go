package runtimes

import (
	"container/list"
	"maps"
	"time"
)

// shares keeps values by key in bounded memory. Each belongs to a source. If there are
// too many, a source that has at least its fair part loses what was not seen for the
// longest, so that no source can displace all that is known of another one.
type shares[V any] struct {
	most    int // values
	sources int // of which there are values
	entries map[string]*list.Element
	// of has the entries of each source, the one that was seen last in front.
	of map[string]*list.List
}

type entry[V any] struct {
	key, source string
	seen        time.Time
	value       V
}

func newShares[V any](most, sources int) *shares[V] {
	return &shares[V]{most: most, sources: sources, entries: map[string]*list.Element{}, of: map[string]*list.List{}}
}

// find returns the value of a key, or nil.
func (s *shares[V]) find(key string) *V {
	if e := s.entries[key]; e != nil {
		return &e.Value.(*entry[V]).value
	}
	return nil
}

// touch notes that a key is seen, if it is there.
func (s *shares[V]) touch(key string, now time.Time) {
	if e := s.entries[key]; e != nil {
		one := e.Value.(*entry[V])
		one.seen = now
		s.of[one.source].MoveToFront(e)
	}
}

// meet returns the value of a key that is seen. If there is none, it makes one for a
// source.
func (s *shares[V]) meet(source, key string, now time.Time) (value *V, fresh bool) {
	if v := s.find(key); v != nil {
		s.touch(key, now)
		return v, false
	}
	if s.of[source] == nil {
		if len(s.of) >= s.sources {
			s.dropSource()
		}
		s.of[source] = list.New()
	}
	if len(s.entries) >= s.most {
		s.drop(s.victim(source).Back())
	}
	if s.of[source] == nil { // it lost its only one
		s.of[source] = list.New()
	}
	one := &entry[V]{key: key, source: source, seen: now}
	s.entries[key] = s.of[source].PushFront(one)
	return &one.value, true
}

// victim returns the entries of a source that has at least its fair part: those of the
// source that needs room, or the most that there are.
func (s *shares[V]) victim(source string) *list.List {
	most := s.of[source]
	if most.Len()*len(s.of) >= s.most {
		return most
	}
	for _, l := range s.of {
		if l.Len() > most.Len() {
			most = l
		}
	}
	return most
}

func (s *shares[V]) drop(e *list.Element) {
	one := e.Value.(*entry[V])
	delete(s.entries, one.key)
	l := s.of[one.source]
	if l.Remove(e); l.Len() == 0 {
		delete(s.of, one.source)
	}
}

// dropSource forgets the source of which nothing was seen for the longest.
func (s *shares[V]) dropSource() {
	oldest, at := "", time.Time{}
	for source, l := range s.of {
		if seen := l.Front().Value.(*entry[V]).seen; at.IsZero() || seen.Before(at) {
			oldest, at = source, seen
		}
	}
	for e := s.of[oldest].Front(); e != nil; e = s.of[oldest].Front() {
		s.drop(e)
		if s.of[oldest] == nil {
			break
		}
	}
}

// forget drops what was seen at such times.
func (s *shares[V]) forget(old func(seen time.Time) bool) {
	for _, e := range maps.Clone(s.entries) {
		if old(e.Value.(*entry[V]).seen) {
			s.drop(e)
		}
	}
}

// table keeps what is known of this pool's schedds and of those that flock here, each
// in memory of its own: schedds of other pools choose their names, and could be any
// number of sources.
type table[V any] struct{ own, guests *shares[V] }

func newTable[V any]() table[V] {
	return table[V]{own: newShares[V](most, mostSources), guests: newShares[V](mostOfGuests, mostSources)}
}

// part is where values of such sources are.
func (t table[V]) part(guest bool) *shares[V] {
	if guest {
		return t.guests
	}
	return t.own
}

// find returns the value of a key, or nil. What this pool's schedds say comes first.
func (t table[V]) find(key string) *V {
	if v := t.own.find(key); v != nil {
		return v
	}
	return t.guests.find(key)
}

func (t table[V]) touch(key string, now time.Time) {
	t.own.touch(key, now)
	t.guests.touch(key, now)
}

func (t table[V]) forget(old func(seen time.Time) bool) {
	t.own.forget(old)
	t.guests.forget(old)
}

func (t table[V]) len() int { return len(t.own.entries) + len(t.guests.entries) }
