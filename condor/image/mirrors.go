package image

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/go-multierror"
)

// prefix is a registry, or a part of one.
type prefix struct{ registry, path string }

// mirror redirects images below one prefix to another.
type mirror struct{ from, to prefix }

type mirrors []mirror

// parseMirrors reads a list of FROM=TO, separated by commas or white space:
// docker.io=mirror.example.org/dockerhub. The longest FROM that matches wins.
func parseMirrors(list string) (mirrors, error) {
	var all mirrors
	var problems *multierror.Error
	bad := func(entry, format string, args ...any) {
		problems = multierror.Append(problems, fmt.Errorf("entry %s: %s", excerpt(entry), fmt.Sprintf(format, args...)))
	}
	for _, entry := range splitList(list) {
		from, to, ok := strings.Cut(entry, "=")
		if !ok {
			bad(entry, "is not FROM=TO, such as docker.io=mirror.example.org/dockerhub")
			continue
		}
		var m mirror
		var err error
		if m.from, err = parsePrefix(from); err != nil {
			bad(entry, "%v", err)
			continue
		}
		if m.to, err = parsePrefix(to); err != nil {
			bad(entry, "%v", err)
			continue
		}
		if slices.ContainsFunc(all, func(other mirror) bool { return other.from == m.from }) {
			bad(entry, "%s already has a mirror", from)
			continue
		}
		all = append(all, m)
	}
	slices.SortStableFunc(all, func(a, b mirror) int { return len(b.from.path) - len(a.from.path) })
	return all, problems.ErrorOrNil()
}

// parsePrefix reads a registry with or without a path.
func parsePrefix(text string) (prefix, error) {
	text = strings.TrimSuffix(text, "/")
	host, _, _ := strings.Cut(text, "/")
	if !isRegistry(strings.ToLower(host)) {
		return prefix{}, fmt.Errorf("%s does not name a registry; write it out, as in docker.io/%s", excerpt(text), text)
	}
	// An image below the prefix must be a valid reference. Two parts, because
	// Docker Hub would get a third one otherwise.
	r, err := Parse(text + "/x/x")
	if err != nil {
		return prefix{}, fmt.Errorf("%s cannot begin a reference: %w", excerpt(text), err)
	}
	path, ok := strings.CutSuffix("/"+r.Path, "/x/x")
	if !ok {
		return prefix{}, fmt.Errorf("%s is not a registry and a path", excerpt(text))
	}
	return prefix{registry: r.Registry, path: strings.TrimPrefix(path, "/")}, nil
}

// below returns what follows the prefix in a reference's path.
func (p prefix) below(r Reference) (rest string, ok bool) {
	if r.Registry != p.registry {
		return "", false
	}
	if p.path == "" {
		return r.Path, true
	}
	return strings.CutPrefix(r.Path, p.path+"/")
}

func (p prefix) with(rest string, r Reference) Reference {
	r.Registry, r.Path = p.registry, rest
	if p.path != "" {
		r.Path = p.path + "/" + rest
	}
	return r
}

// rewrite returns the reference to pull. It does not look for a mirror of a
// mirror.
func (ms mirrors) rewrite(r Reference) Reference {
	for _, m := range ms {
		if rest, ok := m.from.below(r); ok {
			return m.to.with(rest, r)
		}
	}
	return r
}

// maxNames bounds the names of one image; mirrors of mirrors could go on for
// ever.
const maxNames = 64

// names are the references to the same image: the one given, those of its
// mirrors, and those that it is a mirror of.
func (ms mirrors) names(r Reference) []Reference {
	names := []Reference{r}
	add := func(r Reference) {
		if len(names) < maxNames && !slices.Contains(names, r) {
			names = append(names, r)
		}
	}
	for i := 0; i < len(names); i++ {
		add(ms.rewrite(names[i]))
		for _, m := range ms {
			if rest, ok := m.to.below(names[i]); ok {
				add(m.from.with(rest, names[i]))
				// Some mirrors accept Docker Hub's short names.
				if m.from == (prefix{registry: dockerHub}) && !strings.Contains(rest, "/") {
					add(m.from.with("library/"+rest, names[i]))
				}
			}
		}
	}
	return names
}
