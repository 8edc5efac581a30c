package pattern

import (
	"slices"
	"strings"
)

// place is where a match can begin, or where it begins whenever it could begin later.
type place uint8

// The places, each one of those before it.
const (
	anywhere    place = iota
	lineStarts        // where the search begins, or behind a newline
	searchStart       // where the search begins
	textStart
)

// next is the first of these places from at on, in a search that begins at from; -1 if there is none.
func (p place) next(text string, from, at int) int {
	switch {
	case at > len(text), p == textStart && at > 0, p == searchStart && at > from:
		return -1
	case p == lineStarts && at > from:
		end := strings.IndexByte(text[at-1:], '\n')
		if end < 0 {
			return -1
		}
		return at + end
	}
	return at
}

// begins is the place where matches of a part begin. PCRE2 knows the same places (pcre2_compile.c:is_startline, is_anchored). If the
// pattern has references to what groups matched, it counts where a group began.
func begins(n *node, references bool) place {
	switch n.kind {
	case kAssert:
		return ofAssertion(n.assert)
	case kGroup:
		if at := begins(n.subs[0], references); at == textStart || !references {
			return at
		}
	case kAtomic: // it may match less if it begins earlier
		if at := begins(n.subs[0], references); at == textStart {
			return at
		}
	case kConcat:
		return ofSequence(n.subs, references)
	case kAlternate:
		at := textStart
		for _, s := range n.subs {
			at = min(at, begins(s, references))
		}
		return at
	case kRepeat:
		return ofRepeat(n, references)
	}
	return anywhere
}

func ofAssertion(a assertion) place {
	switch a {
	case atStart:
		return textStart
	case atLineStart:
		return lineStarts
	case atSearchStart:
		return searchStart
	}
	return anywhere
}

func ofSequence(subs []*node, references bool) place {
	conditions := false // of where the rest begins
	for _, s := range subs {
		switch at := begins(s, references); {
		case s.kind == kAssert && at > anywhere:
			return at
		case looks(s):
			conditions = true
		case conditions && at != textStart:
			return anywhere
		default:
			return at
		}
	}
	return anywhere
}

// ofRepeat: what begins with any bytes can as well begin with more of them.
func ofRepeat(n *node, references bool) place {
	sub := n.subs[0]
	switch {
	case sub.kind == kSet && n.max < 0 && *sub.set == *allBytes():
		return searchStart
	case sub.kind == kSet && n.max < 0 && *sub.set == *notNewline():
		return lineStarts
	case n.min > 0:
		return begins(sub, references)
	}
	return anywhere
}

// looks tells whether a part is a condition on a place: it matches nothing.
func looks(n *node) bool {
	switch n.kind {
	case kLook, kAssert:
		return true
	case kAtomic: // of a look-behind with alternatives
		return looks(n.subs[0])
	case kAlternate:
		return !slices.ContainsFunc(n.subs, func(s *node) bool { return !looks(s) })
	}
	return false
}

// runs are the bytes behind which a match begins only if one could begin at that byte: those of a run with which the pattern
// begins, as [^,]* in [^,]*_FR_. What the shorter run leaves for the rest, the longer one can leave as well. So in a long run one place
// is tried and not all.
func runs(n *node, references bool) *set {
	switch n.kind {
	case kAssert:
		switch ofAssertion(n.assert) {
		case textStart, searchStart:
			return allBytes()
		case lineStarts:
			return notNewline()
		}
	case kGroup:
		if !references {
			return runs(n.subs[0], references)
		}
	case kAtomic:
		if r := n.subs[0]; r.kind == kRepeat && r.subs[0].kind == kSet && !r.lazy {
			return runs(r, references)
		}
	case kConcat:
		if len(n.subs) > 0 {
			return runs(n.subs[0], references)
		}
	case kAlternate:
		all := allBytes()
		for _, s := range n.subs {
			r := runs(s, references)
			if r == nil {
				return nil
			}
			all.intersect(r)
		}
		return all
	case kRepeat:
		switch sub := n.subs[0]; {
		case sub.kind == kSet && n.max < 0:
			return sub.set
		case n.min > 0:
			return runs(sub, references)
		}
	}
	return nil
}

// refers tells whether a part refers to what a group matched.
func refers(n *node) bool {
	if n.kind == kBackref {
		return true
	}
	for _, s := range n.subs {
		if refers(s) {
			return true
		}
	}
	return false
}

// firsts are the bytes with which a match can begin, nil for any.
func firsts(n *node) *set {
	switch n.kind {
	case kSet:
		return n.set
	case kGroup, kAtomic:
		return firsts(n.subs[0])
	case kConcat:
		for _, s := range n.subs {
			if !looks(s) {
				return firsts(s)
			}
		}
	case kAlternate:
		all := new(set)
		for _, s := range n.subs {
			f := firsts(s)
			if f == nil {
				return nil
			}
			all.union(f)
		}
		return all
	case kRepeat:
		if n.min > 0 {
			return firsts(n.subs[0])
		}
	}
	return nil
}

// A search looks for bytes that a match needs: for few sets of few bytes.
const (
	fewBytes = 16
	fewSets  = 8
)

// needed are sets of each of which every match contains a byte, the last of them. PCRE2 knows one byte, too
// (pcre2_compile.c, "required code unit").
func needed(n *node) []*set {
	var all []*set
	switch n.kind {
	case kSet:
		if n.set.count() <= fewBytes {
			return []*set{n.set}
		}
	case kGroup, kAtomic:
		return needed(n.subs[0])
	case kConcat:
		for _, s := range n.subs {
			for _, one := range needed(s) {
				if !slices.ContainsFunc(all, func(o *set) bool { return *o == *one }) {
					all = append(all[max(0, len(all)-fewSets+1):], one)
				}
			}
		}
	case kAlternate:
		either := new(set)
		for _, s := range n.subs {
			of := needed(s)
			if len(of) == 0 {
				return nil
			}
			either.union(of[len(of)-1])
		}
		if either.count() <= fewBytes {
			return []*set{either}
		}
	case kRepeat:
		if n.min > 0 {
			return needed(n.subs[0])
		}
	}
	return all
}
