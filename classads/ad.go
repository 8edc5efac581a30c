package classads

import (
	"iter"
	"slices"
)

// Ad is a ClassAd: an ordered set of named expressions. Names are compared
// without regard to the case of ASCII letters; the spelling of the first
// insertion is kept. Any number of goroutines may read an Ad at once. While one
// changes it, no other may use it. The zero value is an empty ad.
type Ad struct {
	attrs []attr
	index []uint32 // open addressing, position+1, 0 = free; nil while small
	site  *Site    // see Use
}

type attr struct {
	name string
	hash uint32
	n    node
}

// indexFrom is the number of attributes from which an ad has a hash index. With
// fewer, a scan that compares hashes is faster.
const indexFrom = 12

// NewAd returns an empty ad.
func NewAd() *Ad { return &Ad{} }

// Grow makes room for n more attributes.
func (a *Ad) Grow(n int) {
	a.attrs = slices.Grow(a.attrs, n)
	if n += len(a.attrs); n >= indexFrom && indexSize(n) > len(a.index) {
		a.index = make([]uint32, indexSize(n))
		for i := range a.attrs {
			a.place(i)
		}
	}
}

// Len returns the number of attributes.
func (a *Ad) Len() int { return len(a.attrs) }

// All iterates over the attributes in order. Do not change the ad during the
// loop.
func (a *Ad) All() iter.Seq2[string, *Expr] {
	return func(yield func(string, *Expr) bool) {
		for i := range a.attrs {
			if !yield(a.attrs[i].name, &Expr{a.attrs[i].n}) {
				return
			}
		}
	}
}

// Lookup returns the expression of an attribute; false if there is none.
func (a *Ad) Lookup(name string) (*Expr, bool) {
	n := a.find(name, hashName(name))
	if n == nil {
		return nil, false
	}
	return &Expr{n}, true
}

// Has tells whether the attribute exists.
func (a *Ad) Has(name string) bool { return a.position(name, hashName(name)) >= 0 }

// Insert sets an attribute. An attribute that exists keeps its place and its
// spelling. A nil expression is undefined.
func (a *Ad) Insert(name string, e *Expr) {
	a.set(name, e.tree())
}

// Delete removes an attribute and tells whether it existed.
func (a *Ad) Delete(name string) bool {
	i := a.position(name, hashName(name))
	if i < 0 {
		return false
	}
	a.attrs = append(a.attrs[:i], a.attrs[i+1:]...)
	a.reindex()
	return true
}

// Update sets every attribute of b in a.
func (a *Ad) Update(b *Ad) {
	for i := range b.attrs {
		a.set(b.attrs[i].name, b.attrs[i].n)
	}
}

// Clone returns a copy. A change of one does not affect the other.
func (a *Ad) Clone() *Ad {
	c := &Ad{attrs: append([]attr(nil), a.attrs...), site: a.site}
	if a.index != nil {
		c.index = append([]uint32(nil), a.index...)
	}
	return c
}

func (a *Ad) set(name string, n node) {
	h := hashName(name)
	i, free := a.search(name, h)
	if i >= 0 {
		a.attrs[i].n = n
		return
	}
	a.attrs = append(a.attrs, attr{name: name, hash: h, n: n})
	if 2*len(a.attrs) <= len(a.index) {
		a.index[free] = uint32(len(a.attrs))
	} else if len(a.attrs) >= indexFrom {
		a.reindex()
	}
}

func (a *Ad) find(name string, hash uint32) node {
	if i := a.position(name, hash); i >= 0 {
		return a.attrs[i].n
	}
	return nil
}

func (a *Ad) position(name string, hash uint32) int {
	i, _ := a.search(name, hash)
	return i
}

// search returns where the attribute is, or -1 and where the index, if there
// is one, has room for it.
func (a *Ad) search(name string, hash uint32) (int, uint32) {
	if a.index == nil {
		for i := range a.attrs {
			if a.attrs[i].hash == hash && equalFold(a.attrs[i].name, name) {
				return i, 0
			}
		}
		return -1, 0
	}
	mask := uint32(len(a.index) - 1)
	for s := hash & mask; ; s = (s + 1) & mask {
		p := a.index[s]
		if p == 0 {
			return -1, s
		}
		if t := &a.attrs[p-1]; t.hash == hash && equalFold(t.name, name) {
			return int(p - 1), 0
		}
	}
}

func (a *Ad) place(i int) {
	mask := uint32(len(a.index) - 1)
	s := a.attrs[i].hash & mask
	for a.index[s] != 0 {
		s = (s + 1) & mask
	}
	a.index[s] = uint32(i + 1)
}

func (a *Ad) reindex() {
	if len(a.attrs) < indexFrom {
		a.index = nil
		return
	}
	if size := indexSize(len(a.attrs)); size == len(a.index) {
		clear(a.index)
	} else {
		a.index = make([]uint32, size)
	}
	for i := range a.attrs {
		a.place(i)
	}
}

// indexSize is the size of the index for n attributes: at least twice as many,
// and some to grow.
func indexSize(n int) int {
	size := 32
	for size < 3*n {
		size *= 2
	}
	return size
}

// hashName hashes a name without regard to the case of ASCII letters (FNV-1a).
func hashName(name string) uint32 {
	h := uint32(2166136261)
	for i := 0; i < len(name); i++ {
		h = (h ^ uint32(lower(name[i]))) * 16777619
	}
	return h
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func upper(c byte) byte {
	if 'a' <= c && c <= 'z' {
		return c - 'a' + 'A'
	}
	return c
}

// equalFold compares without regard to the case of ASCII letters, as
// strcasecmp does in the C locale.
func equalFold(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	if a == b { // as most are; many bytes are compared at once
		return true
	}
	for i := 0; i < len(a); i++ {
		if a[i] != b[i] && lower(a[i]) != lower(b[i]) {
			return false
		}
	}
	return true
}

// compareFold orders as strcasecmp does in the C locale.
func compareFold(a, b string) int {
	for i := 0; i < len(a) && i < len(b); i++ {
		if x, y := lower(a[i]), lower(b[i]); x != y {
			return int(x) - int(y)
		}
	}
	return len(a) - len(b)
}
