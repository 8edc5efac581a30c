package cppnames

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// found are the names in the sources, one in each line.
func found(sources ...Source) []string {
	var lines []string
	for _, n := range Find(sources, func(name string) bool { return strings.HasPrefix(name, "jobs/") }) {
		line := fmt.Sprintf("%s %s: %s", n.Kind, n.Text, strings.Join(n.Files, " "))
		if n.Windows {
			line += ", windows"
		}
		lines = append(lines, line)
	}
	return lines
}

// knobsOf are the names of knobs in one file's code.
func knobsOf(code string) []string {
	var names []string
	for _, n := range Find([]Source{{"a.cpp", code}}, func(string) bool { return false }) {
		text := n.Text
		if n.Kind != Knob {
			text = string(n.Kind) + " " + text
		}
		if n.Windows {
			text += " (windows)"
		}
		names = append(names, text)
	}
	return names
}

// TestKnobs: each way of naming a knob.
func TestKnobs(t *testing.T) {
	for name, tt := range map[string]struct {
		code string
		want []string
	}{
		"a literal": {`void f() { int n = param_integer("TEA_COUNT", 3, 0); bool b = param_boolean("TEA_HOT", true); char *c = param("TEA_KIND"); }`,
			[]string{"TEA_COUNT", "TEA_HOT", "TEA_KIND"}},
		"into a string":          {`void f() { std::string s; if (param(s, "TEA_KIND", "green")) {} param_eval_string(s, "TEA_EXPR", "", ad); }`, []string{"TEA_EXPR", "TEA_KIND"}},
		"one default in another": {`int f() { return param_integer("TEA_NEW", param_integer("TEA_OLD", 3)); }`, []string{"TEA_NEW", "TEA_OLD"}},
		"literals in a row":      {`void f() { param("TEA_" /* both */ "KIND"); }`, []string{"TEA_KIND"}},
		"a macro":                {"#define KNOB \"TEA_KIND\"\nvoid f() { param(KNOB); param(\"MY_\" KNOB); }", []string{"MY_TEA_KIND", "TEA_KIND"}},
		"a constant":             {`static const char * const knob = "TEA_KIND"; const char other[] = "TEA_POT"; void f() { param(knob); param(other); }`, []string{"TEA_KIND", "TEA_POT"}},
		"a variable":             {`void f() { const char *n; n = hot ? "TEA_HOT" : "TEA_COLD"; param(n); }`, []string{"TEA_COLD", "TEA_HOT"}},
		"a format":               {`void f(int i) { std::string n; formatstr(n, "TEA_%s_POT%d", kind(i), i); param(n.c_str()); }`, []string{"TEA_*_POT*"}},
		"a format with literals": {`void f() { char n[90]; const char *k = "GREEN"; snprintf(n, sizeof(n), "TEA_%s", k); param(n); }`, []string{"TEA_GREEN"}},
		"added parts":            {`void f(const std::string & pot) { std::string n = "TEA_"; n += pot; n += "_KIND"; param(n.c_str()); }`, []string{"TEA_*_KIND"}},
		"sums":                   {`void f() { std::string n("TEA"); param(("MY_" + n + "_KIND").c_str()); }`, []string{"MY_TEA_KIND"}},
		"a table":                {`const char *all[] = {"TEA_A", "TEA_B"}; void f() { for (const char *n : all) { param(n); } param(all[2]); }`, []string{"TEA_A", "TEA_B"}},
		"the daemon's name": {`void f() { std::string n; formatstr(n, "%s_TEA", get_mySubSystem()->getName()); param(n.c_str()); }`,
			[]string{"<SUBSYS>_TEA"}},
		"a function that passes it on": {`
			bool tea(Ad *ad, const char *name) { return param_boolean(name, false); }
			bool more(const char *knob) { return tea(0, knob); }
			void f() { tea(ad, "TEA_A"); more("TEA_B"); }`, []string{"TEA_A", "TEA_B"}},
		"a part that is passed on":   {`void tea(const char *pot) { std::string n = std::string("TEA_") + pot; param(n.c_str()); }  void f() { tea("BLUE"); }`, []string{"TEA_*", "TEA_BLUE"}},
		"a part beside another":      {`void tea(Pot *p, const char *kind) { std::string n; formatstr(n, "%s_%s", p->name, kind); param(n.c_str()); }  void f() { tea(p, "BLUE"); }`, []string{"*_BLUE"}},
		"a macro that passes it on":  {"#define TEA(x) param_boolean(#x, false)\nvoid f() { TEA(TEA_HOT); }", []string{"TEA_HOT"}},
		"a function that returns it": {`const char *kind() { return "TEA_KIND"; } void f() { param(kind()); }`, []string{"TEA_KIND"}},
		"in a configured text":       {`void f() { char *p = expand_param("$(TEA_DIR)/pots"); }`, []string{"TEA_DIR"}},
		"a name that is not known":   {`void Pot::f(Pot *p) { param(p->next(3)); }`, []string{"unknown a.cpp:f"}},
		"methods and initialisers": {`namespace x { class Pot { Pot() : n(0), m(param_integer("TEA_M")) { n = param_integer("TEA_N"); } ~Pot() { param_true("TEA_X"); } }; }`,
			[]string{"TEA_M", "TEA_N", "TEA_X"}},
		"comments and what is left out": {"// param(\"NO\")\n/* param(\"NO\") */\n#if 0\nint a = param_integer(\"NO\");\n#else\nint b = param_integer(\"TEA\");\n#endif\nconst char *s = \"param(\\\"NO\\\")\";", []string{"TEA"}},
		"declarations":                  {`char *param(const char *name); bool param(std::string &buf, char const *name, char const *other = NULL);`, nil},
		"for Windows": {"#ifdef WIN32\nint a = param_integer(\"TEA_W\");\n#else\nint b = param_integer(\"TEA_U\");\n#endif\n#if !defined(WIN32)\nint c = param_integer(\"TEA_V\");\n#endif\n#ifndef WINDOWS\n#else\nint d = param_integer(\"TEA_W2\");\n#endif",
			[]string{"TEA_U", "TEA_V", "TEA_W (windows)", "TEA_W2 (windows)"}},
		"a raw literal":     {"void f() { log(R\"x(param(\"NO\"))x\"); param(\"TEA\"); }", []string{"TEA"}},
		"quotes and digits": {"int f() { char c = '\"'; long n = 1'000'000; return param_integer(\"TEA\"); }", []string{"TEA"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, knobsOf(tt.code)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestAttributes: what is looked up counts, what is only set does not.
func TestAttributes(t *testing.T) {
	header := Source{"attributes.h", "#define ATTR_TEA_KIND \"TeaKind\"\n#define ATTR_TEA_SIZE \"TeaSize\"\n#define ATTR_TEA_POT  \"TeaPot\"\n"}
	got := found(header,
		Source{"jobs/a.cpp", `void f(ClassAd *ad) {
			ad->LookupString(ATTR_TEA_KIND, s); ad->LookupInteger("TeaCups", n);
			ad->Assign(ATTR_TEA_SIZE, 3); ad->Assign("TeaColour", ATTR_TEA_POT);
			std::string a; formatstr(a, "Tea%s", what); ad->LookupBool(a, b); ad->LookupBool(ATTR_TEA_UNKNOWN, b); }`},
		Source{"jobs/b.cpp", "#ifdef WIN32\nvoid f() { ad->Lookup(ATTR_TEA_SIZE); }\n#endif\nvoid g() { ad->Lookup(ATTR_TEA_KIND); }"},
		Source{"other.cpp", `void f() { ad->LookupString("NotAJob", s); }`})
	want := []string{
		"attribute ATTR_TEA_UNKNOWN: jobs/a.cpp",
		"attribute Tea*: jobs/a.cpp",
		"attribute TeaCups: jobs/a.cpp",
		"attribute TeaKind: jobs/a.cpp jobs/b.cpp",
		"attribute TeaPot: jobs/a.cpp",
		"attribute TeaSize: jobs/b.cpp, windows",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestBounds: variables that name themselves, and choices without end, end.
func TestBounds(t *testing.T) {
	loop := `void f() { std::string a; std::string b; a = b; b = a; param(a); const char *all[] = {` + strings.Repeat(`"X",`, 3) + `}; }`
	if diff := cmp.Diff([]string{"unknown a.cpp:f"}, knobsOf(loop)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var table strings.Builder
	for i := range 2 * mostChoices {
		fmt.Fprintf(&table, "\"T%d\",", i)
	}
	if diff := cmp.Diff([]string{"TEA_*"}, knobsOf(`const char *all[] = {`+table.String()+`}; void f() { std::string n; formatstr(n, "TEA_%s", all[i]); param(n); }`)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// FuzzFind: whatever a file has, the scanner comes to an end.
func FuzzFind(f *testing.F) {
	for _, s := range []string{"", "#define", "#define A(", "\"", "'", "R\"(", "/*", "void f(a, b) { param(", "#if 0\n#else\n#endif\n#endif", "{{{(((", "}})", "a = { \"x\" } ? : +", "é param(é)", "\\\n", "#/*\n"} {
		f.Add(s)
	}
	f.Fuzz(func(_ *testing.T, code string) {
		Find([]Source{{"a.cpp", code}}, func(string) bool { return true })
	})
}
