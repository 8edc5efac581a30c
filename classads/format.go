package classads

import (
	"slices"
	"strconv"
	"strings"
)

// printer holds how text is written.
type printer struct {
	old    bool
	sorted bool    // attributes in HTCondor's order
	pretty *layout // nil: on one line
}

// String returns the expression in the new syntax.
func (e *Expr) String() string { return string(e.tree().append(nil, printer{})) }

// OldString returns the expression in the old syntax, in which daemons send it
// to each other.
func (e *Expr) OldString() string { return string(e.tree().append(nil, printer{old: true})) }

// FormatOld returns the ad in the old syntax: a line "Name = expression" for
// each attribute.
func (a *Ad) FormatOld() string {
	return string(a.AppendOld(make([]byte, 0, typicalLine*len(a.attrs))))
}

// AppendOld appends the ad in the old syntax, as [Ad.FormatOld] returns it.
func (a *Ad) AppendOld(dst []byte) []byte {
	p := printer{old: true}
	for i := range a.attrs {
		dst = appendOldLine(dst, a.attrs[i].name, a.attrs[i].n, p)
		dst = append(dst, '\n')
	}
	return dst
}

// FormatSorted returns the ad as HTCondor's daemons write one to a file: as
// [Ad.FormatOld] does, in the order of the bytes of the attributes' names, and nested ads
// as [Ad.Sorted] has them (src/condor_utils/compat_classad.cpp:_sPrintAd).
func (a *Ad) FormatSorted() string {
	c := a.Clone()
	slices.SortFunc(c.attrs, func(x, y attr) int { return strings.Compare(x.name, y.name) })
	dst := make([]byte, 0, typicalLine*len(c.attrs))
	for i := range c.attrs {
		dst = append(appendOldLine(dst, c.attrs[i].name, c.attrs[i].n, printer{old: true, sorted: true}), '\n')
	}
	return string(dst)
}

// typicalLine is the length of a line for which room is made beforehand.
const typicalLine = 48

// FormatNew returns the ad in the new syntax.
func (a *Ad) FormatNew() string { return string(appendAd(nil, a, printer{})) }

// String returns the ad in the new syntax.
func (a *Ad) String() string { return a.FormatNew() }

// AppendOldLine appends "Name = expression" in the old syntax, without a
// newline.
func AppendOldLine(dst []byte, name string, e *Expr) []byte {
	return appendOldLine(dst, name, e.tree(), printer{old: true})
}

// appendOldLine writes the name as it is (src/condor_utils/compat_classad.cpp:_sPrintAd). One that could be taken for more than a
// name, which HTCondor has no way to write, is quoted, so that it becomes no other attribute.
func appendOldLine(dst []byte, name string, n node, p printer) []byte {
	if bareName(name) {
		dst = append(dst, name...)
	} else {
		dst = appendQuoted(dst, name, '\'', printer{})
	}
	dst = append(dst, " = "...)
	return n.append(dst, p)
}

// bareName tells whether a line that begins with the name is read with that name, and not as a comment, as the beginning of an ad in
// another syntax, or as what stands between ads (a banner of stars, the lone - of a startd's cron jobs).
func bareName(s string) bool {
	return s != "" && strings.IndexByte("#*-[{<", s[0]) < 0 && !isSpace(s[0]) && s[len(s)-1] != ' ' && !strings.ContainsAny(s, "=\n\x00")
}

func appendLine(dst []byte, name string, n node, p printer) []byte {
	dst = appendName(dst, name, p)
	dst = append(dst, " = "...)
	return n.append(dst, p)
}

func appendAd(dst []byte, a *Ad, p printer) []byte {
	if p.sorted {
		a = a.sorted()
	}
	if p.pretty != nil {
		return p.pretty.ad(dst, a, p)
	}
	dst = append(dst, "[ "...)
	for i := range a.attrs {
		if i > 0 {
			dst = append(dst, "; "...)
		}
		dst = appendLine(dst, a.attrs[i].name, a.attrs[i].n, p)
	}
	return append(dst, " ]"...)
}

func (l *literal) append(dst []byte, p printer) []byte { return appendValue(dst, l.Value, p) }
func (n *relTimeNode) append(dst []byte, p printer) []byte {
	return appendValue(dst, RelTimeValue(n.seconds), p)
}
func (n *adNode) append(dst []byte, p printer) []byte { return appendAd(dst, n.ad, p) }

func (n *listNode) append(dst []byte, p printer) []byte {
	if p.pretty != nil {
		return p.pretty.list(dst, n.items, p)
	}
	dst = append(dst, "{ "...)
	dst = appendItems(dst, n.items, p)
	return append(dst, " }"...)
}

func (c *call) append(dst []byte, p printer) []byte {
	dst = appendSelected(dst, c.name, p)
	dst = append(dst, '(')
	dst = appendItems(dst, c.args, p)
	return append(dst, ')')
}

func appendItems(dst []byte, items []node, p printer) []byte {
	for i, n := range items {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = n.append(dst, p)
	}
	return dst
}

func (r *attrRef) append(dst []byte, p printer) []byte {
	if r.from != nil {
		dst = r.from.append(dst, p)
		if l, ok := r.from.(*literal); ok && l.kind == Int {
			dst = append(dst, ' ') // a point would belong to the number
		}
		dst = append(dst, '.')
		return appendSelected(dst, r.name, p)
	}
	if r.absolute {
		dst = append(dst, '.')
	}
	return appendName(dst, r.name, p)
}

func (o *operation) append(dst []byte, p printer) []byte {
	switch o.op {
	case opParentheses:
		dst = append(dst, '(')
		dst = o.a.append(dst, p)
		return append(dst, ')')
	case opPlus, opMinus, opNot, opBitNot:
		dst = append(dst, operatorTexts[o.op].modern...)
		return o.a.append(dst, p)
	case opTernary:
		dst = o.a.append(dst, p)
		dst = append(dst, " ? "...)
		dst = o.b.append(dst, p)
		dst = append(dst, " : "...)
		return o.c.append(dst, p)
	case opSubscript:
		dst = o.a.append(dst, p)
		dst = append(dst, '[')
		dst = o.b.append(dst, p)
		return append(dst, ']')
	}
	dst = o.a.append(dst, p)
	if p.old {
		dst = append(dst, operatorTexts[o.op].old...)
	} else {
		dst = append(dst, operatorTexts[o.op].modern...)
	}
	return o.b.append(dst, p)
}

func appendValue(dst []byte, v Value, p printer) []byte {
	switch v.kind {
	case Undefined:
		return append(dst, "undefined"...)
	case Error:
		return append(dst, "error"...)
	case Bool:
		return strconv.AppendBool(dst, v.num != 0)
	case Int:
		return strconv.AppendInt(dst, v.num, 10)
	case Real:
		return appendReal(dst, v.float(), p.old)
	case String:
		return appendQuoted(dst, v.str, '"', p)
	case AbsTime:
		dst = append(dst, `absTime("`...)
		dst = appendAbsTime(dst, v.num, int(v.off))
		return append(dst, `")`...)
	case RelTime:
		dst = append(dst, `relTime("`...)
		dst = appendRelTime(dst, v.float())
		return append(dst, `")`...)
	case List:
		return v.list.append(dst, p)
	default:
		return appendAd(dst, v.sc.ad, p)
	}
}

// appendQuoted writes a string between quotes
// (HTCondor src/classad/sink.cpp:UnparseString).
func appendQuoted(dst []byte, s string, quote byte, p printer) []byte {
	dst = append(dst, quote)
	if p.old && strings.IndexByte(s, quote) < 0 {
		dst = append(dst, s...)
		return append(dst, quote)
	}
	from := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != quote && (p.old || ' ' <= c && c <= '~' && c != '\\') {
			continue
		}
		dst = append(dst, s[from:i]...)
		from = i + 1
		dst = append(dst, '\\')
		switch {
		case c == quote || c == '\\':
			dst = append(dst, c)
		case '\a' <= c && c <= '\r':
			dst = append(dst, "abtnvfr"[c-'\a'])
		default:
			dst = append(dst, '0'+c>>6, '0'+c>>3&7, '0'+c&7)
		}
	}
	dst = append(dst, s[from:]...)
	return append(dst, quote)
}

// appendName writes the name of an attribute, quoted where the grammar needs it
// and, as HTCondor does, if it is the special name parent.
func appendName(dst []byte, name string, p printer) []byte {
	if len(name) == 6 && equalFold(name, "parent") {
		return appendQuoted(dst, name, '\'', p)
	}
	return appendSelected(dst, name, p)
}

// appendSelected writes the name of a selected attribute or of a function. HTCondor
// never quotes these, and so prints text that it cannot read.
func appendSelected(dst []byte, name string, p printer) []byte {
	if plainName(name) {
		return append(dst, name...)
	}
	return appendQuoted(dst, name, '\'', p)
}

// nameBytes are the bytes of names that need no quotes.
var nameBytes = func() (set [256]bool) {
	for c := range set {
		set[c] = isAlpha(byte(c)) || isDigit(byte(c)) || c == '_'
	}
	return set
}()

func plainName(s string) bool {
	if s == "" || isDigit(s[0]) {
		return false
	}
	for i := 0; i < len(s); i++ {
		if !nameBytes[s[i]] {
			return false
		}
	}
	switch len(s) {
	case 2:
		return !equalFold(s, "is")
	case 4:
		return !equalFold(s, "isnt") && !equalFold(s, "true")
	case 5:
		return !equalFold(s, "error") && !equalFold(s, "false")
	case 9:
		return !equalFold(s, "undefined")
	}
	return true
}
