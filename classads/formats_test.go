package classads

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// everyKind is an ad with everything that the formats write differently.
const everyKind = `S = "a\"b<&>'	\x C:\dir\"
Sp = "ümlaut"
R = 0.1
I = 5
B = true
U = undefined
E = error
L = { 1,"x",[ y = a < b && c ],{  } }
N = [ 'odd name' = x =?= "<"; a = "q" ]
X = a < b && "str&" == c
Inf = real("INF")
T = absTime("2024-02-29T12:34:56+01:00")
`

// TestFormats compares with what condor_status -json and -xml print of everyKind,
// except the order.
func TestFormats(t *testing.T) {
	a, err := ParseOld(everyKind)
	if err != nil {
		t.Fatal(err)
	}
	wantJSON := `{
  "S": "a\"b<&>'\t\\x C:\\dir\\",
  "Sp": "ümlaut",
  "R": 0.1,
  "I": 5,
  "B": true,
  "U": null,
  "E": "\/Expr(error)\/",
  "L": [
    1,
    "x",
    {
      "y": "\/Expr(a < b && c)\/"
    },
    [
    ]
  ],
  "N": {
    "odd name": "\/Expr(x is \"<\")\/",
    "a": "q"
  },
  "X": "\/Expr(a < b && \"str&\" == c)\/",
  "Inf": "\/Expr(real(\"INF\"))\/",
  "T": "\/Expr(absTime(\"2024-02-29T12:34:56+01:00\"))\/"
}`
	if diff := cmp.Diff(wantJSON, a.FormatJSON()); diff != "" {
		t.Errorf("JSON: %s", diff)
	}
	wantXML := `<c>
    <a n="S"><s>a"b&lt;&amp;&gt;'\t\\x C:\\dir\\</s></a>
    <a n="Sp"><s>\303\274mlaut</s></a>
    <a n="R"><r>1.000000000000000E-01</r></a>
    <a n="I"><i>5</i></a>
    <a n="B"><b v="t"/></a>
    <a n="U"><un/></a>
    <a n="E"><er/></a>
    <a n="L"><l><i>1</i><s>x</s><c>
        <a n="y"><e>a &lt; b &amp;&amp; c</e></a>
    </c><l></l></l></a>
    <a n="N"><c>
        <a n="odd name"><e>x is "&lt;"</e></a>
        <a n="a"><s>q</s></a>
    </c></a>
    <a n="X"><e>a &lt; b &amp;&amp; "str&amp;" == c</e></a>
    <a n="Inf"><e>real("INF")</e></a>
    <a n="T"><at>2024-02-29T12:34:56+01:00</at></a>
</c>
`
	if diff := cmp.Diff(wantXML, a.FormatXML()); diff != "" {
		t.Errorf("XML: %s", diff)
	}
	for name, read := range map[string]func() (*Ad, error){
		"JSON":        func() (*Ad, error) { return ParseJSON(a.FormatJSON()) },
		"JSON line":   func() (*Ad, error) { return ParseJSON(a.FormatJSONLine()) },
		"XML":         func() (*Ad, error) { return ParseXML(a.FormatXML()) },
		"XML in file": func() (*Ad, error) { return ParseXML(XMLHeader + a.FormatXML() + XMLFooter) },
		"new":         func() (*Ad, error) { return ParseNew(a.FormatNew()) },
		"pretty":      func() (*Ad, error) { return ParseNew(a.Pretty()) },
	} {
		b, err := read()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(a.FormatOld(), b.FormatOld()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestNumbersInJSON: they are those of the language, as in HTCondor, which has 0 for the last.
func TestNumbersInJSON(t *testing.T) {
	a, err := ParseJSON(`{"a":[.5,-.5,01.5,-01,-00,-0x1,0x1.8,..5,1e5,-0,99999999999999999999]}`)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := a.FormatOld(), "a = { 0.5,-0.5,1.5,-1,0,0,1.5,0.0,100000.0,0,1E+20 }\n"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestFormatErrors(t *testing.T) {
	for _, c := range []struct{ format, text, want string }{
		{"json", ``, "expected {"},
		{"json", `{"a": 1`, "expected , or }"},
		{"json", `{"a": }`, "expected a value"},
		{"json", `{"a": "\u0000"}`, "escape or NUL"},
		{"json", `{"a": "\u12"}`, "escape or NUL"},
		{"json", `{"a": 1} x`, "expected the end"},
		{"json", `{"": 1}`, "cannot be empty"},
		{"json", `{"a": "\/Expr(1 +)\/"}`, "in an expression"},
		{"json", `{"a": "open`, "does not end"},
		{"json", `{"a": ` + strings.Repeat("[", 1000), "levels of nesting"},
		{"json", `{"a": 1-2}`, "expected , or }"},
		{"json", `{"a": 012}`, "cannot begin with 0"},
		{"json", `{"a": 0x1}`, "cannot begin with 0"},
		{"json", `{"a": 1.}`, "must follow the decimal point"},
		{"json", `{"a": 1.e3}`, "must follow the decimal point"},
		{"json", `{"a": .}`, "not a number"},
		{"json", `{"a": ..}`, "not a number"},
		{"json", `{"a": -}`, "not a number"},
		{"json", `{"a": -.}`, "not a number"},
		{"json", `{"a": - 1}`, "not a number"},
		{"xml", ``, "EOF"},
		{"xml", `<x/>`, "there is no <c>"},
		{"xml", `<c><a n="x"></a></c>`, "has no value"},
		{"xml", `<c><a><i>1</i></a></c>`, "not an attribute with a name"},
		{"xml", `<c><a n="x"><i>one</i></a></c>`, "not an integer"},
		{"xml", `<c><a n="x"><i>1</i><i>2</i></a></c>`, "does not end after its value"},
		{"xml", `<c><a n="x"><z/></a></c>`, "unknown element"},
		{"xml", `<c><a n="x"><e>1 +</e></a></c>`, "expected an operand"},
		{"xml", `<c><a n="x"><s>\0</s></a></c>`, "NUL"},
		{"xml", `<c><a n="x">` + strings.Repeat("<l>", 1000), "levels of nesting"},
		{"new", `a = 1`, "expected ["},
		{"new", `[ a = 1 ] x`, "expected the end"},
		{"new", `[ 1 = a ]`, "attribute name"},
		{"new", `[ a 1 ]`, "expected ="},
		{"new", `[ '' = 1 ]`, "cannot be empty"},
	} {
		var err error
		switch c.format {
		case "json":
			_, err = ParseJSON(c.text)
		case "xml":
			_, err = ParseXML(c.text)
		case "new":
			_, err = ParseNew(c.text)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q: %v, want %q", c.format, c.text, err, c.want)
		}
	}
}

func TestReader(t *testing.T) {
	var ads []*Ad
	for _, name := range []string{"machine", "job", "collector"} {
		a, err := ParseOld(realAd(t, name))
		if err != nil {
			t.Fatal(err)
		}
		a.SetString("Brackets", `]}"'<c></c>[{ \`)
		ads = append(ads, a)
	}
	join := func(before, between, after string, write func(*Ad) string) string {
		var parts []string
		for _, a := range ads {
			parts = append(parts, write(a))
		}
		return before + strings.Join(parts, between) + after
	}
	for _, c := range []struct {
		name   string
		format Format
		text   string
	}{
		{"long", FormatLong, join("\n\n", "\n\n", "\n", (*Ad).FormatOld)},
		{"without an end", FormatLong, strings.TrimSpace(join("# comment\n\n", "\n", "", (*Ad).FormatOld))},
		{"history", FormatLong, join("", "*** Offset = 1 Cluster = 2\n", "*** Offset = 2\n", (*Ad).FormatOld)},
		{"new", FormatNew, join("{\n", ",\n", "\n}\n", (*Ad).FormatNew)},
		{"pretty", FormatNew, join("", " // comment ]\n", "", (*Ad).Pretty)},
		{"JSON", FormatJSON, join("[\n", ",\n", "\n]\n", (*Ad).FormatJSON)},
		{"JSON lines", FormatJSON, join("", "\n", "", (*Ad).FormatJSONLine)},
		{"XML", FormatXML, join(XMLHeader, "", XMLFooter, (*Ad).FormatXML)},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := NewReader(strings.NewReader(c.text), c.format, Parser{})
			for i, want := range ads {
				got, err := r.Read()
				if err != nil {
					t.Fatalf("ad %d: %v", i, err)
				}
				if diff := cmp.Diff(want.FormatOld(), got.FormatOld()); diff != "" {
					t.Errorf("ad %d: %s", i, diff)
				}
			}
			for range 2 {
				if a, err := r.Read(); err != io.EOF {
					t.Errorf("after the last: %v, %v", a, err)
				}
			}
		})
	}
}

func TestReaderErrors(t *testing.T) {
	r := NewReader(strings.NewReader("a = (\n\nb = 1\n"), FormatLong, Parser{})
	if _, err := r.Read(); err == nil {
		t.Error("a wrong ad is accepted")
	}
	if a, err := r.Read(); err != nil || !a.Has("b") {
		t.Errorf("the ad after a wrong one: %v, %v", a, err)
	}
	for _, format := range []Format{FormatNew, FormatJSON, FormatXML} {
		text := map[Format]string{FormatNew: "[ a = 1", FormatJSON: `{"a": 1`, FormatXML: "<c><a"}[format]
		if _, err := NewReader(strings.NewReader(text), format, Parser{}).Read(); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %v", text, err)
		}
		long := text + strings.Repeat(" ", 1000)
		if _, err := NewReader(strings.NewReader(long), format, Parser{MaxText: 100}).Read(); err == nil || !strings.Contains(err.Error(), "longer than") {
			t.Errorf("%s...: %v", text, err)
		}
	}
	if _, err := NewReader(strings.NewReader("a = \""+strings.Repeat("x", 1000)), FormatLong, Parser{MaxText: 100}).Read(); !errors.Is(err, errTooLong) {
		t.Errorf("long line: %v", err)
	}
}

// TestReaderAll reads in loops what TestReader reads one by one.
func TestReaderAll(t *testing.T) {
	broken := errors.New("the disk is broken")
	for _, c := range []struct {
		name   string
		format Format
		in     io.Reader
		want   []string
	}{
		{"good", FormatJSON, strings.NewReader(`[{"a": 1}, {"a": 2}]`), []string{"1", "2"}},
		{"nothing", FormatLong, strings.NewReader("\n# comment\n\n"), nil},
		{"one wrong", FormatLong, strings.NewReader("a = 1\n\na = (\n\na = 3\n"), []string{"1", "wrong", "3"}},
		{"wrong at the end", FormatNew, strings.NewReader("[ a = 1 ] [ a = ]"), []string{"1", "wrong"}},
		{"an end within", FormatXML, strings.NewReader("<c></c><c><a></c>"), []string{"undefined", "wrong"}},
		{"cut off", FormatJSON, strings.NewReader(`{"a": 1} {"a": `), []string{"1", "cut"}},
		{"unreadable", FormatLong, io.MultiReader(strings.NewReader("a = 1\n\na = 2"), iotest.ErrReader(broken)), []string{"1", "broken"}},
	} {
		r := NewReader(c.in, c.format, Parser{})
		var got []string
		for ad, err := range r.All() {
			switch {
			case errors.Is(err, broken):
				got = append(got, "broken")
			case errors.Is(err, io.ErrUnexpectedEOF) && r.err != nil:
				got = append(got, "cut")
			case err != nil && ad == nil:
				got = append(got, "wrong")
			default:
				got = append(got, ad.Eval("a", Env{}).String())
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
	r := NewReader(strings.NewReader("[a = 1] [a = 2] [a = 3]"), FormatNew, Parser{})
	for want := int64(1); want <= 3; want++ {
		for ad, err := range r.All() {
			if err != nil || ad.IntOr("a", 0) != want {
				t.Errorf("loop %d: %v, %v", want, ad, err)
			}
			break
		}
	}
}

func FuzzFormats(f *testing.F) {
	a, err := ParseOld(everyKind)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(a.FormatJSON())
	f.Add(recordedJSON)
	f.Add(XMLHeader + a.FormatXML() + XMLFooter)
	f.Add(a.FormatNew())
	f.Fuzz(func(t *testing.T, text string) {
		for format, parse := range map[Format]func(string) (*Ad, error){FormatJSON: ParseJSON, FormatXML: ParseXML, FormatNew: ParseNew} {
			a, err := parse(text)
			if err == nil {
				throughJSON(t, a)
			}
			n := 0
			for range NewReader(strings.NewReader(text), format, Parser{MaxText: 4096}).All() {
				if n++; n > len(text)+1 {
					t.Fatalf("%q has more ads than bytes", text)
				}
			}
		}
	})
}
