//go:build differential

package classads

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// recordedAds are ads of the daemons of a pool, by the name of their file.
func recordedAds(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../testdata/classads/*.ad")
	if err != nil || len(files) == 0 {
		t.Fatal("no ads: ", err)
	}
	ads := make(map[string]string)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		ads[strings.TrimSuffix(filepath.Base(file), ".ad")] = string(text)
	}
	return ads
}

// matched are ads that are matched with each other; the others are evaluated alone.
var matched = map[string]string{"job": "machine", "machine": "job", "submitter": "machine"}

// TestRealAdsAgainstHTCondor reads and prints every attribute of the ads of a pool,
// and evaluates it in its ad.
func TestRealAdsAgainstHTCondor(t *testing.T) {
	var lines, values []query
	ads := recordedAds(t)
	for kind, text := range ads {
		ad, err := ParseOld(text)
		if err != nil {
			t.Fatal(err)
		}
		for name, e := range ad.All() {
			lines = append(lines, query{Old: string(AppendOldLine(nil, name, e)) + "\n"})
			if q := (query{Expr: e.String(), My: text, Target: ads[matched[kind]]}); !passes(t, q) {
				values = append(values, q)
			}
		}
	}
	compareAnswers(t, lines)
	compareAnswers(t, values)
}

// TestConfigurationAgainstHTCondor reads, prints and evaluates the values in
// HTCondor's default configuration, most of which are expressions.
func TestConfigurationAgainstHTCondor(t *testing.T) {
	text, err := os.ReadFile("../testdata/classads/configuration.txt")
	if err != nil {
		t.Fatal(err)
	}
	ads := recordedAds(t)
	var queries []query
	for line := range strings.Lines(string(text)) {
		q := query{Expr: strings.TrimSpace(line), My: ads["machine"], Target: ads["job"]}
		if passes(t, q) {
			q.My, q.Target = "", ""
		}
		queries = append(queries, q)
	}
	if len(queries) == 0 {
		t.Fatal("no expressions")
	}
	compareAnswers(t, queries)
}

// passes tells whether the value of an expression depends on when it is evaluated.
func passes(t *testing.T, q query) bool {
	t.Helper()
	e, err := ParseExpr(q.Expr)
	if err != nil {
		return false
	}
	env := environment(t, q)
	var values [2]string
	for i := range values {
		env.Now = func() time.Time { return time.Unix(1800000000+int64(i)*12345, 0) }
		values[i] = e.Eval(env).String()
	}
	return values[0] != values[1]
}
