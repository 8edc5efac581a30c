package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/integration/stocknames/cppnames"
)

// TestReleases: a source becomes a list, and two lists a difference.
func TestReleases(t *testing.T) {
	source, into := t.TempDir(), t.TempDir()
	lists := filepath.Join(into, "releases")
	if err := os.Mkdir(lists, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, d := range directories {
		if err := os.MkdirAll(filepath.Join(source, "src", d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(source, "src", filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	recorded := func(release string) []cppnames.Name {
		t.Helper()
		if err := record(source, lists, release); err != nil {
			t.Fatal(err)
		}
		names, err := readRelease(lists, release)
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	write("condor_utils/param_info.in", "[OLD]\n")
	for _, f := range alsoFiles {
		write(f, "")
	}
	write("condor_utils/submit_utils.cpp", `void f() { param("COMMAND"); submit_param(SUBMIT_KEY_Cup, ATTR_TEA); }`)
	write("condor_utils/submit_utils.h", "#define SUBMIT_KEY_Cup \"cup\"\n")
	write("condor_includes/condor_attributes.h", "#define ATTR_TEA \"Tea\"\n")
	write("condor_utils/x_test.cpp", `void f() { param("TEST"); }`)
	write("condor_utils/x.cpp", "#ifdef WIN32\nvoid f() { param(\"WIN\"); }\n#endif\nvoid f() { ad->Lookup(\"NotOfAJob\"); param(\"OLD\"); }")
	write("condor_starter.V6.1/y.cpp", `void f() { ad->LookupString("Tea", s); param("BOTH"); param(next()); }`)
	before := recorded("1.9")
	write("condor_utils/x.cpp", `void f() { param("NEW"); param("BOTH"); }`)
	after := recorded("1.10")
	want := "new: 1\n  knob NEW (condor_utils/x.cpp)\ngone: 2\n  knob OLD (condor_utils/x.cpp)\n  knob WIN (condor_utils/x.cpp)\n"
	if got := difference(before, after); got != want {
		t.Errorf("the difference is\n%swant\n%s", got, want)
	}
	text, err := os.ReadFile(filepath.Join(lists, "1.9.txt"))
	if err != nil {
		t.Fatal(err)
	}
	_, text1, _ := strings.Cut(string(text), "1.9\n")
	if diff := cmp.Diff("attribute\tTea\tcondor_starter.V6.1/y.cpp\nknob\tBOTH\tcondor_starter.V6.1/y.cpp\nknob\tOLD\tcondor_utils/x.cpp\n"+
		"knob\tWIN\twindows condor_utils/x.cpp\nunknown\tcondor_starter.V6.1/y.cpp:f\tcondor_starter.V6.1/y.cpp\n", text1); diff != "" {
		t.Errorf("the list (-want +got):\n%s", diff)
	}
	commands, err := os.ReadFile(filepath.Join(into, commandsFile))
	if err != nil || !strings.HasSuffix(string(commands), "\ncup\tTea\n") {
		t.Errorf("the commands are %q, %v", commands, err)
	}
	all, err := readReleases(lists)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"1.10", "1.9"}, newestFirst(all)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestSourceThatIsNone: an error says what -source has to be.
func TestSourceThatIsNone(t *testing.T) {
	if _, err := sourcesIn(t.TempDir()); err == nil || !strings.Contains(err.Error(), "-source is the directory above src/") {
		t.Errorf("%v", err)
	}
}

// TestListsThatAreNone: a line in another form is named.
func TestListsThatAreNone(t *testing.T) {
	for text, want := range map[string]string{
		"knob\tA\n":        `x:1: "knob\tA" is not KIND, NAME and FILES`,
		"# a\nknob\tA\t\n": `x:2: "knob\tA\t" is not KIND, NAME and FILES`,
	} {
		if _, err := parseRelease("x", text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
