package classads

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// recording is the answer of HTCondor 25.14 about an expression, evaluated in one
// of adPairs, as the differential test recorded it.
type recording struct {
	Expr  string `json:"expr"`
	Pair  int    `json:"pair"`
	Print string `json:"print,omitempty"` // empty: HTCondor cannot read the expression
	Value string `json:"value,omitempty"`
}

const recordings = "../testdata/classads/recorded.jsonl"

func TestRecordedAnswers(t *testing.T) {
	local := time.Local
	time.Local = time.UTC // as when it was recorded
	t.Cleanup(func() { time.Local = local })
	f, err := os.Open(recordings)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for lines := bufio.NewScanner(f); lines.Scan(); n++ {
		var want recording
		if err := json.Unmarshal(lines.Bytes(), &want); err != nil {
			t.Fatal(err)
		}
		got := recording{Expr: want.Expr, Pair: want.Pair}
		if e, err := ParseExpr(want.Expr); err == nil {
			v := evalInPair(t, e, want.Pair)
			got.Print = string(e.n.append(nil, printer{sorted: true}))
			got.Value = string(appendValue(nil, v, printer{sorted: true}))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("HTCondor (-) and ours (+):\n%s", diff)
		}
	}
	if n == 0 {
		t.Fatal("nothing recorded")
	}
}

func evalInPair(t *testing.T, e *Expr, pair int) Value {
	t.Helper()
	env := Env{My: NewAd()}
	for i, to := range []**Ad{&env.My, &env.Target} {
		if text := adPairs[pair][i]; text != "" {
			ad, err := ParseNew(text)
			if err != nil {
				t.Fatal(err)
			}
			*to = ad
		}
	}
	v := e.Eval(env)
	if v.kind == RelTime { // HTCondor's bindings make a literal of the value
		v = RelTimeValue(float64(wholeSeconds(v)))
	}
	return v
}
