package language

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseRuns(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want []run
		err  string
	}{
		"runs":    {"parse 1000 2000000 167\nmatch 10 50 3\n", []run{{parse, 1000, 2 * time.Millisecond, 167}, {match, 10, 50, 3}}, ""},
		"nothing": {"", nil, ""},
		"cut off": {"parse 1000\n", nil, `"parse 1000"`},
		"words":   {"parse one two three\n", nil, "expected integer"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseRuns(tt.text)
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(run{})); diff != "" {
				t.Error(diff)
			}
			if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error %v, want one with %q", err, tt.err)
			}
		})
	}
}

func TestAgree(t *testing.T) {
	all := func(agreed int64) (runs []run) {
		for _, kind := range []string{parse, print, match} {
			runs = append(runs, run{kind: kind, number: 1, took: time.Second, agreed: agreed})
		}
		return runs
	}
	for name, tt := range map[string]struct {
		r    Results
		fine bool
	}{
		"the same":         {Results{theirs: all(1), ours: all(1)}, true},
		"another":          {Results{theirs: all(1), ours: all(2)}, false},
		"nothing":          {Results{}, false},
		"not always":       {Results{theirs: append(all(1), all(2)...), ours: append(all(1), all(2)...)}, false},
		"ours alone":       {Results{ours: all(1)}, false},
		"another in a row": {Results{theirs: all(1), ours: append(all(1), all(2)...)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tt.r.agree(); (err == nil) != tt.fine {
				t.Error(err)
			}
		})
	}
}

func TestTables(t *testing.T) {
	r := Results{
		theirs: []run{{parse, 2, 8 * time.Microsecond, 4000}, {cached, 2, 4 * time.Microsecond, 4000}, {print, 1, 6 * time.Microsecond, 1}, {match, 1, 3 * time.Microsecond, 7}},
		ours:   []run{{parse, 2, 4 * time.Microsecond, 4000}, {print, 1, 3 * time.Microsecond, 1}, {match, 1, 6 * time.Microsecond, 7}},
	}
	want := `Each ad has 4 attributes in the mean, and 7 of 1000000 pairs match.

| µs | HTCondor's library | ours | HTCondor's / ours |
|---|---|---|---|
| read a machine's ad | 4.00 | 2.00 | 2.0 |
| the same with its cache of expressions | 2.00 | 2.00 | 1.0 |
| print a machine's ad | 6.00 | 3.00 | 2.0 |
| match a job and a machine | 3.00 | 6.00 | 0.5 |
`
	if diff := cmp.Diff(want, r.Tables()); diff != "" {
		t.Error(diff)
	}
}
