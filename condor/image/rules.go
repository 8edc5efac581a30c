package image

import (
	"fmt"
	"strings"

	"github.com/hashicorp/go-multierror"
)

// pattern is one entry of the lists of allowed and denied images.
type pattern struct {
	text     string // as the admin wrote it, for messages
	registry string // glob over the registry; does not match beyond it
	name     string // glob over the path, or over path and tag or digest
	tagged   bool   // name includes a tag or digest
}

// parsePatterns reads a list of patterns, separated by commas or white space. In
// a pattern, * stands for any number of characters and ? for one. The text up to
// the first slash is compared with the registry and the rest with the path, so no
// * matches across the two: *.example.org/* cannot match
// evil.net/x.example.org/y. A pattern without a tag or digest covers all of them,
// and a registry without a path covers all its images.
func parsePatterns(list string) ([]pattern, error) {
	var patterns []pattern
	var problems *multierror.Error
	for _, text := range splitList(list) {
		p, err := parsePattern(text)
		if err != nil {
			problems = multierror.Append(problems, fmt.Errorf("pattern %s: %w", excerpt(text), err))
			continue
		}
		patterns = append(patterns, p)
	}
	return patterns, problems.ErrorOrNil()
}

func parsePattern(text string) (pattern, error) {
	p := pattern{text: text, name: "*"}
	written := strings.TrimPrefix(text, dockerScheme)
	if strings.Contains(written, "://") {
		return p, fmt.Errorf("rules are about images in registries, after the map; write registry/name")
	}
	host, name, ok := strings.Cut(written, "/")
	if ok {
		p.name = name
	}
	p.registry = foldRegistry(host)
	full := dockerHub + "/" + written
	known := isRegistry(p.registry) || strings.ContainsAny(p.registry, "*?")
	if !ok {
		full = dockerHub + "/library/" + written
		known = p.registry == "*" || p.registry == "localhost" || strings.Contains(p.registry, ".") // and not debian:12
	}
	path := p.name
	if i := strings.IndexAny(path, ":@"); i >= 0 {
		path, p.tagged = path[:i], true
	}
	switch {
	case p.name == "" || p.registry == "":
		return p, fmt.Errorf("one side of the slash is empty; write registry/*")
	case !known:
		return p, fmt.Errorf("names no registry; write it out, as in %s, or write */ for any registry", full)
	case strings.ToLower(path) != path:
		return p, fmt.Errorf("has capitals in the repository, which no image has")
	}
	return p, nil
}

// allows reports whether the pattern covers what a reference would run. A tag
// beside a digest is ignored: nobody checks that both name the same image.
func (p pattern) allows(r Reference) bool {
	name := r.Path
	switch {
	case !p.tagged:
	case r.Digest != "":
		name += "@" + r.Digest
	default:
		name += ":" + r.Tag
	}
	return glob(p.registry, r.Registry) && glob(p.name, name)
}

// denies reports whether the pattern covers any way of writing the reference:
// with tag, with digest or both, and with the registry's port or without.
func (p pattern) denies(r Reference) bool {
	host, _, _ := cutPort(r.Registry)
	if !glob(p.registry, r.Registry) && !glob(p.registry, host) {
		return false
	}
	if !p.tagged {
		return glob(p.name, r.Path)
	}
	for _, name := range []string{r.Path + ":" + r.Tag, r.Path + "@" + r.Digest, r.name()} {
		if glob(p.name, name) {
			return true
		}
	}
	return false
}

// cutPort splits a registry into host and port; an IPv6 address is in brackets.
func cutPort(registry string) (host, port string, ok bool) {
	i := strings.LastIndexByte(registry, ':')
	if i < 0 || strings.HasSuffix(registry, "]") {
		return registry, "", false
	}
	return registry[:i], registry[i+1:], true
}

// glob matches the whole of s. Its time is at most proportional to the product of
// the lengths.
func glob(pattern, s string) bool {
	p, i := 0, 0
	star, from := -1, 0 // the last *, and where in s its text may end
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, i
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == s[i]):
			p++
			i++
		case star >= 0:
			from++
			p, i = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// splitList splits at commas and white space.
func splitList(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' || r == '\r' })
}

// verdict returns why a reference is refused, nil if it is not. A deny rule
// covers every name of the image, including those of its mirrors; an allow rule
// must match the name that was asked for.
func (s *Site) verdict(r Reference) error {
	names := s.mirrors.names(r)
	for _, p := range s.denied {
		for _, name := range names {
			if !p.denies(name) {
				continue
			}
			also := ""
			if name != r {
				also = fmt.Sprintf(", which is the same image as %s,", name)
			}
			return fmt.Errorf("image %s%s is not allowed here: rule %s of %s forbids it; use another image, or ask %s", r, also, excerpt(p.text), KnobDenied, s.contact)
		}
	}
	if len(s.allowed) == 0 {
		return nil
	}
	for _, p := range s.allowed {
		if p.allows(r) {
			return nil
		}
	}
	texts := make([]string, 0, len(s.allowed))
	for _, p := range s.allowed[:min(len(s.allowed), maxShown)] {
		texts = append(texts, p.text)
	}
	more := ""
	if n := len(s.allowed) - len(texts); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Errorf("image %s is not allowed here: no rule of %s allows it (the rules: %s%s); use another image, or ask %s", r, KnobAllowed, strings.Join(texts, ", "), more, s.contact)
}

// maxShown is how many of the allow rules a user is shown.
const maxShown = 8
