package classads

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEncodingJSON takes ads through encoding/json and back.
func TestEncodingJSON(t *testing.T) {
	for name, text := range map[string]string{
		"every kind": everyKind, "machine": realAd(t, "machine"), "job": realAd(t, "job"), "none": "",
		"marks": `A = "/Expr(1 + 1)/"` + "\n" + `B = strcat("/Expr(",x,")/")` + "\n" + `C = "\/Expr(1)\/"` + "\n",
	} {
		a, err := ParseOld(text)
		if err != nil {
			t.Fatal(err)
		}
		out, err := json.Marshal(map[string]any{"pointer": a, "value": *a, "none": (*Ad)(nil)})
		if err != nil {
			t.Fatal(err)
		}
		var in struct {
			Pointer *Ad `json:"pointer"`
			Value   Ad  `json:"value"`
			None    *Ad `json:"none"`
		}
		if err := json.Unmarshal(out, &in); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, got := range []*Ad{in.Pointer, &in.Value} {
			if !got.Equal(a) {
				t.Errorf("%s: %s", name, cmp.Diff(a.FormatOld(), got.FormatOld()))
			}
		}
		if in.None != nil {
			t.Errorf("%s: no ad has become %s", name, in.None)
		}
		line, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		var want, got any
		if err := json.Unmarshal([]byte(a.FormatJSON()), &want); err != nil {
			t.Errorf("%s: condor_q's form is not JSON: %v", name, err)
		}
		if err := json.Unmarshal(line, &got); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: condor_q's form (-) and json.Marshal's (+) mean different JSON:\n%s", name, diff)
		}
	}
}

// TestUnmarshalReplaces: an ad loses its old attributes, unless the text is wrong.
func TestUnmarshalReplaces(t *testing.T) {
	a := NewAd()
	a.SetInt("Old", 1)
	for _, c := range []struct{ text, want, err string }{
		{`null`, "Old = 1\n", ""},
		{`{"A": 1, "B": "\/Expr(1 +)\/"}`, "Old = 1\n", "in an expression"},
		{`[1]`, "Old = 1\n", "expected {"},
		{`{"A": 1, "a": 2}`, "A = 2\n", ""},
		{`{}`, "", ""},
	} {
		err := json.Unmarshal([]byte(c.text), a)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, want %q", c.text, err, c.err)
		}
		if diff := cmp.Diff(c.want, a.FormatOld()); diff != "" {
			t.Errorf("%s: %s", c.text, diff)
		}
	}
}

// recordedJSON is an ad and what condor_status 25.14 -ads:json writes of it with
// -json.
const (
	recordedJSON = `{"A":"\/expr(1+2)\/","B":"/Expr(1)/","C":"\u0041","D":-0,"E":-.5,"F":1e5,"G":"\/Expr(x)/", "H":[1,null,{"a":true}],"T":"\/Expr(absTime(\"2024-01-01T00:00:00Z\"))\/","L":"\/Expr( 1"}`
	readJSON     = `{
  "A": "\/Expr(1 + 2)\/",
  "B": "/Expr(1)/",
  "C": "A",
  "D": 0,
  "E": -0.5,
  "F": 100000.0,
  "G": "/Expr(x)/",
  "H": [
    1,
    null,
    {
      "a": true
    }
  ],
  "T": "\/Expr(absTime(\"2024-01-01T00:00:00-00:00\"))\/",
  "L": "/Expr( 1"
}`
)

func TestRecordedJSON(t *testing.T) {
	a, err := ParseJSON(recordedJSON)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(readJSON, a.FormatJSON()); diff != "" {
		t.Errorf("HTCondor (-) and ours (+):\n%s", diff)
	}
}

func TestExpressionsAndValuesInJSON(t *testing.T) {
	type pair struct {
		Expr  *Expr
		Value Value
	}
	env := Env{My: NewAd()}
	for text, want := range map[string]string{
		`1 + 1`:                 `{"Expr":"\/Expr(1 + 1)\/","Value":2}`,
		`"\"<\""`:               `{"Expr":"\"\u003c\"","Value":"\"\u003c\""}`,
		`x`:                     `{"Expr":"\/Expr(x)\/","Value":null}`,
		`{ 1,[ a = 1 + 1 ] }`:   `{"Expr":[1,{"a":"\/Expr(1 + 1)\/"}],"Value":[1,{"a":"\/Expr(1 + 1)\/"}]}`,
		`[ a = { } ]`:           `{"Expr":{"a":[]},"Value":{"a":[]}}`,
		`1 / 0`:                 `{"Expr":"\/Expr(1 / 0)\/","Value":"\/Expr(error)\/"}`,
		`real("INF")`:           `{"Expr":"\/Expr(real(\"INF\"))\/","Value":"\/Expr(real(\"INF\"))\/"}`,
		`relTime(61)`:           `{"Expr":"\/Expr(relTime(61))\/","Value":"\/Expr(relTime(\"01:01\"))\/"}`,
		`absTime(0, 0)`:         `{"Expr":"\/Expr(absTime(0,0))\/","Value":"\/Expr(absTime(\"1970-01-01T00:00:00-00:00\"))\/"}`,
		`undefined`:             `{"Expr":null,"Value":null}`,
		`strcat("a","b") + 1.0`: `{"Expr":"\/Expr(strcat(\"a\",\"b\") + 1.0)\/","Value":"\/Expr(error)\/"}`,
	} {
		e, err := ParseExpr(text)
		if err != nil {
			t.Fatal(err)
		}
		out, err := json.Marshal(pair{e, e.Eval(env)})
		if err != nil {
			t.Fatal(err)
		}
		// The new syntax has 16 digits of a real.
		if diff := cmp.Diff(want, strings.ReplaceAll(string(out), "1.000000000000000E+00", "1.0")); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
		shared := NewAd()
		shared.SetInt("A", 7)
		got, _ := shared.Lookup("A")
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(out, &fields); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(fields["Expr"], got); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if !got.Equal(e) {
			t.Errorf("%s has become %s", text, got)
		}
		if shared.IntOr("A", 0) != 7 {
			t.Errorf("%s: an ad has changed with an expression that was taken from it", text)
		}
	}
	for _, bad := range []string{`"\/Expr(1 +)\/"`, `{"": 1}`} {
		if err := json.Unmarshal([]byte(bad), new(Expr)); err == nil {
			t.Errorf("%s is read", bad)
		}
	}
}

// throughJSON fails unless an ad that goes through encoding/json comes back equal,
// as far as text can express it.
func throughJSON(t *testing.T, a *Ad) {
	t.Helper()
	out, err := json.Marshal(a)
	if err != nil {
		t.Fatalf("%q: %v", a.FormatJSON(), err)
	}
	var b Ad
	if err := json.Unmarshal(out, &b); err != nil {
		t.Fatalf("%q as JSON is %q: %v", a.FormatNew(), out, err)
	}
	c, err := ParseJSON(a.FormatJSON())
	if err != nil {
		t.Fatalf("%q as JSON is %q: %v", a.FormatNew(), a.FormatJSON(), err)
	}
	if !b.Equal(c) {
		t.Fatalf("%q is read as %s, and %q as %s", out, &b, a.FormatJSON(), c)
	}
	if !stable(a.FormatNew()) {
		return
	}
	settles(t, a.FormatJSONLine(), func(text string) (string, error) {
		a, err := ParseJSON(text)
		if err != nil {
			return "", err
		}
		return a.FormatJSONLine(), nil
	})
}
