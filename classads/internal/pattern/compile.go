package pattern

// opcode is an instruction of a compiled pattern.
type opcode uint8

const (
	opByte    opcode = iota // one byte: c
	opSet                   // one byte of set
	opSpan                  // min to max bytes of set, greedy or lazy
	opSplit                 // try x, then y
	opJump                  // x
	opSave                  // remember the place in slot n
	opClose                 // end of group n, which began at slot x
	opAssert                // assert
	opBackref               // the text of group n
	opAtomic                // run x up to its accept once, go on at y
	opLook                  // look-around: run x, go on at y
	opLoop                  // end of an iteration that began at slot n: try x, then y; only y if it was empty
	opAccept
)

type inst struct {
	op       opcode
	c        byte
	lazy     bool
	fold     bool
	behind   bool
	negative bool
	assert   assertion
	set      *set
	x, y     int
	n        int
	min, max int
}

type compiler struct {
	prog  []inst
	loops int // slots used for places within groups and loops; negative numbers
	full  bool
}

func (c *compiler) emit(i inst) int {
	if len(c.prog) >= maxProgram {
		c.full = true
		return 0
	}
	c.prog = append(c.prog, i)
	return len(c.prog) - 1
}

func (c *compiler) node(n *node) {
	if c.full {
		return
	}
	switch n.kind {
	case kSet:
		if b, ok := n.set.single(); ok {
			c.emit(inst{op: opByte, c: b})
			return
		}
		c.emit(inst{op: opSet, set: n.set})
	case kConcat:
		for _, s := range n.subs {
			c.node(s)
		}
	case kAlternate:
		c.alternate(n.subs)
	case kRepeat:
		c.repeat(n)
	case kGroup:
		// Until the group is complete, its last text stays as it was.
		c.loops++
		slot := -c.loops
		c.emit(inst{op: opSave, n: slot})
		c.node(n.subs[0])
		c.emit(inst{op: opClose, n: n.n, x: slot})
	case kAtomic:
		c.sub(inst{op: opAtomic}, n.subs[0])
	case kLook:
		c.sub(inst{op: opLook, behind: n.behind, negative: n.negative, min: n.min, max: n.max}, n.subs[0])
	case kBackref:
		c.emit(inst{op: opBackref, n: n.n, fold: n.fold})
	case kAssert:
		c.emit(inst{op: opAssert, assert: n.assert})
	case kKeep:
		c.emit(inst{op: opSave, n: 0})
	}
}

func (c *compiler) alternate(subs []*node) {
	var jumps []int
	for i, s := range subs {
		if i == len(subs)-1 {
			c.node(s)
			break
		}
		split := c.emit(inst{op: opSplit})
		c.prog[split].x = len(c.prog)
		c.node(s)
		jumps = append(jumps, c.emit(inst{op: opJump}))
		c.prog[split].y = len(c.prog)
	}
	for _, j := range jumps {
		c.prog[j].x = len(c.prog)
	}
}

// sub emits an instruction that runs a part of its own.
func (c *compiler) sub(i inst, n *node) {
	at := c.emit(i)
	c.prog[at].x = len(c.prog)
	c.node(n)
	c.emit(inst{op: opAccept})
	c.prog[at].y = len(c.prog)
}

func (c *compiler) repeat(n *node) {
	sub := n.subs[0]
	if sub.kind == kSet {
		c.emit(inst{op: opSpan, set: sub.set, min: n.min, max: n.max, lazy: n.lazy})
		return
	}
	copies := n.min
	if n.max < 0 && n.min > 0 {
		copies-- // the loop has one
	}
	for range copies {
		c.node(sub)
		if c.full {
			return
		}
	}
	if n.max < 0 {
		c.unbounded(sub, n.lazy, n.min > 0)
		return
	}
	var splits []int
	for range n.max - n.min {
		splits = append(splits, c.emit(inst{op: opSplit, lazy: n.lazy}))
		c.prog[splits[len(splits)-1]].x = len(c.prog)
		c.node(sub)
		if c.full {
			return
		}
	}
	for _, s := range splits {
		c.prog[s].y = len(c.prog)
	}
}

// unbounded emits a loop that ends, at the latest, when an iteration matches
// nothing.
func (c *compiler) unbounded(sub *node, lazy, once bool) {
	c.loops++
	slot := -c.loops
	split := -1
	if !once {
		split = c.emit(inst{op: opSplit, lazy: lazy})
		c.prog[split].x = len(c.prog)
	}
	again := c.emit(inst{op: opSave, n: slot})
	c.node(sub)
	c.emit(inst{op: opLoop, n: slot, x: again, y: len(c.prog) + 1, lazy: lazy})
	if split >= 0 {
		c.prog[split].y = len(c.prog)
	}
}
