package classads

import (
	"errors"
	"slices"
)

// ExternalReferences lists the names that an expression needs from elsewhere
// when it is evaluated in the ad: TARGET.x, and names that the ad does not have.
// With full, each name includes what it is selected from. The names are sorted
// without regard to case (HTCondor src/classad/classad.cpp:GetExternalReferences).
func (a *Ad) ExternalReferences(e *Expr, full bool) ([]string, error) {
	return a.references(e, full, (*references).external)
}

// InternalReferences lists the attributes of the ad on which an expression
// depends when it is evaluated in the ad, directly or through other attributes
// (HTCondor src/classad/classad.cpp:GetInternalReferences).
func (a *Ad) InternalReferences(e *Expr) ([]string, error) {
	return a.references(e, false, (*references).internal)
}

func (a *Ad) references(e *Expr, full bool, walk func(*references, node, *scope) bool) ([]string, error) {
	ev := new(evaluator)
	sc := ev.start(&Env{My: a})
	r := newReferences(ev, full)
	if !walk(r, e.tree(), sc) || ev.failed {
		reason := "an attribute is selected from something that is not an ad"
		if ev.failed {
			reason = ev.reason
		} else if r.reason != "" {
			reason = r.reason
		}
		return nil, errors.New("references of a ClassAd expression: " + reason)
	}
	return r.sorted(), nil
}

// references collects names.
type references struct {
	ev      *evaluator
	full    bool
	inScope bool // within the expression an attribute is selected from
	names   map[string]string
	reason  string // why the walk ended early, where known
}

func newReferences(ev *evaluator, full bool) *references {
	return &references{ev: ev, full: full, names: make(map[string]string)}
}

func (r *references) add(name string) {
	key := string(appendLower(nil, name))
	if _, ok := r.names[key]; !ok {
		r.names[key] = name
	}
}

func (r *references) sorted() []string {
	out := make([]string, 0, len(r.names))
	for _, name := range r.names {
		out = append(out, name)
	}
	slices.SortFunc(out, compareFold)
	return out
}

// deeper runs a part of the walk one level down.
func (r *references) deeper(walk func() bool) bool {
	if r.ev.depth <= 0 {
		r.reason = "the expression nests too deep"
		return false
	}
	if !r.ev.step() {
		return false
	}
	r.ev.depth--
	ok := walk()
	r.ev.depth++
	return ok
}

// children walks the operands of a node.
func (r *references) children(n node, sc *scope, walk func(*references, node, *scope) bool) bool {
	each := func(nodes ...node) bool {
		for _, n := range nodes {
			if n != nil && !r.deeper(func() bool { return walk(r, n, sc) }) {
				return false
			}
		}
		return true
	}
	switch n := n.(type) {
	case *operation:
		return each(n.a, n.b, n.c)
	case *call:
		return each(n.args...)
	case *listNode:
		return each(n.items...)
	case *adNode:
		if r.inScope {
			return true
		}
		for i := range n.ad.attrs {
			if !each(n.ad.attrs[i].n) {
				return false
			}
		}
	}
	return true
}

func (r *references) external(n node, sc *scope) bool {
	ref, ok := n.(*attrRef)
	if !ok {
		return r.children(n, sc, (*references).external)
	}
	start := sc.self()
	if ref.absolute {
		start = sc.root
	}
	if ref.from != nil {
		v := ref.from.eval(r.ev, sc)
		switch {
		case r.ev.failed:
			return false
		case v.kind == Undefined && r.full:
			name := append(ref.from.append(nil, printer{}), '.')
			r.add(string(append(name, ref.name...)))
			return true
		case v.kind == Undefined:
			return r.deeper(func() bool { return r.external(ref.from, sc) })
		case v.kind != Record:
			return false
		}
		start = v.sc
	}
	found, where, v := ref.lookup(r.ev, start)
	switch {
	case found != nil:
		return r.deeper(func() bool { return r.external(found, where) })
	case v.kind == Record:
		return r.deeper(func() bool { return r.external(&adNode{v.sc.ad}, v.sc) })
	case v.kind == Undefined:
		r.add(ref.name)
	}
	return true
}

func (r *references) internal(n node, sc *scope) bool {
	ref, ok := n.(*attrRef)
	if !ok {
		return r.children(n, sc, (*references).internal)
	}
	start := sc.self()
	if ref.absolute {
		start = sc.root
	}
	if ref.from != nil {
		saved := r.inScope
		r.inScope = true
		ok := r.internal(ref.from, sc)
		r.inScope = saved
		if !ok {
			return false
		}
		v := ref.from.eval(r.ev, sc)
		switch {
		case r.ev.failed:
			return false
		case v.kind == Undefined:
			return true
		case v.kind != Record:
			return false
		}
		start = v.sc
	}
	found, where, v := ref.lookup(r.ev, start)
	switch {
	case found != nil:
		if where == sc.root {
			r.add(ref.name)
		}
		return r.deeper(func() bool { return r.internal(found, where) })
	case v.kind == Record:
		return r.deeper(func() bool { return r.internal(&adNode{v.sc.ad}, v.sc) })
	}
	return true
}
