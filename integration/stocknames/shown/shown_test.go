package shown

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/integration/conformance"
	"podstarter/integration/harness"
	"podstarter/integration/stocknames/cppnames"
)

func knob(text string) Name      { return Name{cppnames.Knob, text} }
func attribute(text string) Name { return Name{cppnames.Attribute, text} }

// TestCommands: pairs of commands and attributes, wherever condor_submit names them together.
func TestCommands(t *testing.T) {
	got := FindCommands(`#define SUBMIT_KEY_KillSig "kill_sig"
#define SUBMIT_KEY_Arguments1 "Arguments"
#define ATTR_KILL_SIG   "KillSig"
#define ATTR_ARGS "Args"
	{SUBMIT_KEY_KillSig, ATTR_KILL_SIG, f_as_string},
	submit_param( SUBMIT_KEY_KillSig , "KillSigToo" );
	submit_param(SUBMIT_KEY_Arguments1, ATTR_ARGS); submit_param(SUBMIT_KEY_Unknown, ATTR_ARGS); submit_param(SUBMIT_KEY_KillSig, ATTR_UNKNOWN);`)
	want := Commands{"kill_sig": {"KillSig", "KillSigToo"}, "arguments": {"Args", "Arguments"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	again, err := ParseCommands(got.Format("1.0"))
	if diff := cmp.Diff(want, again); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for text, want := range map[string]string{"a b\n": `line 1, "a b"`, "# x\na\t\n": `line 2, "a\t"`, "# nothing\n": "no commands"} {
		if _, err := ParseCommands(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestByCases: what a case sets, and what a subject sets for cases that pick it.
func TestByCases(t *testing.T) {
	subjects := []conformance.Subject{{
		Name: "s",
		Setup: conformance.Setup{
			Execute:  "PICKED = ifThenElse(MyWish =?= true, 1, 0)\nFOR_ALL = 1\nTELL_HOOK_PREPARE_JOB = x\nNAMED_ELSEWHERE = 1\n",
			Submit:   "SUBMIT_SIDE = 1\n",
			Programs: []harness.File{{Content: []byte(`echo 'HookWord = 1'`)}},
		},
		Cases: []conformance.Case{
			{Name: "one", Submit: "kill_sig = 3\n+MyWish = true\nMY.Direct = 1\n", Files: []harness.File{{Content: []byte("grep LookedAt ad; x=SET_WHERE; Err")}}},
			{Name: "two", Submit: "+HookKeyword = \"tell\"\n", Steps: []conformance.Step{{Words: "in the EP: SET_WHERE=1 NOT_SET; Out = 1"}}},
		},
	}}
	names := []Name{
		knob("PICKED"), knob("FOR_ALL"), knob("*_HOOK_*"), knob("SUBMIT_SIDE"), knob("SET_WHERE"), knob("NOT_SET"),
		attribute("KillSig"), attribute("Direct"), attribute("LookedAt"), attribute("Err"), attribute("Out"), attribute("HookWord"), attribute("HookKeyword"), attribute("Other"),
	}
	want := map[Name][]string{
		knob("PICKED"): {"s/one"}, knob("FOR_ALL"): {"s/"}, knob("*_HOOK_*"): {"s/two"}, knob("SET_WHERE"): {"s/two"},
		attribute("KillSig"): {"s/one"}, attribute("Direct"): {"s/one"}, attribute("LookedAt"): {"s/one"}, attribute("Out"): {"s/two"},
		attribute("HookWord"): {"s/"}, attribute("HookKeyword"): {"s/two"},
	}
	if diff := cmp.Diff(want, ByCases(subjects, Commands{"kill_sig": {"KillSig"}}, names)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestByTests: strings of tests, and of tables that one test alone uses.
func TestByTests(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "p/a_test.go", `package p
var table = []string{"TABLE_OF_ONE = 1"}
var shared = []string{"SHARED_BY_TWO = 1"}
func TestOne(t *T) { use(table, shared, map[string]string{"LOCK": "x", "KNOB_AS_KEY": "y"}, "In = 1", "Err") }
func TestTwo(t *T) { use(shared, "see ATTR_IN_TEXT and LookedAt") }
func helper() { use("ONLY_IN_HELPER") }
`)
	write(t, dir, "p/a.go", "package p\nconst x = \"NOT_IN_A_TEST\"\n")
	write(t, dir, "integration/conformance/x_test.go", "package x\nfunc TestOwn(t *T) { use(\"LEFT_OUT_HERE\") }\n")
	tests, err := Tests(dir)
	if err != nil {
		t.Fatal(err)
	}
	one, two := Test{"p", "TestOne"}, Test{"p", "TestTwo"}
	names := []Name{
		knob("TABLE_OF_ONE"), knob("SHARED_BY_TWO"), knob("LOCK"), knob("KNOB_AS_KEY"), knob("ATTR_IN_TEXT"), knob("ONLY_IN_HELPER"), knob("NOT_IN_A_TEST"), knob("LEFT_OUT_HERE"),
		attribute("In"), attribute("Err"), attribute("LookedAt"),
	}
	want := map[Name][]Test{
		knob("TABLE_OF_ONE"): {one}, knob("LOCK"): {one}, knob("KNOB_AS_KEY"): {one}, knob("ATTR_IN_TEXT"): {two}, attribute("In"): {one}, attribute("LookedAt"): {two},
	}
	if diff := cmp.Diff(want, ByTests(tests, names)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestReported: only what a starter sends in updates of a job.
func TestReported(t *testing.T) {
	dir := t.TempDir()
	names := []Name{attribute("ExitCode"), attribute("Nonce"), attribute("Received")}
	write(t, dir, "plain/01.jsonl", `{"Way":"out","Data":"··JobDuration = 1.0·ExitCode = 0·"}
{"Way":"out","Data":"··Nonce = 1·"}
{"Way":"in","Data":"··JobDuration = 1.0·Received = 0·"}
`)
	got, err := Reported(dir, names)
	if diff := cmp.Diff(map[Name]bool{attribute("ExitCode"): true}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := Reported(t.TempDir(), names); err == nil {
		t.Error("no recordings: no error")
	}
	write(t, dir, "plain/02.jsonl", "no JSON\n")
	if _, err := Reported(dir, names); err == nil || !strings.Contains(err.Error(), "02.jsonl, line 1") {
		t.Errorf("%v", err)
	}
}

// TestRows: what the book adds, and each way in which it can be wrong.
func TestRows(t *testing.T) {
	finder := func(b Book) Finder {
		return Finder{
			Subjects: []conformance.Subject{{Name: "s", Cases: []conformance.Case{{Name: "c", Submit: "+ByCase = 1\n"}}}},
			Tests:    map[Test][]string{{"p", "TestP"}: {"BY_TEST = 1"}, {"p", "TestBeside"}: {"BY_TEST = 1"}}, Book: b, Reported: map[Name]bool{attribute("Sent"): true},
		}
	}
	names := []Name{attribute("ByCase"), knob("BY_TEST"), attribute("Sent"), knob("BY_HAND"), knob("BESIDE"), knob("NOT_SHOWN")}
	byHand := Entry{Kind: cppnames.Knob, Names: []string{"BY_HAND"}, By: []string{"s/c", "s/", "p TestP"}}
	beside := Entry{Kind: cppnames.Knob, Names: []string{"BESIDE"}, By: []string{"p TestP", "p TestBeside"}}
	ours := Entry{Kind: cppnames.Knob, Names: []string{"BY_TEST"}, Why: "only here"}
	not := Entry{Kind: cppnames.Knob, Names: []string{"NOT_SHOWN"}, Why: "because"}
	good := Book{Shown: []Entry{byHand, beside}, Beside: []string{"p TestBeside"}, Ours: []Entry{ours}, Not: []Entry{not}}
	rows, err := finder(good).Rows(names)
	if err != nil {
		t.Error(err)
	}
	want := []Row{
		// That a test names it is not enough to count as one that shows it under both starters.
		{Name: names[0], Cases: []string{"s/c"}}, {Name: names[1], Tests: []Test{{"p", "TestBeside"}, {"p", "TestP"}}, Why: "only here"}, {Name: names[2], Cases: []string{EachCase}},
		{Name: names[3], Cases: []string{"s/", "s/c"}, Tests: []Test{{"p", "TestP"}}}, {Name: names[4], Beside: []Test{{"p", "TestBeside"}}, Tests: []Test{{"p", "TestP"}}},
		{Name: names[5], Why: "because"},
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !rows[0].Both() || !rows[4].Both() || rows[1].Both() || rows[5].Both() {
		t.Errorf("which are shown under both starters: %v", rows)
	}
	changed := func(change func(*Book)) Book {
		b := good
		b.Shown = slices.Clone(good.Shown)
		change(&b)
		return b
	}
	first := func(change func(*Entry)) Book {
		return changed(func(b *Book) { change(&b.Shown[0]) })
	}
	for name, tt := range map[string]struct {
		book Book
		want string
	}{
		"nothing":             {changed(func(b *Book) { b.Not = nil }), "knob NOT_SHOWN has a verdict that nothing shows"},
		"no such case":        {first(func(e *Entry) { e.By = []string{"s/d"} }), "there is no case s/d"},
		"no such subject":     {first(func(e *Entry) { e.By = []string{"t/"} }), "there is no case t/"},
		"no such test":        {first(func(e *Entry) { e.By = []string{"p TestQ"} }), "there is no test TestQ in p"},
		"no such test beside": {changed(func(b *Book) { b.Beside = append(b.Beside, "p TestR") }), "there is no test TestR in p, which is said to run the stock starter"},
		"shown by nothing":    {first(func(e *Entry) { e.By = nil }), "needs a case or a test"},
		"no reason":           {changed(func(b *Book) { b.Not = []Entry{{Kind: cppnames.Knob, Names: []string{"NOT_SHOWN"}}} }), "needs a reason"},
		"shown after all": {changed(func(b *Book) {
			b.Not = append([]Entry{{Kind: cppnames.Knob, Names: []string{"BY_TEST"}, Why: "x"}}, not)
		}), "BY_TEST is said to be shown by nothing, but there is TestBeside in p"},
		"ours without a reason": {changed(func(b *Book) { b.Ours = nil }), "knob BY_TEST is only shown by TestBeside in p, without the stock starter"},
		"not ours only": {changed(func(b *Book) {
			b.Ours = append([]Entry{{Kind: cppnames.Knob, Names: []string{"BESIDE"}, Why: "x"}}, ours)
		}), "BESIDE is said to be shown by our own tests only, but there is TestBeside in p"},
		"name that is none": {changed(func(b *Book) {
			b.Shown = append(b.Shown, Entry{Kind: cppnames.Knob, Names: []string{"ODD"}, By: []string{"s/c"}})
		}), "knob ODD is in the book, but"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := finder(tt.book).Rows(names); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
