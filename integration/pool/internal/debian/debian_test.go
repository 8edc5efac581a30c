package debian

import (
	"slices"
	"testing"
)

func TestParseMirror(t *testing.T) {
	for _, tc := range []struct{ name, out, want string }{
		{"main first", "http://a.example/debian stable\nhttp://a.example/debian-security stable-security\n", "http://a.example/debian"},
		{"updates first", "http://s.example stable-security\nhttp://a.example stable-updates\nhttp://b.example stable\n", "http://b.example"},
		{"none", "", ""},
		{"updates alone", "http://s.example stable-security\n", ""},
		{"no release", "http://s.example\n", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := parseMirror(tc.out)
			if got != tc.want || (err != nil) != (tc.want == "") {
				t.Errorf("parseMirror = %q, %v; want %q", got, err, tc.want)
			}
		})
	}
}

func TestRootFS(t *testing.T) {
	a := RootFS{Suite: "s", Variant: "minbase", Packages: []string{"x", "y"}, Customize: []string{"true"}}
	args := a.args("out.tar", "http://m.example")
	if want := []string{"s", "out.tar", "http://m.example"}; !slices.Equal(args[len(args)-3:], want) {
		t.Errorf("the last arguments are %q, want %q", args[len(args)-3:], want)
	}
	for _, want := range []string{"--include=x,y", "--customize-hook=true", "--variant=minbase"} {
		if !slices.Contains(args, want) {
			t.Errorf("no %s in %q", want, args)
		}
	}
	b := a
	b.Packages = []string{"x"}
	if a.Key() == b.Key() {
		t.Error("another list of packages has the same key")
	}
}
