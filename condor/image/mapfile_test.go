package image

import (
	"strings"
	"testing"
)

func TestMapFile(t *testing.T) {
	m, err := ParseMap("f", strings.Join([]string{
		"# comment", "", "  \t", "  # indented",
		`* literal.sif reg.example/literal:1`,
		`*	"with blanks and \"quotes\""	"reg.example/quoted:1"`,
		`* "/a/path" reg.example/path:1`,
		`singularityimage /^\/x\/(.*)\/([^:]*)$/ reg.example/\2/\1:\9\0`,
		`ContainerImage /^UP(.)/iU reg.example/\1`,
		`* /two words/ reg.example/words` + "\r",
		`* /back\\.slash/ reg.example/back`,
		`* "back\\slash" reg.example/literal-back`,
		`* /first/ reg.example/first`,
		`* /first/ reg.example/second`,
	}, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ source, name, want, rule string }{
		{"X", "literal.sif", "reg.example/literal:1", "f:5"},
		{"X", "Literal.sif", "", ""},
		{"X", "dir/literal.sif", "", ""},
		{"X", `with blanks and "quotes"`, "reg.example/quoted:1", "f:6"},
		{"X", "/a/path", "reg.example/path:1", "f:7"},
		{"SingularityImage", "/x/a/b", `reg.example/b/a:\9/x/a/b`, "f:8"},
		{"ContainerImage", "/x/a/b", "", ""},
		{"ContainerImage", "upon", "reg.example/o", "f:9"},
		{"X", "some two words here", "reg.example/words", "f:10"},
		{"X", "back.slash", "reg.example/back", "f:11"},
		{"X", "backXslash", "", ""},
		{"X", `back\slash`, "reg.example/literal-back", "f:12"},
		{"X", "first", "reg.example/first", "f:13"},
	} {
		image, rule, ok := m.lookup(tt.source, tt.name)
		if image != tt.want || rule != tt.rule || ok != (tt.want != "") {
			t.Errorf("%s %q: %q by %q, want %q by %q", tt.source, tt.name, image, rule, tt.want, tt.rule)
		}
	}
	if _, _, ok := (*Map)(nil).lookup("X", "x"); ok {
		t.Error("no map has a rule")
	}
}

func TestMapFileMistakes(t *testing.T) {
	for line, word := range map[string]string{
		"*":                           "second field",
		"* x":                         "third field",
		"* x y z":                     "follows",
		"FS x y":                      "the first field",
		"@include other.map":          "the first field",
		"* /cvmfs/a/b reg.example/x":  "double quotes",
		"* /^/cvmfs/(.*)$/ reg/x":     `write \/`,
		"* /a/x reg.example/x":        "double quotes",
		"* /a reg.example/x":          "double quotes",
		"* // reg.example/x":          "everything",
		"* /(/ reg.example/x":         "RE2",
		"* /(?=a)/ reg.example/x":     "RE2",
		`* "a reg.example/x`:          "not closed",
		`* a "reg.example/x`:          "not closed",
		`* "" reg.example/x`:          "second field",
		strings.Repeat("* a b\n", 20): "",
	} {
		_, err := ParseMap("f", "\n"+line)
		if word == "" {
			if err != nil {
				t.Errorf("%q: %v", line, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), word) || !strings.Contains(err.Error(), "f:2") {
			t.Errorf("%q: %v, want an error with f:2 and %q", line, err, word)
		}
	}
	if _, err := ParseMap("f", strings.Repeat("* a b\n", maxMapRules+1)); err == nil {
		t.Error("more rules than there may be")
	}
	if _, err := ParseMap("f", strings.Repeat("#", maxMapBytes+1)); err == nil {
		t.Error("a larger file than there may be")
	}
	if _, err := ParseMap("f", "* x\n* y\n"); err == nil || !strings.Contains(err.Error(), "f:1") || !strings.Contains(err.Error(), "f:2") {
		t.Errorf("%v names not all lines", err)
	}
}

func TestBuiltinMap(t *testing.T) {
	const osg, cern = "/cvmfs/singularity.opensciencegrid.org/", "/cvmfs/unpacked.cern.ch/"
	for name, want := range map[string]string{
		osg + "opensciencegrid/osgvo-el8:latest":                    "docker.io/opensciencegrid/osgvo-el8:latest",
		osg + "opensciencegrid/osgvo-el7":                           "docker.io/opensciencegrid/osgvo-el7",
		osg + "library/python:3.9":                                  "docker.io/library/python:3.9",
		osg + "htc/rocky:9":                                         "hub.opensciencegrid.org/htc/rocky:9",
		osg + "ghcr.io/scipp-atlas/mario-mapyde/madgraph:latest":    "ghcr.io/scipp-atlas/mario-mapyde/madgraph:latest",
		osg + "containers.ligo.org/lscsoft/bayeswave:v1.0.7":        "containers.ligo.org/lscsoft/bayeswave:v1.0.7",
		osg + ".images/ab/cdef":                                     "",
		osg + "nothing":                                             "",
		cern + "registry.hub.docker.com/cmssw/el8:x86_64":           "docker.io/cmssw/el8:x86_64",
		cern + "gitlab-registry.cern.ch/unpacked/images/tool:1.2":   "gitlab-registry.cern.ch/unpacked/images/tool:1.2",
		cern + "ghcr.io/a/b:1":                                      "ghcr.io/a/b:1",
		cern + ".flat/ab/cdef":                                      "",
		cern + "nothing/here":                                       "",
		"/cvmfs/atlas.cern.ch/repo/containers/fs/singularity/x":     "",
		"/home" + cern + "ghcr.io/a/b:1":                            "",
		"/cvmfs/singularityXopensciencegridXorg/library/python:3.9": "",
	} {
		got, _, ok := builtinMap().lookup(attrSingularity, name)
		if got != want || ok != (want != "") {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		if _, err := Parse(got); ok && err != nil {
			t.Errorf("%s: %q: %v", name, got, err)
		}
	}
}

// FuzzMap: no file and no name leads to a panic, to an image that is not
// spelled out, or past a rule that denies everything.
func FuzzMap(f *testing.F) {
	f.Add(builtinRules, "/cvmfs/unpacked.cern.ch/ghcr.io/a/b:1", "docker.io/library/*", "docker.io=m.example/x")
	f.Add(`* /(a*)*$/iU x.example/\1\2\\`, "aaaaaaaaaaaaaaaa", "*/x:?@*", "a.example=b.example b.example=a.example/a")
	f.Add("* \"a b\" \\0", "a b", "*.example:5000/*", "[::1]:5000=localhost")
	f.Fuzz(func(t *testing.T, file, name, patterns, list string) {
		m, err := ParseMap("f", file)
		if err != nil {
			m = nil
		}
		everything, _ := parsePatterns("*")
		some, _ := parsePatterns(patterns)
		all, _ := parseMirrors(list)
		s := &Site{own: m, denied: some, mirrors: all}
		d, err := s.resolve(&wish{text: name, source: attrSingularity})
		if err != nil {
			return
		}
		if again, err := Parse(d.Image.String()); err != nil || again != d.Image {
			t.Errorf("%q: %+v is written %s, which is %+v, %v", name, d.Image, d.Image, again, err)
		}
		for _, p := range some {
			if p.denies(d.Image) {
				t.Errorf("%q: %s although %s denies it", name, d.Image, p.text)
			}
		}
		s.denied = everything
		if d, err := s.resolve(&wish{text: name, source: attrSingularity}); err == nil {
			t.Errorf("%q: %s although nothing is allowed", name, d.Image)
		}
	})
}
