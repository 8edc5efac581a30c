package classads

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// htcondorFunctions are the functions that HTCondor 25.14 registers, in lower
// case (src/classad/fnCall.cpp:FunctionCall, src/condor_utils/
// compat_classad.cpp:registerClassadFunctions).
const htcondorFunctions = `abstime allcompare anycompare argstolist avg bool ceil ceiling countmatches currenttime daytime debug envv1tov2
eval evalineachcontext floor formattime getdayofmonth getdayofweek getdayofyear getdays gethours getminutes getmonth getseconds getyear
identicalmember ifthenelse int interval isabstime isboolean isclassad iserror isinteger islist isreal isreltime isstring isundefined
join listtoargs max member mergeenvironment min pow quantize random real regexp regexpmember regexps reltime replace replaceall round
size split splitslotname splittime splitusername strcat strcmp stricmp string stringlist_regexpmember stringlistavg stringlistimember
stringlistisubsetmatch stringlistmax stringlistmember stringlistmin stringlistsintersect stringlistsize stringlistsubsetmatch stringlistsum
substr sum time timezoneoffset tolower toupper unparse unresolved userhome usermap version_in_range versioncmp versioneq versionge
versiongt versionle versionlt`

func TestFunctionsAreHTCondors(t *testing.T) {
	want := strings.Fields(htcondorFunctions)
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(builtins))); diff != "" {
		t.Error(diff)
	}
	for name, b := range builtins {
		if b.name == "" || b.family == "" || b.summary == "" || !strings.HasPrefix(b.usage, b.name+"(") || b.eval == nil || len(name) > longestName {
			t.Errorf("%s lacks something: %+v", name, b)
		}
		unforeseeable := map[string]bool{"time": true, "currenttime": true, "daytime": true, "random": true}
		if _, ok := signatures[name]; !ok && !unforeseeable[name] {
			t.Errorf("the generator of expressions does not know %s", name)
		}
	}
}

// functionTable is the content of FUNCTIONS.md.
func functionTable() string {
	var b strings.Builder
	b.WriteString("# Built-in functions\n\nGenerated from the table in the code: `CLASSADS_UPDATE=1 go test -run TestFunctionTable ./classads`.\n")
	family := ""
	for _, f := range Functions() {
		if f.Family != family {
			family = f.Family
			b.WriteString("\n## " + strings.ToUpper(family[:1]) + family[1:] + "\n\n| Function | Result |\n|---|---|\n")
		}
		b.WriteString("| `" + strings.ReplaceAll(f.Usage, "|", `\|`) + "` | " + f.Summary + " |\n")
	}
	return b.String()
}

func TestFunctionTable(t *testing.T) {
	const file = "FUNCTIONS.md"
	if os.Getenv("CLASSADS_UPDATE") != "" {
		if err := os.WriteFile(file, []byte(functionTable()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(functionTable(), string(got)); diff != "" {
		t.Errorf("%s is not what the code says; CLASSADS_UPDATE=1 writes it anew:\n%s", file, diff)
	}
}

// TestInjected tests the functions that use the time, chance or users.
func TestInjected(t *testing.T) {
	zone := time.FixedZone("ZST", -5*3600)
	var traced []string
	env := Env{
		Now:    func() time.Time { return time.Date(2024, 2, 29, 13, 14, 15, 0, zone) },
		Random: func() float64 { return 0.75 },
		Site: &Site{
			UserHome: func(user string) (string, bool) {
				return "/home/" + user, user == "alice"
			},
			UserMap: func(name, user string, steps *int) (string, bool, error) {
				if name == "broken" {
					return "", false, errors.New("its search takes too long")
				}
				if name == "large" {
					return strings.Repeat("x", DefaultBytes/2), true, nil
				}
				return "first, Second,third", name == "groups" && user == "alice", nil
			},
		},
		Trace: func(line string) { traced = append(traced, line) },
	}
	for _, c := range []struct{ expr, want string }{
		{"time()", "1709230455"},
		{"CurrentTime", "undefined"}, // without an ad there are no special names
		{"currentTime()", `absTime("2024-02-29T13:14:15-05:00")`},
		{"absTime()", `absTime("2024-02-29T13:14:15-05:00")`},
		{"absTime(0)", `absTime("1969-12-31T19:00:00-05:00")`},
		{"dayTime()", `relTime("13:14:15")`},
		{"timeZoneOffset()", `relTime("-05:00:00")`},
		{"formatTime()", `"Thu Feb 29 13:14:15 2024"`},
		{`formatTime(time(),"%H:%M %Z %z %s")`, `"13:14 ZST +0000 1709230455"`},
		{"getHours(currentTime())", "13"},
		{"splitTime(time()).Offset", "-18000"},
		{"random()", "7.500000000000000E-01"},
		{"random(8)", "6"},
		{"random(8.0)", "6.000000000000000E+00"},
		{"isError(random(-1))", "error"}, // the evaluation as a whole fails
		{`userHome("alice")`, `"/home/alice"`},
		{`userHome("bob")`, "undefined"},
		{`userHome("bob","/tmp")`, `"/tmp"`},
		{`userHome(1)`, "error"},
		{`userHome()`, "error"},
		{`isError(userMap("broken","alice"))`, "error"}, // the evaluation as a whole fails
		{`size(userMap("large","alice"))`, strconv.Itoa(DefaultBytes / 2)},
		{`size(strcat(userMap("large","alice"), userMap("large","alice")))`, "error"},
		{`userMap("groups","alice")`, `"first, Second,third"`},
		{`userMap("groups","alice","second")`, `"Second"`},
		{`userMap("groups","alice","none")`, `"first"`},
		{`userMap("groups","bob","x")`, "undefined"},
		{`userMap("groups","bob","x","default")`, `"default"`},
		{`userMap(1,"bob")`, "undefined"},
		{`debug(1 + 1)`, "2"},
		{`debug("a" + 1)`, "error"},
	} {
		e, err := ParseExpr(c.expr)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Eval(env).String(); got != c.want {
			t.Errorf("%s is %s, want %s", c.expr, got, c.want)
		}
	}
	if diff := cmp.Diff([]string{"1 + 1 --> 2", `"a" + 1 --> error (arithmetic with something that is not a number)`}, traced); diff != "" {
		t.Error(diff)
	}
	env.My = NewAd()
	e, _ := ParseExpr("CurrentTime - 5")
	if got := e.Eval(env).String(); got != "1709230450" {
		t.Errorf("CurrentTime - 5 is %s", got)
	}
}
