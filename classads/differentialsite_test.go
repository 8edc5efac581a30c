//go:build differential

package classads

import (
	"math/rand/v2"
	"regexp"
	"testing"
)

// leadingZero is a number that only a strict HTCondor reads, and a semicolon between arguments
// one that only a lenient one does. Here both are read as by a lenient one.
var leadingZero = regexp.MustCompile(`\b0[0-9xX]|;`)

// TestStrictAgainstHTCondor compares evaluations with STRICT_CLASSAD_EVALUATION.
func TestStrictAgainstHTCondor(t *testing.T) {
	t.Setenv("_CONDOR_STRICT_CLASSAD_EVALUATION", "true")
	g := generator{rand.New(rand.NewPCG(*seed, 10))}
	var queries []query
	for range *count {
		pair := adPairs[g.r.IntN(len(adPairs))]
		expr := g.expr(g.r.IntN(4))
		if farTimes.MatchString(expr) || leadingZero.MatchString(expr) {
			continue
		}
		if leaks.MatchString(expr) {
			pair = adPairs[0]
		}
		queries = append(queries, query{Expr: expr, My: pair[0], Target: pair[1], Strict: true})
	}
	compareAnswers(t, queries)
}

// TestUserHomeAgainstHTCondor asks for accounts that every system has, where that is allowed and
// where not.
func TestUserHomeAgainstHTCondor(t *testing.T) {
	var queries []query
	for _, expr := range []string{
		`userHome("root")`, `userHome("root", "/tmp")`, `userHome("no such user")`, `userHome("no such user", "/tmp")`, `userHome("")`, `userHome(undefined)`, `userHome(undefined, "/tmp")`,
		`userHome(1)`, `userHome(1, "/tmp")`, `userHome("root", 1)`, `userHome(error)`, `userHome(error, "/tmp")`, `userHome("nobody", "")`, `userHome("root", error)`, `userHome("root", undefined)`,
	} {
		queries = append(queries, query{Expr: expr})
	}
	t.Run("off", func(t *testing.T) {
		t.Setenv("_CONDOR_CLASSAD_ENABLE_USER_HOME", "false")
		compareAnswers(t, queries)
	})
	t.Run("on", func(t *testing.T) {
		t.Setenv("_CONDOR_CLASSAD_ENABLE_USER_HOME", "true")
		for i := range queries {
			queries[i].Homes = map[string]string{"root": "/root", "nobody": "/nonexistent"}
		}
		compareAnswers(t, queries)
	})
}
