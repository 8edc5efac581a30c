package classads

import (
	"math"
	"strconv"
)

// XMLHeader and XMLFooter enclose the ads that condor_q -xml writes
// (HTCondor src/condor_utils/compat_classad.cpp:AddClassAdXMLFileHeader).
const (
	XMLHeader = "<?xml version=\"1.0\"?>\n<!DOCTYPE classads SYSTEM \"classads.dtd\">\n<classads>\n"
	XMLFooter = "</classads>\n"
)

// FormatXML returns the ad as condor_q -xml writes it
// (HTCondor src/classad/xmlSink.cpp).
func (a *Ad) FormatXML() string { return string(append(appendXMLAd(nil, a, 0), '\n')) }

const xmlIndent = 4

func appendXMLAd(dst []byte, a *Ad, indent int) []byte {
	spaces := func(n int) {
		for range n {
			dst = append(dst, ' ')
		}
	}
	dst = append(dst, "<c>\n"...)
	for i := range a.attrs {
		spaces(indent + xmlIndent)
		dst = append(dst, `<a n="`...)
		dst = appendXMLText(dst, string(appendUnquoted(nil, a.attrs[i].name, '"')))
		dst = append(dst, `">`...)
		dst = appendXMLNode(dst, a.attrs[i].n, indent+xmlIndent)
		dst = append(dst, "</a>\n"...)
	}
	spaces(indent)
	return append(dst, "</c>"...)
}

func appendXMLNode(dst []byte, n node, indent int) []byte {
	switch n := n.(type) {
	case *literal:
		return appendXMLValue(dst, n.Value)
	case *relTimeNode:
		return appendXMLValue(dst, RealValue(n.seconds))
	case *adNode:
		return appendXMLAd(dst, n.ad, indent)
	case *listNode:
		dst = append(dst, "<l>"...)
		for _, item := range n.items {
			dst = appendXMLNode(dst, item, indent)
		}
		return append(dst, "</l>"...)
	}
	dst = append(dst, "<e>"...)
	dst = appendXMLText(dst, string(n.append(nil, printer{})))
	return append(dst, "</e>"...)
}

func appendXMLValue(dst []byte, v Value) []byte {
	element := func(tag, text string) []byte {
		dst = append(dst, '<')
		dst = append(dst, tag...)
		dst = append(dst, '>')
		dst = append(dst, text...)
		dst = append(dst, "</"...)
		dst = append(dst, tag...)
		return append(dst, '>')
	}
	switch v.kind {
	case Undefined:
		return append(dst, "<un/>"...)
	case Error:
		return append(dst, "<er/>"...)
	case Bool:
		if v.num != 0 {
			return append(dst, `<b v="t"/>`...)
		}
		return append(dst, `<b v="f"/>`...)
	case Int:
		return element("i", strconv.FormatInt(v.num, 10))
	case Real:
		return element("r", xmlReal(v.float()))
	case String:
		return element("s", string(appendXMLText(nil, string(appendUnquoted(nil, v.str, 0)))))
	case AbsTime:
		return element("at", string(appendAbsTime(nil, v.num, int(v.off))))
	}
	return element("rt", string(appendRelTime(nil, v.float())))
}

func xmlReal(r float64) string {
	switch {
	case r == 0:
		return "0.0"
	case math.IsNaN(r):
		return "NaN"
	case math.IsInf(r, 1):
		return "INF"
	case math.IsInf(r, -1):
		return "-INF"
	}
	return strconv.FormatFloat(r, 'E', 15, 64)
}

// appendUnquoted writes a string with the escapes of the new syntax but
// without its quotes; quote, if not 0, is escaped.
func appendUnquoted(dst []byte, s string, quote byte) []byte {
	q := appendQuoted(nil, s, quote, printer{})
	return append(dst, q[1:len(q)-1]...)
}

// appendXMLText escapes what HTCondor escapes: not quotes.
func appendXMLText(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '&':
			dst = append(dst, "&amp;"...)
		case '<':
			dst = append(dst, "&lt;"...)
		case '>':
			dst = append(dst, "&gt;"...)
		default:
			dst = append(dst, s[i])
		}
	}
	return dst
}
