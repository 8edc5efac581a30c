package usermap

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const manySteps = 1 << 20

// look is what a map answers, "-" for nothing.
func look(m *Maps, name, user string) string {
	steps := manySteps
	groups, found, err := m.Lookup(name, user, &steps)
	switch {
	case err != nil:
		return "error: " + err.Error()
	case !found:
		return "-"
	}
	return groups
}

func parse(t *testing.T, text string, o Options) *Maps {
	t.Helper()
	m, problems, err := Parse("text", text, o)
	if err != nil || len(problems) > 0 {
		t.Fatalf("%v, %v", err, problems)
	}
	maps := &Maps{}
	maps.Add("Groups", m)
	return maps
}

func TestLookup(t *testing.T) {
	m := parse(t, strings.Join([]string{
		"# comment", "", "  \t",
		"* alice physics,chemistry",
		"* alice later",
		`*	"bob the builder"	"builders, others"`,
		`* /^(.+)@site\.org$/i \1,visitors`,
		"* carol@site.org never",
		"X alice only-x more is ignored",
		`* "/a/path" paths`,
		`* /^\/x\/(a*)(b)?(c)?/U x\1\2\3\0\9\y`,
		`* /(a|b)+c\1/ back`,
	}, "\n"), Options{})
	got := map[string]string{}
	want := map[string]string{
		"groups alice": "physics,chemistry", "GROUPS alice": "physics,chemistry", "groups Alice": "-", "other alice": "-", "groups ": "-",
		"groups bob the builder": "builders, others", "groups Dan@SITE.org": "Dan,visitors", "groups carol@site.org": "carol,visitors",
		"groups.x alice": "only-x", "groups.X bob the builder": "-", "groups.* alice": "physics,chemistry", "groups. alice": "-",
		"groups /a/path": "paths", "groups /x/aab": `x\2\3/x/\9\y`, "groups abcb": "back", "groups abca": "-",
	}
	for query := range want {
		name, user, _ := strings.Cut(query, " ")
		got[query] = look(m, name, user)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestPrefix(t *testing.T) {
	m := parse(t, "* /home/ users\n* /home/alice alice\n* /home/alice later\n* /tmp/(x) tmp\\0\n", Options{Prefix: true})
	for user, want := range map[string]string{"/home/bob": "users", "/home/alice/x": "alice", "/home/alice": "alice", "/home": "-", "/tmp/(x)y": "tmp/tmp/(x)", "/tmp/x": "-"} {
		if got := look(m, "groups", user); got != want {
			t.Errorf("%s: %s, want %s", user, got, want)
		}
	}
}

func TestProblems(t *testing.T) {
	m, problems, err := Parse("text", "* a\n*\n* /(/ x\n* \"open x\n@include\n@include none.map\n* good x\n", Options{})
	if err != nil {
		t.Fatal(err)
	}
	var at []string
	for _, p := range problems {
		at = append(at, strings.Join(strings.SplitN(p.Error(), ":", 3)[:2], ":"))
	}
	if diff := cmp.Diff([]string{"text:1", "text:2", "text:3", "text:4", "text:5", "text:6"}, at); diff != "" {
		t.Errorf("%v\n%s", problems, diff)
	}
	steps := manySteps
	if got, _, _ := m.Lookup("*", "good", &steps); got != "x" {
		t.Errorf("what is right counts: %q", got)
	}
	if _, problems, _ = Parse("text", strings.Repeat("*\n", 1000), Options{}); len(problems) != maxProblems {
		t.Errorf("%d problems", len(problems))
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("more/b", "* b b,more\n@include again\n")
	write("more/a", "* a first\n* b hidden\n")
	write("more/a~", "* c skipped\n")
	write("more/deeper/c", "* c deeper\n")
	write("one", "* one 1\n")
	main := write("main", "@include more\n@include one\n@include "+filepath.Join(dir, "none")+"\n@include pipe\n* a late\n")
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	m, problems, err := Read(main, Options{Prefix: true, Skip: regexp.MustCompile(`~$`)})
	if err != nil {
		t.Fatal(err)
	}
	maps := &Maps{}
	maps.Add("m", m)
	for user, want := range map[string]string{"a": "first", "b": "hidden", "c": "-", "one": "1", "one more": "-"} {
		if got := look(maps, "m", user); got != want {
			t.Errorf("%s: %s, want %s", user, got, want)
		}
	}
	text := fmt.Sprint(problems)
	if len(problems) != 3 || !strings.Contains(text, "more/b:2") || !strings.Contains(text, "none") || !strings.Contains(text, "not a regular file") {
		t.Errorf("%d: %s", len(problems), text)
	}
	for _, path := range []string{filepath.Join(dir, "none"), filepath.Join(dir, "pipe"), dir} {
		if m, _, err := Read(path, Options{}); err == nil || m != nil {
			t.Errorf("%s can be read", path)
		}
	}
}

func TestBounds(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large")
	if err := os.WriteFile(large, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, maxBytes+1); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Read(large, Options{}); err == nil || !strings.Contains(err.Error(), "bytes") {
		t.Errorf("a large file: %v", err)
	}
	for what, text := range map[string]string{
		"lines":           strings.Repeat("\n", maxLines+1),
		"bytes":           strings.Repeat(" ", maxBytes+1),
		"bytes ":          "@include " + large,
		"memory":          strings.Repeat("* /"+strings.Repeat("a", 60000)+"/ x\n", 200),
		"than 1000 files": strings.Repeat("@include "+dir+"/none\n", maxFiles+1),
	} {
		if _, _, err := Parse("text", text, Options{}); err == nil || !strings.Contains(err.Error(), strings.TrimSpace(what)) {
			t.Errorf("%s: %.200v", what, err)
		}
	}
	m := parse(t, "* /(.*)/ "+strings.Repeat(`\1`, 1000)+"\n* x y\n", Options{})
	if got := look(m, "groups", strings.Repeat("x", 2000)); !strings.Contains(got, errLong.Error()) {
		t.Errorf("a long result: %.200s", got)
	}
	slow := parse(t, "* /(a*)*b$/ x\n", Options{})
	if got := look(slow, "groups", strings.Repeat("a", 200)+"bc"); !strings.HasPrefix(got, "error") {
		t.Errorf("a slow search: %s", got)
	}
	prefixes := parse(t, "* "+strings.Repeat("a", 100000)+"b x\n", Options{Prefix: true})
	if got := look(prefixes, "groups", strings.Repeat("a", 100000)); !strings.HasPrefix(got, "error") {
		t.Errorf("many beginnings: %s", got)
	}
}

// FuzzMap: no map and no name leads to a panic or takes long, and names are found as they are written.
func FuzzMap(f *testing.F) {
	f.Add("* alice a,b\n* /^(.)(.*)$/iU \\2,\\1\n", "*", "alice", false)
	f.Add("@include x\n* \"a b\" \"c\\\"d\"\n#x\n", "", "a b", true)
	f.Add("* /(a*)*$/ \\1\\\\", "*", strings.Repeat("a", 30), false)
	f.Fuzz(func(t *testing.T, text, method, user string, prefix bool) {
		if strings.Contains(text, "@include") {
			return // reads files
		}
		m, problems, err := Parse("text", text, Options{Prefix: prefix})
		if err != nil {
			if m != nil {
				t.Error("an error and a map")
			}
			return
		}
		if len(problems) > maxProblems {
			t.Errorf("%d problems", len(problems))
		}
		steps := manySteps
		groups, found, err := m.Lookup(method, user, &steps)
		if found && err != nil || !found && groups != "" || len(groups) > maxResult {
			t.Errorf("%q, %t, %v", groups, found, err)
		}
		if user != "" && !strings.ContainsAny(user, "\"\\\n") {
			m, _, err := Parse("text", "* \""+user+"\" it\n"+text, Options{})
			if err != nil {
				return
			}
			steps := manySteps
			if got, found, err := m.Lookup("*", user, &steps); got != "it" || !found || err != nil {
				t.Errorf("%q: %q, %t, %v", user, got, found, err)
			}
		}
	})
}
