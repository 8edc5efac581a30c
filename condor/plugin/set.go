package plugin

import (
	"slices"
	"strings"

	"podstarter/classads"
)

// UserPlugins is the site's rule for plugins that jobs bring
// (STARTER_DISABLE_USER_SUPPLIED_TRANSFER_PLUGINS).
type UserPlugins int

const (
	Allow  UserPlugins = 0
	Refuse UserPlugins = 1 // a URL that needs one fails
	Ignore UserPlugins = 2 // as if the job had brought none
)

// Set is all plugins that a job may use. Each method belongs to one of them.
type Set struct {
	plugins   []*Plugin
	byMethod  map[string]*Plugin
	forbidden []string
	disabled  bool
	problems  []error
}

func newSet() *Set { return &Set{byMethod: map[string]*Plugin{}} }

// Disabled is the set of a site without URL transfers (ENABLE_URL_TRANSFERS).
func Disabled() *Set {
	s := newSet()
	s.disabled = true
	return s
}

// Disabled reports whether the site allows no transfers of URLs at all.
func (s *Set) Disabled() bool { return s.disabled }

// Plugins returns the plugins in configuration order, those of the job last.
func (s *Set) Plugins() []*Plugin { return s.plugins }

// Problems lists why plugins cannot be used.
func (s *Set) Problems() []error { return s.problems }

// Methods lists the methods that some plugin serves, sorted.
func (s *Set) Methods() []string {
	var list []string
	for m := range s.byMethod {
		list = append(list, m)
	}
	slices.Sort(list)
	return list
}

// Find returns the plugin that moves a URL; nil if there is none.
func (s *Set) Find(url string) *Plugin { return s.byMethod[Method(url)] }

// FindFor is Find for a source and a destination, one of which is a URL; if both
// are, the destination decides (DetermineFileTransferPlugin).
func (s *Set) FindFor(source, destination string) *Plugin {
	if scheme(destination) != "" {
		return s.Find(destination)
	}
	return s.Find(source)
}

// Forbid takes a method from all plugins, including those that the job adds later.
func (s *Set) Forbid(method string) {
	s.forbidden = append(s.forbidden, method)
	delete(s.byMethod, method)
}

// add gives methods to a plugin, and takes them from earlier ones.
func (s *Set) add(p *Plugin, methods []string) {
	if !slices.Contains(s.plugins, p) {
		s.plugins = append(s.plugins, p)
	}
	for _, m := range methods {
		m = strings.ToLower(m)
		if slices.Contains(s.forbidden, m) {
			continue
		}
		s.byMethod[m] = p
		p.methods = append(p.methods, m)
		if m == "pelican" {
			p.Name = "PELICAN" // whatever its file is called: jobs have PELICAN_ variables
		}
	}
}

// maxJobPlugins bounds the plugins that a job may bring.
const maxJobPlugins = 64

// AddJob adds the plugins that a job brings (TransferPlugins, "method,method=path;
// method=path"). They are not asked about themselves: they take lists of files, by
// protocol 2. As in stock, a refusal shows only when a URL needs such a plugin
// (InitializeJobPlugins).
func (s *Set) AddJob(job *classads.Ad, mode UserPlugins) {
	text := job.StringOr("TransferPlugins", "")
	if text == "" || s.disabled || mode == Ignore {
		return
	}
	for i, entry := range strings.Split(text, ";") {
		methods, path, ok := strings.Cut(entry, "=")
		path = strings.TrimSpace(path)
		base := baseName(path)
		if !ok || i >= maxJobPlugins || base == "" || base == "." || base == ".." || strings.IndexByte(path, 0) >= 0 {
			continue
		}
		p := s.byPath(path) // a job may name one of the site's, too
		if p == nil || mode == Refuse && !p.FromJob {
			p = &Plugin{Path: path, Name: nameOf(path), FromJob: true, Protocol: 2, Multi: true}
		}
		p.Refused = mode == Refuse && p.FromJob
		s.add(p, words(methods))
	}
}

func (s *Set) byPath(path string) *Plugin {
	for _, p := range s.plugins {
		if p.Path == path {
			return p
		}
	}
	return nil
}
