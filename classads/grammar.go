package classads

// expression reads a conditional or anything that binds stronger.
func (s *parse) expression() (node, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	cond, err := s.binary(1)
	if err != nil || s.tok != tokQuestion {
		return cond, err
	}
	h := s.height
	if err := s.next(); err != nil {
		return nil, err
	}
	yes, err := s.expression()
	if err != nil {
		return nil, err
	}
	h = max(h, s.height)
	if err := s.expect(tokColon, "expected :"); err != nil {
		return nil, err
	}
	no, err := s.expression()
	if err != nil {
		return nil, err
	}
	return &operation{opTernary, cond, yes, no}, s.made(max(h, s.height))
}

func (s *parse) expect(t token, what string) error {
	if s.tok != t {
		return s.fail(what)
	}
	return s.next()
}

// precedences of the binary operators; all associate to the left.
var precedences = [...]uint8{
	opOr: 1, opAnd: 2, opBitOr: 3, opBitXor: 4, opBitAnd: 5,
	opEqual: 6, opNotEqual: 6, opIs: 6, opIsnt: 6,
	opLess: 7, opLessEqual: 7, opGreater: 7, opGreaterEqual: 7,
	opShiftLeft: 8, opShiftRight: 8, opShiftRightUnsigned: 8,
	opAdd: 9, opSubtract: 9, opMultiply: 10, opDivide: 10, opModulus: 10,
	opTernary: 0,
}

// binary reads operators of at least the given precedence.
func (s *parse) binary(least uint8) (node, error) {
	left, err := s.unary()
	if err != nil {
		return nil, err
	}
	for s.tok == tokOperator {
		op, prec := s.op, precedences[s.op]
		if prec < least || prec == 0 {
			break
		}
		h := s.height
		if err := s.next(); err != nil {
			return nil, err
		}
		right, err := s.binary(prec + 1)
		if err != nil {
			return nil, err
		}
		if err := s.made(max(h, s.height)); err != nil {
			return nil, err
		}
		left = &operation{op: op, a: left, b: right}
	}
	return left, nil
}

// unary counts as a level even without an operator, as in HTCondor, so that the same expressions nest too deep.
func (s *parse) unary() (node, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	if s.tok != tokOperator {
		return s.postfix()
	}
	var op operator
	switch s.op {
	case opSubtract:
		op = opMinus
	case opAdd:
		op = opPlus
	case opBitNot, opNot:
		op = s.op
	default:
		return s.postfix()
	}
	if err := s.next(); err != nil {
		return nil, err
	}
	n, err := s.unary()
	if err != nil {
		return nil, err
	}
	return &operation{op: op, a: n}, s.made(s.height)
}

// postfix reads selections, subscripts and the ?: operator, which binds as
// strong as they do (HTCondor src/classad/source.cpp:parsePostfixExpression).
func (s *parse) postfix() (node, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	n, err := s.primary()
	if err != nil {
		return nil, err
	}
	for {
		h := s.height
		switch {
		case s.tok == tokDot:
			if err := s.next(); err != nil {
				return nil, err
			}
			if s.tok != tokName {
				return nil, s.fail("expected an attribute name after .")
			}
			n = newAttrRef(s.str, n, false)
			if err := s.next(); err != nil {
				return nil, err
			}
		case s.tok == tokOpenBox:
			if err := s.next(); err != nil {
				return nil, err
			}
			index, err := s.expression()
			if err != nil {
				return nil, err
			}
			if err := s.expect(tokCloseBox, "expected ]"); err != nil {
				return nil, err
			}
			h = max(h, s.height)
			n = &operation{op: opSubscript, a: n, b: index}
		case s.tok == tokOperator && s.op == opElvis:
			if err := s.next(); err != nil {
				return nil, err
			}
			other, err := s.postfix()
			if err != nil {
				return nil, err
			}
			h = max(h, s.height)
			n = &operation{op: opElvis, a: n, b: other}
		default:
			return n, nil
		}
		if err := s.made(h); err != nil {
			return nil, err
		}
	}
}

func (s *parse) primary() (node, error) {
	var n node
	switch s.tok {
	case tokName:
		return s.nameOrCall()
	case tokDot:
		if err := s.next(); err != nil {
			return nil, err
		}
		if s.tok != tokName {
			return nil, s.fail("expected an attribute name after .")
		}
		n = newAttrRef(s.str, nil, true)
	case tokOpenParen:
		if err := s.next(); err != nil {
			return nil, err
		}
		inner, err := s.expression()
		if err != nil {
			return nil, err
		}
		if err := s.expect(tokCloseParen, "expected )"); err != nil {
			return nil, err
		}
		return &operation{op: opParentheses, a: inner}, s.made(s.height)
	case tokOpenBox:
		ad, err := s.ad()
		if err != nil {
			return nil, err
		}
		return &adNode{ad}, s.made(s.height)
	case tokOpenBrace:
		items, err := s.sequence(tokCloseBrace, "expected , or }")
		if err != nil {
			return nil, err
		}
		return &listNode{items}, s.made(s.height)
	case tokUndefined:
		n = undefinedNode
	case tokError:
		n = errorNode
	case tokBool:
		n = boolNode(s.num != 0)
	case tokInt:
		n = s.constant(IntValue(s.num))
	case tokReal:
		n = s.constant(RealValue(s.real))
	case tokString:
		n = s.constant(StringValue(s.str))
	default:
		return nil, s.fail("expected an operand")
	}
	if err := s.made(0); err != nil {
		return nil, err
	}
	return n, s.next()
}

func (s *parse) nameOrCall() (node, error) {
	name := s.str
	if err := s.next(); err != nil {
		return nil, err
	}
	if s.tok != tokOpenParen {
		return newAttrRef(name, nil, false), s.made(0)
	}
	args, err := s.sequence(tokCloseParen, "expected , or )")
	if err != nil {
		return nil, err
	}
	if len(args) == 1 {
		if l, ok := args[0].(*literal); ok && l.kind == String {
			if n, done := timeLiteral(name, l.str, s.Zone); done {
				if n == nil {
					return nil, s.fail("not a time: " + name)
				}
				return n, s.made(0)
			}
		}
	}
	return &call{name: name, fn: lookupBuiltin(name), args: args}, s.made(s.height)
}

// sequence reads the items of a list or the arguments of a function; the
// current token is the opening bracket. In arguments a semicolon may stand for
// a comma.
func (s *parse) sequence(end token, what string) ([]node, error) {
	if err := s.next(); err != nil {
		return nil, err
	}
	if s.tok == end {
		s.height = 0
		return nil, s.next()
	}
	var items []node
	h := 0
	for {
		n, err := s.expression()
		if err != nil {
			return nil, err
		}
		h = max(h, s.height)
		items = append(items, n)
		if s.tok != tokComma && (s.tok != tokSemicolon || end != tokCloseParen) {
			break
		}
		if err := s.next(); err != nil {
			return nil, err
		}
	}
	s.height = h
	return items, s.expect(end, what)
}
