package classads

import (
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
)

// ParseXML reads an ad written as XML, with or without the header and the footer
// that condor_q -xml writes. If there are several ads, it reads the first.
func ParseXML(text string) (*Ad, error) { return Parser{}.XML(text) }

// XML reads an ad written as XML (HTCondor src/classad/xmlSource.cpp).
func (p Parser) XML(text string) (*Ad, error) {
	p = p.bounded()
	if len(text) > p.MaxText {
		return nil, fmt.Errorf("ClassAd in XML: text of %d bytes is longer than the %d allowed", len(text), p.MaxText)
	}
	d := xml.NewDecoder(strings.NewReader(text))
	d.Strict = false // HTCondor's quotes within attributes are not XML
	x := xmlParse{Parser: p, Decoder: d}
	for {
		start, err := x.child()
		if err == nil && start == nil {
			err = fmt.Errorf("there is no <c>")
		}
		if err != nil {
			return nil, fmt.Errorf("ClassAd in XML: %w", err)
		}
		if start.Name.Local != "c" {
			continue // classads
		}
		ad, err := x.ad(1)
		if err != nil {
			return nil, fmt.Errorf("ClassAd in XML: before byte %d: %w", d.InputOffset(), err)
		}
		return ad, nil
	}
}

type xmlParse struct {
	Parser
	*xml.Decoder
	nodes int
}

// child returns the next element within the current one, nil at its end.
func (x *xmlParse) child() (*xml.StartElement, error) {
	for {
		t, err := x.Token()
		if err != nil {
			return nil, err
		}
		switch t := t.(type) {
		case xml.StartElement:
			return &t, nil
		case xml.EndElement:
			return nil, nil
		}
	}
}

// text returns the text of the current element up to its end.
func (x *xmlParse) text() (string, error) {
	var b strings.Builder
	for {
		t, err := x.Token()
		if err != nil {
			return "", err
		}
		switch t := t.(type) {
		case xml.CharData:
			b.Write(t)
		case xml.EndElement:
			return b.String(), nil
		case xml.StartElement:
			return "", fmt.Errorf("<%s> within a value", t.Name.Local)
		}
	}
}

func (x *xmlParse) ad(depth int) (*Ad, error) {
	ad := NewAd()
	for {
		start, err := x.child()
		if err != nil {
			return nil, err
		}
		if start == nil {
			return ad, nil
		}
		name := xmlAttribute(start, "n")
		if start.Name.Local != "a" || name == "" {
			return nil, fmt.Errorf("<%s> is not an attribute with a name", start.Name.Local)
		}
		name, ok := unescape(name)
		if !ok {
			return nil, fmt.Errorf("NUL in an attribute name")
		}
		value, err := x.child()
		if err != nil {
			return nil, err
		}
		if value == nil {
			return nil, fmt.Errorf("attribute %s has no value", shorten(name))
		}
		n, err := x.value(value, depth)
		if err != nil {
			return nil, fmt.Errorf("attribute %s: %w", shorten(name), err)
		}
		ad.set(name, n)
		if end, err := x.child(); err != nil || end != nil {
			return nil, fmt.Errorf("attribute %s does not end after its value", shorten(name))
		}
	}
}

func xmlAttribute(start *xml.StartElement, name string) string {
	for _, a := range start.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// value reads an element that is a value, up to its end.
func (x *xmlParse) value(start *xml.StartElement, depth int) (node, error) {
	if depth++; depth > x.MaxNesting {
		return nil, fmt.Errorf("more than %d levels of nesting", x.MaxNesting)
	}
	if x.nodes++; x.nodes > x.MaxNodes {
		return nil, fmt.Errorf("more than %d nodes", x.MaxNodes)
	}
	switch tag := start.Name.Local; tag {
	case "c":
		ad, err := x.ad(depth)
		return &adNode{ad}, err
	case "l":
		return x.list(depth)
	default:
		text, err := x.text()
		if err != nil {
			return nil, err
		}
		return x.constant(tag, text, xmlAttribute(start, "v"))
	}
}

func (x *xmlParse) list(depth int) (node, error) {
	l := &listNode{}
	for {
		start, err := x.child()
		if err != nil {
			return nil, err
		}
		if start == nil {
			return l, nil
		}
		n, err := x.value(start, depth)
		if err != nil {
			return nil, err
		}
		l.items = append(l.items, n)
	}
}

// constant makes a node of the text of an element.
func (x *xmlParse) constant(tag, text, v string) (node, error) {
	switch tag {
	case "i":
		i, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is not an integer", shorten(text))
		}
		return &literal{IntValue(i)}, nil
	case "r":
		r, ok := scanReal(text)
		if !ok {
			return nil, fmt.Errorf("%q is not a real", shorten(text))
		}
		return &literal{RealValue(r)}, nil
	case "s":
		s, ok := unescape(text)
		if !ok {
			return nil, fmt.Errorf("a string cannot hold the character NUL")
		}
		return &literal{StringValue(s)}, nil
	case "b":
		return boolNode(lower((v + " ")[0]) == 't'), nil
	case "un":
		return undefinedNode, nil
	case "er":
		return errorNode, nil
	case "at", "rt":
		if n, _ := timeLiteral(map[string]string{"at": "abstime", "rt": "reltime"}[tag], text, x.Zone); n != nil {
			return n, nil
		}
		return nil, fmt.Errorf("%q is not a time", shorten(text))
	case "e":
		return x.Parser.parse(text, false)
	}
	return nil, fmt.Errorf("unknown element <%s>", tag)
}
