package pattern

import "slices"

// maxBehind is PCRE2's limit of what a look-behind can match.
const maxBehind = 255

// measure finds what each look-behind of a pattern can match, and says what is wrong if that has no limit, or if a look-around
// moves the beginning of the match (PCRE2 pcre2_compile.c:check_lookbehinds).
func measure(root *node) (wrong string) {
	m := measurer{groups: make(map[int]*node), known: make(map[*node][2]int), open: make(map[int]bool)}
	m.find(root)
	return m.look(root, false)
}

// measurer knows the groups of a pattern by their number, since references match as much as they do.
type measurer struct {
	groups map[int]*node
	known  map[*node][2]int // the widths of groups, and of what look-behinds match
	open   map[int]bool     // groups that are being measured since something refers to them
}

func (m *measurer) find(n *node) {
	if n.kind == kGroup {
		m.groups[n.n] = n
	}
	for _, s := range n.subs {
		m.find(s)
	}
}

func (m *measurer) look(n *node, inside bool) (wrong string) {
	switch {
	case n.kind == kKeep && inside:
		return `\K cannot be in a look-around`
	case n.kind == kLook && n.behind:
		least, most := m.once(n, n.subs[0])
		if most < 0 || most > maxBehind {
			return "a look-behind must be of limited length"
		}
		n.min, n.max = least, most
	}
	for _, s := range n.subs {
		if wrong := m.look(s, inside || n.kind == kLook); wrong != "" {
			return wrong
		}
	}
	return ""
}

// widest keeps nested repeats from overflowing.
const widest = 1 << 30

// width is the least and greatest number of bytes that a node matches; the greatest is negative if there is no limit.
func (m *measurer) width(n *node) (least, most int) {
	switch n.kind {
	case kSet:
		return 1, 1
	case kBackref:
		return m.group(n.n)
	case kLook:
		if m.refersOut(n) {
			return 0, -1
		}
	case kGroup:
		return m.once(n, n.subs[0])
	case kConcat, kAtomic:
		for _, s := range n.subs {
			l, greatest := m.width(s)
			least = min(least+l, widest)
			if greatest < 0 || most < 0 {
				most = -1
			} else {
				most = min(most+greatest, widest)
			}
		}
		if n.max < 0 {
			most = -1
		}
	case kAlternate:
		least, most = m.width(n.subs[0])
		for _, s := range n.subs[1:] {
			l, greatest := m.width(s)
			least = min(least, l)
			if greatest < 0 || most < 0 {
				most = -1
			} else {
				most = max(most, greatest)
			}
		}
	case kRepeat:
		if sub := n.subs[0]; sub.kind == kLook && !sub.behind { // PCRE2 ignores how often it is looked ahead
			return m.width(n.subs[0])
		}
		l, greatest := m.width(n.subs[0])
		least, most = min(l*n.min, widest), min(greatest*n.max, widest)
		if n.max < 0 || greatest < 0 {
			most = -1
		}
	}
	return least, most
}

// refersOut tells whether a look-behind in a part, or that it is, has no limit, as when it refers to a group around it.
func (m *measurer) refersOut(n *node) bool {
	if n.kind == kLook && n.behind {
		_, most := m.once(n, n.subs[0])
		return most < 0
	}
	return slices.ContainsFunc(n.subs, m.refersOut)
}

// lookBehind is a look-behind whose alternatives are tried one after the other, each with the most bytes first, which counts for
// what their groups match.
func lookBehind(body *node, negative bool) *node {
	if body.kind != kAlternate || negative {
		return &node{kind: kLook, behind: true, negative: negative, subs: []*node{body}}
	}
	either := &node{kind: kAlternate}
	for _, s := range body.subs {
		either.subs = append(either.subs, lookBehind(s, false))
	}
	return &node{kind: kAtomic, subs: []*node{either}}
}

// group is the width of a group that a reference means, which has no limit if the reference is within the group.
func (m *measurer) group(number int) (least, most int) {
	g := m.groups[number]
	if g == nil || m.open[number] {
		return 0, -1
	}
	m.open[number] = true
	least, most = m.width(g)
	m.open[number] = false
	return least, most
}

// once is the width of a part of a node, which is found once. It may be found within a group that is open; a part that refers to
// that group has no limit in any case, since the group contains it.
func (m *measurer) once(of, part *node) (least, most int) {
	known, ok := m.known[of]
	if !ok {
		known[0], known[1] = m.width(part)
		m.known[of] = known
	}
	return known[0], known[1]
}
