package image

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"debian":                              "docker.io/library/debian:latest",
		"docker://debian":                     "docker.io/library/debian:latest",
		"alice/tools:2":                       "docker.io/alice/tools:2",
		"docker.io/debian:12":                 "docker.io/library/debian:12",
		"DOCKER.IO/library/debian:12":         "docker.io/library/debian:12",
		"docker.io:443/debian:12":             "docker.io/library/debian:12",
		"index.docker.io/debian:12":           "docker.io/library/debian:12",
		"Registry-1.Docker.io/library/debian": "docker.io/library/debian:latest",
		"registry.hub.docker.com/debian":      "docker.io/library/debian:latest",
		"r.example:5000/a/b":                  "r.example:5000/a/b:latest",
		"R.Example:443/a/b:T":                 "r.example/a/b:T",
		"[FE80::1]:443/a":                     "[fe80::1]/a:latest",
		"localhost/a":                         "localhost/a:latest",
		"LOCALHOST/a":                         "localhost/a:latest",
		"a/b:1@" + digest:                     "docker.io/a/b:1@" + digest,
		"a/b@" + digest:                       "docker.io/a/b@" + digest,
	} {
		r, err := Parse(text)
		if err != nil || r.String() != want {
			t.Errorf("Parse(%q) = %s, %v, want %s", text, r, err, want)
		}
		if again, err := Parse(r.String()); err != nil || again != r {
			t.Errorf("Parse(%q) = %s, %v after %s", r, again, err, text)
		}
	}
	for _, text := range []string{
		"", "docker://", "A", "Alice/tools", "debian:", "debian@sha256:12", "docker.io./library/debian", "doc\u0430ker.io/a", "ex\u00e4mple.org/a", "a b", "/a", "a//b", "a/", "../a", "a\x00", "https://x/y",
		strings.Repeat("a", maxReference+1), strings.Repeat("ab/", 300) + "a",
	} {
		if r, err := Parse(text); err == nil {
			t.Errorf("Parse(%q) = %s", text, r)
		}
	}
}

// TestRules tries to circumvent the rules with every way of writing an image.
func TestRules(t *testing.T) {
	deny := map[string]string{KnobDenied: "docker.io/evil/*, registry.example.org, *.bad.example/*  docker.io/library/debian:10 ghcr.io/a/b@" + digest}
	allow := map[string]string{KnobAllowed: "docker.io/library/*, *.example.org/*, ghcr.io/a/b:1, quay.io/c/d@" + digest}
	for name, tt := range map[string]struct {
		knobs  map[string]string
		images []string
		ok     bool
	}{
		"denied": {deny, []string{
			"evil/x", "docker.io/evil/x:1", "Docker.IO/evil/x", "index.docker.io/evil/x", "registry-1.docker.io/evil/x", "registry.hub.docker.com/evil/x", "docker.io:443/evil/x",
			"docker://evil/x", "evil/x:1@" + digest, "evil/x@" + digest, "evil/deep/er:1",
			"registry.example.org/any/thing", "registry.example.org:443/any", "registry.example.org:5000/any", "REGISTRY.example.ORG/any",
			"a.bad.example/x", "a.b.bad.example:5000/x",
			"debian:10", "debian:10@" + digest, "docker.io/debian:10", "library/debian:10",
			"ghcr.io/a/b@" + digest, "ghcr.io/a/b:other@" + digest,
		}, false},
		"not denied": {deny, []string{"debian:12", "debian", "notevil/x", "evil", "library/evil", "registry.example.org.net/x", "bad.example/x", "ghcr.io/a/b:1", "ghcr.io/evil/x"}, true},
		"allowed": {allow, []string{
			"debian", "debian:12", "docker.io/library/x:y", "index.docker.io/library/x", "debian@" + digest, "debian:1@" + digest,
			"a.example.org/x", "a.b.EXAMPLE.org/x/y:1", "ghcr.io/a/b:1", "ghcr.io:443/a/b:1", "quay.io/c/d@" + digest, "quay.io/c/d:any@" + digest,
		}, true},
		"not allowed": {allow, []string{
			"alice/x", "evil.net/a.example.org/x", "evil.net/library/x", "example.org/x", "a.example.org.evil.net/x", "a.example.org:5000/x",
			"ghcr.io/a/b", "ghcr.io/a/b:2", "ghcr.io/a/b:1@" + digest, "ghcr.io/a/bc:1", "ghcr.io/a/b/c:1", "quay.io/c/d", "quay.io/c/d:1",
			"docker.io:5000/library/x",
		}, false},
		"deny wins": {map[string]string{KnobAllowed: "*", KnobDenied: "docker.io/library/debian"}, []string{"debian", "debian:12", "debian@" + digest}, false},
		"all":       {map[string]string{KnobAllowed: "*"}, []string{"debian", "r.example:5000/x"}, true},
		"none":      {map[string]string{KnobDenied: "*"}, []string{"debian", "r.example:5000/x"}, false},
		"a mirror's other names": {map[string]string{KnobDenied: "docker.io/evil/* docker.io/library/debian", KnobMirrors: "docker.io=mirror.example/hub mirror.example/hub=other.example"},
			[]string{"evil/x", "mirror.example/hub/evil/x", "MIRROR.example:443/hub/evil/x:1", "other.example/evil/x", "mirror.example/hub/debian", "mirror.example/hub/library/debian"}, false},
		"after the mirror":     {map[string]string{KnobDenied: "mirror.example/hub/secret/*", KnobMirrors: "docker.io=mirror.example/hub"}, []string{"secret/x", "mirror.example/hub/secret/x"}, false},
		"mirrors need no rule": {map[string]string{KnobAllowed: "docker.io/library/*", KnobMirrors: "docker.io=mirror.example/hub"}, []string{"debian"}, true},
		"mirrors allow nothing": {map[string]string{KnobAllowed: "docker.io/library/*", KnobMirrors: "docker.io=mirror.example/hub"},
			[]string{"mirror.example/hub/library/debian", "mirror.example/x"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			knobs := map[string]string{"CONDOR_ADMIN": "help@site.example"}
			for k, v := range tt.knobs {
				knobs[k] = v
			}
			s := mustSite(t, knobs)
			for _, written := range tt.images {
				d, err := s.resolve(&wish{text: written, source: attrDocker})
				if (err == nil) != tt.ok {
					t.Errorf("%s: %s, %v", written, d.Image, err)
				}
				if err != nil && !(strings.Contains(err.Error(), "POD_STARTER_IMAGES_") && strings.Contains(err.Error(), "help@site.example")) {
					t.Errorf("%v names neither rule nor contact", err)
				}
			}
		})
	}
}

func TestPatternMistakes(t *testing.T) {
	for _, text := range []string{"debian", "debian:12", "alice/tools", "/x", "docker.io/", "https://docker.io/x", "oras://x/y", "docker.io/Evil/*", "*evil*", "evil*"} {
		if p, err := parsePattern(text); err == nil {
			t.Errorf("parsePattern(%q) = %+v", text, p)
		}
	}
	for _, text := range []string{"*", "*/*", "ghcr.io", "*.example.org", "docker://ghcr.io/x", "localhost/x", "r:5000/x", "*/debian:[1]", "ghcr.io/a:T"} {
		if _, err := parsePattern(text); err != nil {
			t.Errorf("parsePattern(%q): %v", text, err)
		}
	}
}

func TestGlob(t *testing.T) {
	for _, tt := range []struct {
		pattern, s string
		want       bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"**", "abc", true}, {"a?c", "abc", true}, {"a?c", "ac", false},
		{"a*b*c", "aXbYbZc", true}, {"a*b*c", "aXbYbZ", false}, {"*ab", "aab", true}, {"a.c", "abc", false}, {"[a]", "a", false},
		{strings.Repeat("*a", 50) + "b", strings.Repeat("a", 2000), false},
	} {
		if got := glob(tt.pattern, tt.s); got != tt.want {
			t.Errorf("glob(%q, %.40q) = %v", tt.pattern, tt.s, got)
		}
	}
}

func TestMirrors(t *testing.T) {
	s := mustSite(t, map[string]string{KnobMirrors: "docker.io=mirror.example/hub, docker.io/library=official.example:5000\nGHCR.io=mirror.example/ghcr/"})
	for written, want := range map[string]string{
		"alice/tools:1":             "mirror.example/hub/alice/tools:1",
		"debian:12":                 "official.example:5000/debian:12",
		"libraryx/y":                "mirror.example/hub/libraryx/y:latest",
		"ghcr.io/a/b@" + digest:     "mirror.example/ghcr/a/b@" + digest,
		"quay.io/a/b":               "quay.io/a/b:latest",
		"mirror.example/hub/a/b:1":  "mirror.example/hub/a/b:1",
		"docker.io:443/alice/x":     "mirror.example/hub/alice/x:latest",
		"docker.io.evil.net/a":      "docker.io.evil.net/a:latest",
		"registry-1.docker.io/a/b":  "mirror.example/hub/a/b:latest",
		"docker.io/library/x/y:1":   "official.example:5000/x/y:1",
		"docker://docker.io/debian": "official.example:5000/debian:latest",
	} {
		d, err := s.resolve(&wish{text: written, source: attrDocker})
		if err != nil || d.Image.String() != want {
			t.Errorf("%s: %s, %v, want %s", written, d.Image, err, want)
		}
		if rewritten := strings.HasPrefix(want, "mirror.example/ghcr") || strings.HasPrefix(want, "official"); rewritten && !strings.Contains(d.Says, want) {
			t.Errorf("%s: %q does not say %s", written, d.Says, want)
		}
	}
	for _, list := range []string{"docker.io", "docker.io=", "=x.example", "docker=x.example", "docker.io=x", "docker.io=a.example docker.io=b.example", "docker.io=a.example/UP", "docker.io/a:1=x.example"} {
		if got, err := parseMirrors(list); err == nil {
			t.Errorf("parseMirrors(%q) = %+v", list, got)
		}
	}
	// Mirrors that name each other do not loop.
	loop := mustSite(t, map[string]string{KnobMirrors: "a.example=b.example/x b.example=a.example/y"})
	if d, err := loop.resolve(&wish{text: "a.example/i:1"}); err != nil || d.Image.String() != "b.example/x/i:1" {
		t.Errorf("%s, %v", d.Image, err)
	}
	if names := loop.mirrors.names(Reference{Registry: "a.example", Path: "i", Tag: "1"}); len(names) > maxNames {
		t.Errorf("%d names", len(names))
	}
}
