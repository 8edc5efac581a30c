//go:build differential

package classads

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"podstarter/classads/usermap"
)

// TestUserMapsAgainstHTCondor compares maps of lines put together by chance.
func TestUserMapsAgainstHTCondor(t *testing.T) {
	const count = 300
	r := rand.New(rand.NewPCG(*seed, 9))
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	var names []string
	var maps usermap.Maps
	for i := range count {
		name := fmt.Sprintf("m%d", i)
		names = append(names, name)
		prefix := r.IntN(4) == 0
		var lines []string
		for range 1 + r.IntN(6) {
			lines = append(lines, mapLine(pick))
		}
		text := strings.Join(lines, "\n")
		one, _, err := usermap.Parse(name, text, usermap.Options{Prefix: prefix})
		if err != nil {
			t.Fatal(err)
		}
		maps.Add(name, one)
		t.Setenv("_CONDOR_CLASSAD_USER_MAPDATA_"+name, text)
		if prefix {
			t.Setenv("_CONDOR_CLASSAD_USER_MAP_PREFIX_"+name, "true")
		}
	}
	t.Setenv("_CONDOR_TOOL_CLASSAD_USER_MAP_NAMES", strings.Join(names, ", "))
	var queries []query
	for range 20 * count {
		name := pick(names...)
		if r.IntN(3) == 0 {
			name = strings.ToUpper(name)
		}
		name += pick("", "", "", ".*", ".METHOD", ".method", ".none", ".a.b")
		user := pick("alice", "Alice", "al", "a b", "alice@site.org", "bob", "", `\"bob`, "/x/y", "x/y", "bobalice", "a\\\\b", "/^a")
		args := pick("", "", `, "two"`, `, "TWO"`, ", undefined", `, "none", "default"`, `, undefined, "default"`, `, 1, 2`, ", error, 1")
		queries = append(queries, query{Expr: fmt.Sprintf(`userMap("%s", "%s"%s)`, name, user, args), Maps: &maps})
	}
	for _, expr := range []string{`userMap(undefined, "a")`, `userMap(1, "a")`, `userMap("m1", error)`, `userMap("m1", 2, 3, 4)`, `userMap("m1")`, `userMap("m1", "a", "b", "c", "d")`, `userMap("nomap", "alice", "x", error)`} {
		queries = append(queries, query{Expr: expr, Maps: &maps})
	}
	compareAnswers(t, queries)
}

// mapLine is a line of a map, often a wrong one.
func mapLine(pick func(...string) string) string {
	field := func() string {
		return pick("alice", "Alice", "al", "bob", `"a b"`, `"\"bob"`, "/^a/", "/ALICE/i", "/b/iU", `/^(.)(.*)$/`, `/^(a+)(l)?(z)?/`, `/(a.*)i/U`, `/x\/y/`, "/x/y", `"x/y"`, "/(/", `"a b`, "/a b/", `/a\\b/`, `a\\b`, `//`, `""`, `/.+/xi`, "x/y", `/^$/`, `/(?<=b)a/`)
	}
	becomes := pick("one,two", "one, two", `"one, two"`, `\1,two`, `\0`, `\1\2\3`, `\9\x`, `" two , one "`, `","`, `"a\"b"`, `"a\\1"`, `"open`, "#x")
	line := pick("*", "*", "*", "METHOD", "Method", `"*"`, "#", "a.b", "a") + pick(" ", "\t", "  ") + field() + pick(" ", "\t ") + becomes + pick("", "", " more", " ")
	return pick("", "", " ") + pick(line, line, line, line, "", "*", "* alice", "#"+line)
}
