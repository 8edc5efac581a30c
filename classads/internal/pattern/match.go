package pattern

// Text is a text in which a pattern is searched for, perhaps again and again.
type Text struct {
	p    *Pattern
	text string
	last int // the last place where a match could begin, -1 for none
}

// In prepares searches in a text: it looks once for what a match needs. Each step of this and of the searches is
// taken from budget.
func (p *Pattern) In(text string, budget *int) Text {
	last := len(text)
	for _, s := range p.needs {
		if *budget < 0 {
			break // the search says so
		}
		at := s.last(text)
		*budget -= (len(text) - max(at, 0)) / bytesPerStep
		if last = min(last, at); at < 0 {
			break
		}
	}
	return Text{p, text, last}
}

// Match searches the text from an offset on. It returns the places of the match
// and of its groups up to the last that took part, two numbers each, -1 for a
// group that took no part; nil if there is no match. ErrBudget is returned when the budget is used up.
func (t Text) Match(from int, o Options, budget *int) ([]int, error) {
	m := matcher{p: t.p, text: t.text, from: from, last: t.last, options: o, budget: budget}
	m.slots = make([]int, 2*t.p.groups+t.p.loops)
	if found, err := m.search(); !found {
		return nil, err
	}
	return m.places(), nil
}

// Room is the memory of searches; one search at a time may use it.
type Room struct {
	slots []int
	stack []entry
}

// keptStack is how much of a stack, in entries, a [Room] keeps.
const keptStack = 1 << 10

// Found tells whether [Text.Match] finds a match anywhere in a text.
func (p *Pattern) Found(text string, o Options, budget *int, room *Room) (bool, error) {
	n := 2*p.groups + p.loops
	if cap(room.slots) < n {
		room.slots = make([]int, n)
	}
	m := matcher{p: p, text: text, last: p.In(text, budget).last, options: o, budget: budget, slots: room.slots[:n], stack: room.stack}
	found, err := m.search()
	if cap(m.stack) <= keptStack {
		room.stack = m.stack
	}
	return found, err
}

// search tries one place after the other.
func (m *matcher) search() (bool, error) {
	p, text, o := m.p, m.text, m.options
	for at := m.from; ; at++ {
		switch {
		case *m.budget < 0:
			return false, ErrBudget
		case at > m.last:
			return false, nil
		}
		from := at
		if at = p.begins.next(text, m.from, at); at > m.from && p.run != nil {
			at = p.run.end(text, at)
		}
		if at >= 0 && p.first != nil && o&Anchored == 0 {
			at = p.first.next(text, at)
		}
		if at < 0 {
			*m.budget -= (len(text) - from) / bytesPerStep
		} else {
			*m.budget -= (at - from) / bytesPerStep
		}
		if at < 0 || at > m.last {
			return false, nil
		}
		for i := range m.slots {
			m.slots[i] = -1
		}
		m.stack = m.stack[:0]
		m.start = at
		if _, ok := m.run(0, at, -1); ok {
			return true, nil
		}
		if m.failed {
			return false, ErrBudget
		}
		if o&Anchored != 0 {
			return false, nil
		}
	}
}

// bytesPerStep is how many scanned or compared bytes count as one step.
const bytesPerStep = 16

type matcher struct {
	p       *Pattern
	text    string
	from    int // where the search began
	last    int // the last place where a match could begin
	start   int // where this attempt began
	options Options
	slots   []int // of groups, then of loops
	stack   []entry
	budget  *int
	failed  bool
}

// entry says what to do on backtracking: continue elsewhere, shorten or lengthen a
// span, or restore a slot.
type entry struct {
	pc, pos int32
	slot    int32 // or choice or spanning
	least   int32 // of a span: the last end to try
}

const (
	choice   = -1
	spanning = -2
)

func (m *matcher) slot(n int) int {
	if n < 0 {
		return 2*m.p.groups - n - 1
	}
	return n
}

func (m *matcher) places() []int {
	last := 1
	for g := 1; g < m.p.groups; g++ {
		if m.slots[2*g] >= 0 && m.slots[2*g+1] >= 0 {
			last = g + 1
		}
	}
	return append([]int(nil), m.slots[:2*last]...)
}

func (m *matcher) push(e entry) bool {
	if len(m.stack) >= maxStack {
		m.failed = true
		return false
	}
	m.stack = append(m.stack, e)
	return true
}

// save sets a slot and saves its old value.
func (m *matcher) save(n, pos int) bool {
	s := m.slot(n)
	old := m.slots[s]
	m.slots[s] = pos
	return m.push(entry{slot: int32(s), pos: int32(old)})
}

// run executes from pc at pos up to an accept and returns where that is. If
// end is not negative the accept must be there. The entries it leaves on the
// stack allow backtracking into it.
func (m *matcher) run(pc, pos, end int) (int, bool) {
	base := len(m.stack)
	for {
		if *m.budget--; *m.budget < 0 {
			m.failed = true
		}
		if m.failed {
			return 0, false
		}
		var ok bool
		in := &m.p.prog[pc]
		if in.op == opAccept {
			if m.accepts(pc, pos, end) {
				return pos, true
			}
		} else if pc, pos, ok = m.step(pc, pos, in); ok {
			continue
		}
		if pc, pos, ok = m.again(base); !ok {
			return 0, false
		}
	}
}

// accepts tells whether an accept is one.
func (m *matcher) accepts(pc, pos, end int) bool {
	if end >= 0 {
		return pos == end
	}
	if pc != len(m.p.prog)-1 {
		return true // of a part
	}
	empty := pos == m.slots[0]
	return !empty || m.options&NotEmpty == 0 && (m.options&NotEmptyAtStart == 0 || pos != m.from)
}

// step executes one instruction; false means to backtrack.
func (m *matcher) step(pc, pos int, in *inst) (int, int, bool) {
	switch in.op {
	case opByte:
		return pc + 1, pos + 1, pos < len(m.text) && m.text[pos] == in.c
	case opSet:
		return pc + 1, pos + 1, pos < len(m.text) && in.set.has(m.text[pos])
	case opSpan:
		return m.span(pc, pos, in)
	case opSplit:
		return m.split(pos, in)
	case opJump:
		return in.x, pos, true
	case opSave:
		return pc + 1, pos, m.save(in.n, pos)
	case opClose:
		return pc + 1, pos, m.save(2*in.n, m.slots[m.slot(in.x)]) && m.save(2*in.n+1, pos)
	case opAssert:
		return pc + 1, pos, m.holds(in.assert, pos)
	case opBackref:
		n, ok := m.sameAs(in, pos)
		return pc + 1, pos + n, ok
	case opLoop:
		if m.slots[m.slot(in.n)] == pos {
			return in.y, pos, true
		}
		return m.split(pos, in)
	case opAtomic:
		base := len(m.stack)
		end, ok := m.run(in.x, pos, -1)
		if ok {
			m.commit(base)
		}
		return in.y, end, ok
	}
	return in.y, pos, m.look(in, pos)
}

// split continues at one place and saves the other.
func (m *matcher) split(pos int, in *inst) (int, int, bool) {
	first, second := in.x, in.y
	if in.lazy {
		first, second = second, first
	}
	return first, pos, m.push(entry{pc: int32(second), pos: int32(pos), slot: choice})
}

// span matches a run of bytes of a set.
func (m *matcher) span(pc, pos int, in *inst) (int, int, bool) {
	limit := len(m.text)
	if in.max >= 0 && in.max < limit-pos {
		limit = pos + in.max
	}
	least := pos + in.min
	end := pos
	stop := limit
	if in.lazy {
		stop = min(least, limit)
	}
	for end < stop && in.set.has(m.text[end]) {
		end++
	}
	*m.budget -= (end - pos) / bytesPerStep
	if end < least {
		return 0, 0, false
	}
	if in.lazy {
		if end < limit {
			return pc + 1, end, m.push(entry{pc: int32(pc), pos: int32(end), slot: spanning, least: int32(limit)})
		}
	} else if end > least {
		return pc + 1, end, m.push(entry{pc: int32(pc), pos: int32(end), slot: spanning, least: int32(least)})
	}
	return pc + 1, end, true
}

// again backtracks to the last choice above base.
func (m *matcher) again(base int) (pc, pos int, ok bool) {
	for len(m.stack) > base {
		top := len(m.stack) - 1
		e := m.stack[top]
		if e.slot >= 0 {
			m.slots[e.slot] = int(e.pos)
			m.stack = m.stack[:top]
			continue
		}
		if e.slot == choice {
			m.stack = m.stack[:top]
			return int(e.pc), int(e.pos), true
		}
		in := &m.p.prog[e.pc]
		next := e.pos - 1 // greedy: one byte less
		if in.lazy {      // one byte more
			if !in.set.has(m.text[e.pos]) {
				m.stack = m.stack[:top]
				continue
			}
			next = e.pos + 1
		}
		if next == e.least {
			m.stack = m.stack[:top]
		} else {
			m.stack[top].pos = next
		}
		return int(e.pc) + 1, int(next), true
	}
	return 0, 0, false
}

// commit forgets the choices above base, but keeps the old values of slots.
func (m *matcher) commit(base int) {
	keep := base
	for _, e := range m.stack[base:] {
		if e.slot >= 0 {
			m.stack[keep] = e
			keep++
		}
	}
	m.stack = m.stack[:keep]
}

// look tells whether a look-around holds.
func (m *matcher) look(in *inst, pos int) bool {
	base := len(m.stack)
	found := false
	if !in.behind {
		_, found = m.run(in.x, pos, -1)
	} else {
		for n := min(in.max, pos); n >= in.min && !found && !m.failed; n-- {
			_, found = m.run(in.x, pos-n, pos)
		}
	}
	if found && !in.negative {
		m.commit(base)
		return true
	}
	for len(m.stack) > base { // undo what it captured
		top := len(m.stack) - 1
		if e := m.stack[top]; e.slot >= 0 {
			m.slots[e.slot] = int(e.pos)
		}
		m.stack = m.stack[:top]
	}
	return found != in.negative
}

// sameAs returns the length of the text of a group if that text is at pos. A group
// that took no part has no text.
func (m *matcher) sameAs(in *inst, pos int) (int, bool) {
	from, to := m.slots[2*in.n], m.slots[2*in.n+1]
	if from < 0 || to < from || len(m.text)-pos < to-from {
		return 0, false
	}
	*m.budget -= (to - from) / bytesPerStep
	for i := 0; i < to-from; i++ {
		a, b := m.text[from+i], m.text[pos+i]
		if a != b && (!in.fold || !isAlpha(a) || a|0x20 != b|0x20) {
			return 0, false
		}
	}
	return to - from, true
}

func (m *matcher) holds(a assertion, pos int) bool {
	last := len(m.text)
	switch a {
	case atStart:
		return pos == 0
	case atLineStart:
		return pos == 0 || m.text[pos-1] == '\n' && pos < last
	case atSearchStart:
		return pos == m.from
	case atEnd:
		return pos == last
	case atLastLine:
		return pos == last || pos == last-1 && m.text[pos] == '\n'
	case atLineEnd:
		return pos == last || m.text[pos] == '\n'
	}
	edge := (pos > 0 && isWord(m.text[pos-1])) != (pos < last && isWord(m.text[pos]))
	return edge == (a == atWordEdge)
}
