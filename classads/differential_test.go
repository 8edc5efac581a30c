//go:build differential

package classads

import (
	"bufio"
	"encoding/json"
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"podstarter/classads/usermap"
)

// The differential test needs HTCondor's Python bindings:
//
//	go test -tags differential -run TestAgainstHTCondor ./classads -args -python "chroot /path/of/htcondor python3"
var (
	pythonCommand = flag.String("python", "python3", "command that runs a Python with classad2 and htcondor2")
	count         = flag.Int("count-expressions", 20000, "number of generated expressions")
	seed          = flag.Uint64("seed", 1, "seed of the generator")
	record        = flag.Bool("record", false, "record HTCondor's answers for the default tests")
	show          = flag.Int("show", 40, "number of differences to print")
)

type query struct {
	Expr   string `json:"expr"`
	Old    string `json:"old,omitempty"`
	Long   string `json:"long,omitempty"`
	JSON   string `json:"json,omitempty"`
	My     string `json:"my,omitempty"`
	Target string `json:"target,omitempty"`

	Flatten bool `json:"flatten,omitempty"`

	Maps   *usermap.Maps     `json:"-"` // that HTCondor has in its configuration
	Strict bool              `json:"-"` // as it has it there
	Homes  map[string]string `json:"-"` // of its machine's users
}

type answer struct {
	Parse   bool   `json:"parse"`
	Print   string `json:"print"`
	Value   string `json:"value"`
	Problem string `json:"problem"`
}

// ask lets HTCondor answer all queries, in one process as long as that does not crash.
func ask(t *testing.T, queries []query) []answer {
	t.Helper()
	var answers []answer
	for len(answers) < len(queries) {
		answers = append(answers, askOnce(t, queries[len(answers):])...)
		if len(answers) < len(queries) {
			answers = append(answers, answer{Problem: "HTCondor's library crashed"})
			t.Logf("HTCondor's library crashes on %s", queries[len(answers)-1].Expr)
		}
	}
	return answers
}

func askOnce(t *testing.T, queries []query) []answer {
	t.Helper()
	script, err := os.ReadFile("../testdata/classads/oracle.py")
	if err != nil {
		t.Fatal(err)
	}
	words := append(strings.Fields(*pythonCommand), "-c", string(script))
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer in.Close()
		enc := json.NewEncoder(in)
		if enc.Encode(configured()) != nil {
			return
		}
		for _, q := range queries {
			if enc.Encode(q) != nil {
				return
			}
		}
	}()
	var answers []answer
	lines := bufio.NewReader(out)
	version, err := lines.ReadString('\n')
	if err != nil || !strings.HasPrefix(version, "HTCondor ") {
		t.Fatalf("%s says %q and not its version, %v: give a command that runs Python with HTCondor's bindings, by -args -python COMMAND", *pythonCommand, version, err)
	}
	t.Log(strings.TrimSpace(version))
	for range queries {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		var a answer
		if err := json.Unmarshal(line, &a); err != nil {
			t.Fatal(err)
		}
		answers = append(answers, a)
	}
	_ = cmd.Wait() // fails where the library crashed, which the answers tell
	return answers
}

// configured has the knobs that a test has set for HTCondor, by their variables.
func configured() map[string]string {
	knobs := map[string]string{}
	for _, entry := range os.Environ() {
		if name, value, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "_CONDOR_") {
			knobs[name] = value
		}
	}
	return knobs
}

// ours answers as the oracle does.
func ours(t *testing.T, q query) answer {
	if q.Old != "" {
		a, err := ParseOld(q.Old)
		if err != nil {
			return answer{Problem: err.Error()}
		}
		var out []byte
		for name, e := range a.Sorted().All() {
			out = append(appendLine(out, name, e.n, printer{old: true, sorted: true}), '\n')
		}
		return answer{Parse: true, Print: string(out), Value: string(jsonPrinter{sorted: true}.ad(nil, a, 0))}
	}
	e, err := ParseExpr(q.Expr)
	if err != nil {
		return answer{}
	}
	env := environment(t, q)
	if q.Flatten {
		return oursFlattened(e, env.My)
	}
	v := e.Eval(env)
	if v.kind == RelTime { // the bindings make a literal of the value
		v = RelTimeValue(float64(wholeSeconds(v)))
	}
	return answer{
		Parse: true,
		Print: string(e.n.append(nil, printer{sorted: true})),
		Value: string(appendValue(nil, v, printer{sorted: true})),
	}
}

// environment has the ads of a query.
func environment(t *testing.T, q query) Env {
	t.Helper()
	env := Env{My: NewAd(), Site: &Site{Strict: q.Strict}}
	if q.Maps != nil {
		env.Site.UserMap = q.Maps.Lookup
	}
	if q.Homes != nil {
		env.Site.UserHome = func(user string) (string, bool) {
			dir, ok := q.Homes[user]
			return dir, ok
		}
	}
	for _, ad := range []struct {
		text string
		to   **Ad
	}{{q.My, &env.My}, {q.Target, &env.Target}} {
		if ad.text == "" {
			continue
		}
		parse := ParseOld
		if strings.HasPrefix(ad.text, "[") {
			parse = ParseNew
		}
		var err error
		if *ad.to, err = parse(ad.text); err != nil {
			t.Fatalf("%s: %v", ad.text, err)
		}
	}
	return env
}

func oursFlattened(e *Expr, my *Ad) answer {
	names := func(list []string, err error) string {
		if err != nil {
			return "error"
		}
		return strings.Join(list, ",")
	}
	out := answer{Parse: true, Value: "error"}
	out.Print = names(my.ExternalReferences(e, true)) + " " + names(my.InternalReferences(e))
	ev := new(evaluator)
	if left, ok := ev.flatten(e.n, ev.start(&Env{My: my})); ok && left.tree == nil {
		out.Value = "value"
	} else if ok {
		out.Value = string(left.tree.append(nil, printer{sorted: true}))
	}
	return out
}

// unflattened are expressions with nested ads, whose names HTCondor looks up in
// the nested ad alone when the expression is not part of the ad, and with
// functions that make lists or ads, of which HTCondor cannot make constants; and
// values that the bindings cannot convert.
var unflattened = regexp.MustCompile(`(?i)\[ ['\w ]+ = |split|argsToList|&&|\|\||eval\(|\\303`)

// TestFlatteningAgainstHTCondor compares flattened expressions and references.
// Not those with && and ||: HTCondor's Flatten loses a constant where another
// is joined with such an operator, as in true && 1 + x, and does not let the
// first operand decide.
func TestFlatteningAgainstHTCondor(t *testing.T) {
	g := generator{rand.New(rand.NewPCG(*seed, 4))}
	var queries []query
	for range *count {
		expr := g.expr(1 + g.r.IntN(3))
		if !leaks.MatchString(expr) && !farTimes.MatchString(expr) && !unflattened.MatchString(expr) {
			queries = append(queries, query{Expr: expr, My: adPairs[g.r.IntN(2)][0], Flatten: true})
		}
	}
	compareAnswers(t, queries)
}

func compareAnswers(t *testing.T, queries []query) {
	t.Helper()
	answers := ask(t, queries)
	differ, problems, leaked, kinds := 0, 0, 0, map[string]int{}
	for i, theirs := range answers {
		if theirs.Problem != "" {
			problems++
			continue
		}
		mine := ours(t, queries[i])
		kinds[kindOf(theirs)]++
		if mine == theirs || mine.Print == theirs.Print && nearly(queries[i].Expr, mine.Value, theirs.Value) {
			continue
		}
		if leaks.MatchString(queries[i].Expr) {
			leaked++
			continue
		}
		if differ++; differ <= *show {
			t.Errorf("%s\n   my %s\n   target %s\n   HTCondor %+v\n   ours     %+v", queries[i].Expr, queries[i].My, queries[i].Target, theirs, mine)
		}
	}
	if problems > len(queries)/10 {
		t.Errorf("HTCondor's bindings have no answer to %d of %d expressions", problems, len(queries))
	}
	t.Logf("%d expressions, %d differences, %d more where HTCondor leaves its scope, %d that its bindings cannot answer; results of HTCondor: %v",
		len(queries), differ, leaked, problems, kinds)
}

// nearly reports whether a value is pow's and differs only in its last digit: the C library's pow is not always
// the nearest double, ours is.
func nearly(expr, a, b string) bool {
	x, errA := strconv.ParseFloat(a, 64)
	y, errB := strconv.ParseFloat(b, 64)
	return errA == nil && errB == nil && strings.Contains(expr, "pow(") && math.Abs(x-y) <= 1e-14*math.Abs(x)
}

func kindOf(a answer) string {
	switch {
	case !a.Parse:
		return "syntax error"
	case a.Value == "error" || a.Value == "undefined" || a.Value == "true" || a.Value == "false":
		return a.Value
	case strings.HasPrefix(a.Value, `"`):
		return "string"
	case strings.HasPrefix(a.Value, "{"):
		return "list"
	case strings.HasPrefix(a.Value, "["):
		return "ad"
	case strings.HasPrefix(a.Value, "absTime"):
		return "time"
	}
	return "number"
}

// leaks are the functions after which HTCondor continues in the ad in which it looked up their first argument: in
// a match, what it evaluates then means another ad. This package does not do that.
var leaks = regexp.MustCompile(`(?i)evalInEachContext|countMatches|unresolved`)

// farTimes are times whose year does not fit in C's struct tm: HTCondor reads
// memory that nobody has written.
var farTimes = regexp.MustCompile(`(?i)(time|get\w+)\(.*922337203685477580`)

func TestAgainstHTCondor(t *testing.T) {
	g := generator{rand.New(rand.NewPCG(*seed, 0))}
	var queries []query
	for range *count {
		pair := adPairs[g.r.IntN(len(adPairs))]
		expr := g.expr(g.r.IntN(4))
		if farTimes.MatchString(expr) {
			continue
		}
		if leaks.MatchString(expr) {
			pair = adPairs[0]
		}
		queries = append(queries, query{Expr: expr, My: pair[0], Target: pair[1]})
	}
	compareAnswers(t, queries)
}

// TestOldSyntaxAgainstHTCondor reads lines of the old syntax and prints them in
// it and as JSON.
func TestOldSyntaxAgainstHTCondor(t *testing.T) {
	g := generator{rand.New(rand.NewPCG(*seed, 1))}
	var queries []query
	for range *count {
		expr := g.expr(g.r.IntN(4))
		if strings.Contains(strings.ToLower(expr), `time("`) {
			continue // the bindings convert times to Python's and back
		}
		queries = append(queries, query{Old: g.pick("Name = ", "Name=", " Name  =  ") + expr + "\n"})
	}
	differ, tails := 0, 0
	for i, theirs := range ask(t, queries) {
		mine := ours(t, queries[i])
		switch {
		case theirs.Problem != "":
			continue
		case theirs == mine:
			if mine.Parse {
				readsJSON(t, queries[i].Old, theirs.Value)
			}
			continue
		case !theirs.Parse && !mine.Parse:
			continue
		case theirs.Parse && strings.Contains(mine.Problem, "expected the end"):
			tails++ // HTCondor ignores what follows an expression
			continue
		}
		if differ++; differ <= *show {
			t.Errorf("%q\n   HTCondor %+v\n   ours     %+v", queries[i].Old, theirs, mine)
		}
	}
	t.Logf("%d lines, %d differences, %d with text after the expression", len(queries), differ, tails)
}

// readsJSON fails unless HTCondor's JSON of an ad is read as its text in the new
// syntax is: as an equal ad.
func readsJSON(t *testing.T, old, theirs string) {
	t.Helper()
	a, err := ParseOld(old)
	if err != nil {
		t.Fatal(err)
	}
	want, err := ParseNew(a.FormatNew())
	if err != nil {
		t.Fatal(err)
	}
	var got Ad
	if err := json.Unmarshal([]byte(theirs), &got); err != nil {
		t.Errorf("HTCondor's JSON %s: %v", theirs, err)
	} else if !got.Equal(want) {
		t.Errorf("HTCondor's JSON %s is read as %s, want %s", theirs, &got, want)
	}
}

// TestExpressionsAgainstHTCondor compares the expressions written by hand.
func TestExpressionsAgainstHTCondor(t *testing.T) {
	compareAnswers(t, handWritten(t))
}

func handWritten(t *testing.T) []query {
	t.Helper()
	text, err := os.ReadFile("../testdata/classads/expressions.txt")
	if err != nil {
		t.Fatal(err)
	}
	var queries []query
	for line := range strings.Lines(string(text)) {
		expr := strings.TrimSuffix(line, "\n")
		for _, pair := range adPairs[:2] {
			if pair[1] == "" || !leaks.MatchString(expr) {
				queries = append(queries, query{Expr: expr, My: pair[0], Target: pair[1]})
			}
		}
	}
	return queries
}

// TestRecord writes HTCondor's answers for TestRecordedAnswers.
func TestRecord(t *testing.T) {
	if !*record {
		t.Skip("recording needs -record")
	}
	queries := handWritten(t)
	g := generator{rand.New(rand.NewPCG(*seed, 3))}
	for range 500 {
		expr := g.expr(1 + g.r.IntN(3))
		pair := adPairs[g.r.IntN(2)]
		if !leaks.MatchString(expr) && !farTimes.MatchString(expr) && !strings.Contains(expr, "pow(") {
			queries = append(queries, query{Expr: expr, My: pair[0], Target: pair[1]})
		}
	}
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	for i, a := range ask(t, queries) {
		pair := slices.IndexFunc(adPairs, func(p [2]string) bool { return p[0] == queries[i].My })
		if a.Problem != "" {
			continue
		}
		if err := enc.Encode(recording{queries[i].Expr, pair, a.Print, a.Value}); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(recordings, []byte(out.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
