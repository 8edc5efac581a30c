package classads

// eval finds the attribute and evaluates it in the ad that has it
// (HTCondor src/classad/attrrefs.cpp).
func (r *attrRef) eval(ev *evaluator, sc *scope) Value {
	if !ev.step() {
		return Value{kind: Error}
	}
	n, where, v := r.find(ev, sc)
	if n == nil {
		return v
	}
	if l, ok := n.(*literal); ok {
		ev.steps--
		return l.Value
	}
	if ev.depth <= 0 {
		return ev.fail("the evaluation nests too deep")
	}
	this := activeAttr{n, nil}
	if where != nil {
		this.ad = where.ad
	}
	for _, a := range ev.active {
		if a == this {
			return circular
		}
	}
	ev.active = append(ev.active, this)
	ev.depth--
	v = n.eval(ev, where)
	ev.depth++
	ev.active = ev.active[:len(ev.active)-1]
	return v
}

// constant returns the literal that the attribute has, in the frequent cases that
// need no more to find it: name, MY.name and TARGET.name. It returns nil in all
// others.
func (r *attrRef) constant(sc *scope) *literal {
	if sc == nil || sc.in != nil || r.absolute || sc.env != nil && sc.env.Site != nil && sc.env.Site.Strict {
		return nil
	}
	if from, ok := r.from.(*attrRef); ok {
		if from.from != nil || from.special != nameSelf && from.special != nameTarget || sc.ad.find(from.name, from.hash) != nil {
			return nil
		}
		if from.special == nameTarget {
			if sc.parent != nil || sc.other == nil {
				return nil
			}
			sc = sc.other
		}
	} else if r.from != nil {
		return nil
	}
	l, _ := r.in(sc.ad).(*literal)
	return l
}

// in returns the expression that an ad has for the attribute, nil if none.
func (r *attrRef) in(a *Ad) node {
	if i := int(r.place.Load()); i < len(a.attrs) {
		if t := &a.attrs[i]; t.hash == r.hash && equalFold(t.name, r.name) {
			return t.n
		}
	}
	i := a.position(r.name, r.hash)
	if i < 0 {
		return nil
	}
	r.place.Store(uint32(i))
	return a.attrs[i].n
}

// circular is the value of an attribute that refers to itself.
var circular = Value{}

// find returns the expression that the reference means and the scope in which to
// evaluate it, or a nil node and the value of the reference.
func (r *attrRef) find(ev *evaluator, sc *scope) (node, *scope, Value) {
	if r.from != nil {
		return r.findFrom(ev, sc)
	}
	start := sc.self()
	if r.absolute {
		if sc == nil {
			return nil, nil, ev.fail("there is no outermost ad")
		}
		start = sc.root
	}
	if start == nil {
		return nil, nil, Value{}
	}
	n, where, v := r.lookup(ev, start)
	if n == nil && v.kind == Undefined && !r.absolute && start.other != nil && !ev.env.Site.Strict {
		// A plain name may mean the other ad of a match: old ClassAds had no
		// TARGET (HTCondor src/classad/attrrefs.cpp:FindExpr).
		return r.lookup(ev, start.other)
	}
	return n, where, v
}

// lookup searches an ad and those that enclose it, and then the names that
// have a meaning of their own (HTCondor src/classad/classad.cpp:LookupInScope).
func (r *attrRef) lookup(ev *evaluator, start *scope) (node, *scope, Value) {
	for sc := start; sc != nil; sc = sc.parent {
		if n := r.in(sc.ad); n != nil {
			return n, sc, Value{}
		}
		special := r.special
		if ev.env.Site.Strict {
			special = r.strictly()
		}
		switch special {
		case nameSelf:
			return nil, nil, Value{kind: Record, sc: sc}
		case nameParent:
			if sc.parent == nil {
				return nil, nil, Value{}
			}
			return nil, nil, Value{kind: Record, sc: sc.parent}
		case nameRoot:
			return nil, nil, Value{kind: Record, sc: sc.root}
		case nameCurrentTime:
			return nil, nil, IntValue(ev.now().Unix())
		case nameTarget, nameOwn, nameLeft, nameRight:
			if to := sc.matched(special); to != nil {
				return nil, nil, Value{kind: Record, sc: to}
			}
		}
	}
	return nil, nil, Value{}
}

// strictly is the name's meaning in a strict evaluation, where MY only exists in a match, and
// CurrentTime not at all (HTCondor src/classad/classad.cpp:SetOldClassAdSemantics).
func (r *attrRef) strictly() specialName {
	switch {
	case r.special == nameCurrentTime:
		return notSpecial
	case r.special == nameSelf && equalFold(r.name, "my"):
		return nameOwn
	}
	return r.special
}

// findFrom finds expr.name.
func (r *attrRef) findFrom(ev *evaluator, sc *scope) (node, *scope, Value) {
	if ev.depth <= 0 {
		return nil, nil, ErrorValue("the evaluation nests too deep")
	}
	ev.depth--
	v := r.from.eval(ev, sc)
	ev.depth++
	switch v.kind {
	case Undefined, Error:
		return nil, nil, v
	case Record:
		return r.lookup(ev, v.sc)
	case List:
		return nil, nil, r.project(ev, within(sc, v.sc), v.list)
	}
	return nil, nil, ErrorValue("an attribute selected from something that is not an ad")
}

// project selects the attribute from each element of a list. The elements are
// looked up from the scope of the reference, as HTCondor does.
func (r *attrRef) project(ev *evaluator, sc *scope, l *listNode) Value {
	if !ev.spend(elementSize * len(l.items)) {
		return Value{kind: Error}
	}
	out := &listNode{items: make([]node, len(l.items))}
	ref := attrRef{name: r.name, hash: r.hash, special: r.special}
	for i, item := range l.items {
		ref.from = item
		v := ref.eval(ev, sc)
		if ev.failed {
			return Value{kind: Error}
		}
		out.items[i] = literalNode(v)
	}
	return Value{kind: List, list: out}
}

// elementSize is the accounted size of a list's element, in bytes.
const elementSize = 64
