package shell

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	lookup := func(name string) string { return map[string]string{"A": "one two", "B": "b*", "HOME": "/home"}[name] }
	dir := t.TempDir()
	for _, name := range []string{"f1", "f2", "g[x"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	for _, tt := range []struct {
		line string
		want [][]string
	}{
		{"", nil},
		{"ls -l /tmp", [][]string{{"ls", "-l", "/tmp"}}},
		{`echo 'a  b' "c $A" d\ e`, [][]string{{"echo", "a  b", "c one two", "d e"}}},
		{`echo $A "$B" ${A}x $ $1`, [][]string{{"echo", "one", "two", "b*", "one", "twox", "$", "$1"}}},
		{"echo f* '*' \\* x*", [][]string{{"echo", "f1", "f2", "*", "*", "x*"}}},
		{`echo g\[*`, [][]string{{"echo", "g[x"}}},
		{"a; b && c || d\n# comment\ne # more", [][]string{{"a"}, {"b"}, {"c"}, {"d"}, {"e"}}},
		{"echo ~ ~/x a~", [][]string{{"echo", "/home", "/home/x", "a~"}}},
		{`echo ""`, [][]string{{"echo", ""}}},
	} {
		all, err := parse(tt.line, lookup)
		if err != nil {
			t.Errorf("%q: %v", tt.line, err)
			continue
		}
		var words [][]string
		for _, c := range all {
			words = append(words, c.words)
		}
		if diff := cmp.Diff(tt.want, words); diff != "" {
			t.Errorf("%q: %s", tt.line, diff)
		}
	}
	for _, line := range []string{"ls | wc", "ls > x", "a &", "echo `x`", "echo $(x)", "'open", `"open`, "${x", "${A:-b}", "&& x", "a &&", "a && ; b", `x\`, strings.Repeat("x", maxLine+1)} {
		if all, err := parse(line, lookup); err == nil {
			t.Errorf("%.20q: %v", line, all)
		}
	}
}

// FuzzParse: any line is parsed or refused; no result is larger than it.
func FuzzParse(f *testing.F) {
	for _, line := range []string{"ls -l", `a "$X" '*' \`, "a && b || c; d", "${X}", "~", "$", "[", "\x00"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		all, err := parse(line, func(string) string { return "v" })
		if err != nil {
			return
		}
		for _, c := range all {
			if len(c.words) == 0 {
				t.Error("a command without words")
			}
		}
	})
}

func TestCommands(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile("lines", []byte("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir) // an image without any program
	for _, tt := range []struct {
		line, out string
		code      int
	}{
		{"echo a b", "a b\n", 0},
		{"cat lines", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12", 0},
		{"head -n 2 lines", "1\n2\n", 0},
		{"head -2 lines; tail -n1 lines", "1\n2\n12", 0},
		{"tail -n 3 lines", "10\n11\n12", 0},
		{"tail -n 0 lines", "", 0},
		{"cat nothing || echo no", "no\n", 0},
		{"cat nothing && echo no", "", 1},
		{"exit 7; echo no", "", 7},
		{"nosuch", "", 127},
		{"ls", "lines\n", 0},
		{"cd / && pwd; cd " + dir, "/\n", 0},
		{"export X=y; echo $X", "\n", 0}, // words are replaced before a line runs
		{"kill -NOSUCH 1", "", 1},
		{"ps | cat", "", 2},
		{"rm lines && ls", "", 0},
	} {
		var out, errs bytes.Buffer
		code := Main([]string{"-c", tt.line}, os.Stdin, &out, &errs)
		if out.String() != tt.out || code != tt.code {
			t.Errorf("%q: %d %q %q", tt.line, code, out.String(), errs.String())
		}
	}
	var out bytes.Buffer
	if code := Main([]string{"-c", "ps; env; help; ls -la /proc/self"}, os.Stdin, &out, &out); code != 0 || !strings.Contains(out.String(), "COMMAND") {
		t.Errorf("%d %q", code, out.String())
	}
}

// TestInput: the input behind a line is for the program that the line runs.
func TestInput(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.WriteString("/bin/sh -c 'read x; echo $x'\nfor the program\necho then\nexit 3\necho no\n"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	var out bytes.Buffer
	if code := Main(nil, r, &out, &out); code != 3 {
		t.Errorf("exit code %d", code)
	}
	if out.String() != "for the program\nthen\n" {
		t.Errorf("%q", out.String())
	}
}
