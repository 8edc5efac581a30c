package classads

import (
	"strings"
	"testing"
	"time"
)

// TestZone: only the parser's zone applies to a time without an offset, in every
// format.
func TestZone(t *testing.T) {
	local := time.Local
	time.Local = time.FixedZone("process", 3600)
	t.Cleanup(func() { time.Local = local })
	east := Parser{Zone: time.FixedZone("east", 5*3600)}
	const text = `absTime("2024-02-29T12:00:00")`
	parsers := map[string]func(Parser) (*Ad, error){
		"new": func(p Parser) (*Ad, error) { return p.New(`[ A = ` + text + ` ]`) },
		"old": func(p Parser) (*Ad, error) { return p.Old(`A = ` + text) },
		"JSON": func(p Parser) (*Ad, error) {
			return p.JSON(`{"A": "\/Expr(` + strings.ReplaceAll(text, `"`, `\"`) + `)\/"}`)
		},
		"XML":          func(p Parser) (*Ad, error) { return p.XML(`<c><a n="A"><at>2024-02-29T12:00:00</at></a></c>`) },
		"XML with <e>": func(p Parser) (*Ad, error) { return p.XML(`<c><a n="A"><e>` + text + `</e></a></c>`) },
		"reader": func(p Parser) (*Ad, error) {
			return NewReader(strings.NewReader(`[ A = `+text+` ]`), FormatNew, p).Read()
		},
		"expression": func(p Parser) (*Ad, error) {
			e, err := p.Expr(text)
			ad := NewAd()
			ad.Insert("A", e)
			return ad, err
		},
	}
	utc := func() time.Time { return time.Unix(0, 0).UTC() }
	for name, parse := range parsers {
		for _, c := range []struct {
			parser Parser
			want   string
		}{{Parser{}, `absTime("2024-02-29T12:00:00+01:00")`}, {east, `absTime("2024-02-29T12:00:00+05:00")`}} {
			ad, err := parse(c.parser)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got := ad.Eval("A", Env{Now: utc}).String(); got != c.want {
				t.Errorf("%s: %s, want %s", name, got, c.want)
			}
		}
	}
	// eval parses while it evaluates, in the zone of the evaluation.
	e, err := east.Expr(`eval("absTime(\"2024-02-29T12:00:00\")")`)
	if err != nil {
		t.Fatal(err)
	}
	for want, env := range map[string]Env{
		`absTime("2024-02-29T12:00:00-00:00")`: {Now: utc},
		`absTime("2024-02-29T12:00:00+01:00")`: {},
	} {
		if got := e.Eval(env).String(); got != want {
			t.Errorf("eval: %s, want %s", got, want)
		}
	}
}
