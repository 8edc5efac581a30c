package jobfiles

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLegalName(t *testing.T) {
	for name, want := range map[string]bool{
		"a": true, "a/b": true, "./a": true, "a//b/": true, "...": true, "a..b": true, "..a": true, "a\nb": true, "c:": true, "c:x": true, "~": true, ".": true,
		"": false, "/": false, "/a": false, "..": false, "a/..": false, "../a": false, "a/../b": false, `\a`: false, `a\..\b`: false,
		"c:/a": false, `c:\a`: false, "a\x00b": false,
	} {
		if got := LegalName(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}

func FuzzLegalName(f *testing.F) {
	for _, seed := range []string{"a", "../x", `a\..`, "./a/..b", "a/./../b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if !LegalName(name) {
			return
		}
		if got := filepath.Join("/sandbox", name); got != "/sandbox" && !strings.HasPrefix(got, "/sandbox/") {
			t.Errorf("%q leads to %q", name, got)
		}
	})
}

func TestURLs(t *testing.T) {
	for _, c := range []struct{ text, scheme, method, safe string }{
		{"http://a/b?c", "http", "http", "http://a/b?..."},
		{"OSDF://a", "OSDF", "osdf", "OSDF://a"},
		{"a+b-c.d://x", "a+b-c.d", "d", "a+b-c.d://x"},
		{"a1://x", "a1", "a1", "a1://x"},
		{"http://", "", "", "http://"},
		{"://x", "", "", "://x"},
		{"1a://x", "", "", "1a://x"},
		{"a_b://x?q", "", "", "a_b://x?q"},
		{"/a/http://x?y", "", "", "/a/http://x?y"},
		{"file?x", "", "", "file?x"},
	} {
		if got := URLScheme(c.text); got != c.scheme {
			t.Errorf("%s: scheme %q", c.text, got)
		}
		if got := URLMethod(c.text); got != c.method {
			t.Errorf("%s: method %q", c.text, got)
		}
		if got := SafeURL(c.text); got != c.safe {
			t.Errorf("%s: safe %q", c.text, got)
		}
	}
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"a", "a", true}, {"a", "ab", false}, {"*", "", true}, {"*", "x", true}, {"a*", "abc", true}, {"a*", "ba", false},
		{"*a", "cba", true}, {"*a", "ab", false}, {"a*c", "abc", true}, {"a*c", "ac", true}, {"a*a", "a", false},
		{"*a*", "xay", true}, {"*a*", "xy", false}, {"a*b*", "axxbyy", true}, {"a*b*", "axx", false},
	} {
		if got := matches(c.pattern, c.name); got != c.want {
			t.Errorf("%q %q: %v", c.pattern, c.name, got)
		}
	}
}

func TestSplitList(t *testing.T) {
	if diff := cmp.Diff([]string{"a", "b c", "d"}, splitList(" a ,, b c\t,\nd,", ",")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, splitList("a b,\nc", ", \t\r\n")); diff != "" {
		t.Error(diff)
	}
	if got := splitList("  ", ","); got != nil {
		t.Errorf("%q", got)
	}
}

func TestRemaps(t *testing.T) {
	for _, c := range []struct{ remaps, name, want string }{
		{"a=b", "a", "b"},
		{"a=b", "x", ""},
		{" a = b ; c = d ", "c", "d"},
		{"a=b;a=c", "a", "b"},
		{"a=b;b=c;c=d/e", "a", "d/e"},
		{"d=e", "d/f/g", "e/f/g"},
		{"d=e;d/f=x", "d/f/g", "x/g"},
		{"d=e;e=h", "d/f", "h/f"},
		{"noequals;a=b", "a", "b"},
		{"noequals", "noequals", ""},
		{"a\\;b=c\\;d", "a;b", ""}, // in C++ too, only the delimiter at hand can be escaped
		{"a\\=b=c\\;d", "a=b", "c;d"},
		{"a=http://x/y?q=1;b=c", "a", "http://x/y?q=1"},
		{"a\tb=c\nd", "ab", "cd"},
		{"a=", "a", ""},
		{"", "a", ""},
		{";;;", "a", ""},
		{"a=b\\", "a", "b\\"},
	} {
		got, _, err := ParseRemaps(c.remaps).Find(c.name)
		if err != nil || got != c.want {
			t.Errorf("%q of %q: %q, %v; want %q", c.name, c.remaps, got, err, c.want)
		}
	}
	for _, cycle := range []string{"a=a", "a=b;b=a", "a=a/b", "a=b/c;b=a"} {
		if got, _, err := ParseRemaps(cycle).Find("a"); err == nil {
			t.Errorf("%q: %q and no error", cycle, got)
		}
	}
}

func FuzzRemaps(f *testing.F) {
	for _, seed := range []string{"a=b;c=d", "a\\;=b", "x;y=z", "a=a/b"} {
		f.Add(seed, "a")
	}
	f.Fuzz(func(t *testing.T, text, name string) {
		got, ok, err := ParseRemaps(text).Find(name)
		if (!ok || err != nil) && got != "" {
			t.Errorf("%q without a match", got)
		}
	})
}
