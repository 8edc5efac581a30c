package job

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"podstarter/classads"
)

// mustAd reads an ad in the old syntax.
func mustAd(t testing.TB, text string) *classads.Ad {
	t.Helper()
	ad, err := classads.ParseOld(text)
	if err != nil {
		t.Fatal(err)
	}
	return ad
}

// oracle is what HTCondor itself makes of a text: its ClassAd functions
// argsToList, envV1ToV2 and mergeEnvironment; null is an error.
type oracle struct {
	Text  string
	V2    *[]string
	V1    *[]string
	EnvV1 *string
	EnvV2 *string
}

func readOracle(t testing.TB) []oracle {
	t.Helper()
	b, err := os.ReadFile("../../testdata/condor/argsenv.25.14.1.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []oracle
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestAgainstHTCondor(t *testing.T) {
	for _, o := range readOracle(t) {
		v2, err := SplitV2(o.Text)
		if (err == nil) != (o.V2 != nil) || err == nil && !cmp.Equal(v2, *o.V2, cmpopts.EquateEmpty()) {
			t.Errorf("SplitV2(%q) = %q, %v; HTCondor: %v", o.Text, v2, err, o.V2)
		}
		if v1, err := SplitV1(o.Text); err != nil || o.V1 == nil || !cmp.Equal(v1, *o.V1, cmpopts.EquateEmpty()) {
			t.Errorf("SplitV1(%q) = %q; HTCondor: %v", o.Text, v1, o.V1)
		}
		for _, side := range []struct {
			name  string
			merge func(*Env) error
			want  *string
		}{
			{"MergeV1", func(e *Env) error { return e.MergeV1(o.Text, "") }, o.EnvV1},
			{"MergeV2", func(e *Env) error { return e.MergeV2(o.Text) }, o.EnvV2},
		} {
			env := NewEnv()
			err := side.merge(env)
			if (err == nil) != (side.want != nil) || err == nil && env.V2() != *side.want {
				want := "an error"
				if side.want != nil {
					want = *side.want
				}
				t.Errorf("%s(%q) = %q, %v; HTCondor: %q", side.name, o.Text, env.V2(), err, want)
			}
		}
	}
}

func TestArguments(t *testing.T) {
	for name, tt := range map[string]struct {
		ad   string
		want []string
		err  bool
	}{
		"none":         {"", nil, false},
		"V2":           {`Arguments = "a 'b c' 'it''s'"`, []string{"a", "b c", "it's"}, false},
		"V1":           {`Args = "a 'b c'"`, []string{"a", "'b", "c'"}, false},
		"V2 wins":      {"Args = \"x\"\nArguments = \"y\"", []string{"y"}, false},
		"not a string": {"Args = \"x\"\nArguments = 5", []string{"x"}, false},
		"not closed":   {`Arguments = "'a"`, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Arguments(mustAd(t, tt.ad))
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); diff != "" || (err != nil) != tt.err {
				t.Errorf("error %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestUnquoteV2(t *testing.T) {
	for quoted, want := range map[string]string{
		`"a b"`: "a b", ` "a ""b"" 'c d'"  `: `a "b" 'c d'`, `""`: "",
	} {
		if got, err := UnquoteV2(quoted); err != nil || got != want {
			t.Errorf("UnquoteV2(%s) = %q, %v; want %q", quoted, got, err, want)
		}
	}
	for _, bad := range []string{"", "a", `"a`, `"a" b`, `"`} {
		if got, err := UnquoteV2(bad); err == nil {
			t.Errorf("UnquoteV2(%s) = %q, no error", bad, got)
		}
	}
}

func FuzzSplitV2(f *testing.F) {
	for _, o := range readOracle(f) {
		f.Add(o.Text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		words, err := SplitV2(text)
		if err != nil {
			return
		}
		again, err := SplitV2(JoinV2(words))
		if err != nil || !cmp.Equal(words, again) {
			t.Errorf("%q -> %q -> %q -> %q, %v", text, words, JoinV2(words), again, err)
		}
	})
}

func FuzzUnquoteV2(f *testing.F) {
	f.Add(`"a ""b"" 'c d'"`)
	f.Fuzz(func(t *testing.T, text string) {
		raw, err := UnquoteV2(text)
		if (err == nil) && !IsV2Quoted(text) {
			t.Errorf("%q was unquoted to %q", text, raw)
		}
	})
}
