package plugin

import (
	"strings"

	"podstarter/classads"
)

// Plugin is one program.
type Plugin struct {
	Path    string // as it was configured, or as the job wrote it
	Name    string // upper case: CURL; variables of the job's environment that begin with it and "_" are passed on
	FromJob bool
	// Protocol is 1 for a program that moves one file, and 2 or more for one that
	// takes a list.
	Protocol int
	Multi    bool
	Ad       *classads.Ad // what it said of itself; nil for a job's plugin
	// Refused: it must not be run, since the site allows no plugins of jobs.
	Refused bool
	// Failed are the methods whose test failed.
	Failed []string

	methods []string
}

// Methods returns the methods that it serves, in its own order.
func (p *Plugin) Methods() []string { return p.methods }

// Base returns the last part of its path, which names its files in the sandbox.
func (p *Plugin) Base() string { return baseName(p.Path) }

// nameOf returns a plugin's name: the file's, without "_plugin" and the rest, or
// without its extension (FileTransferPlugin::FileTransferPlugin).
func nameOf(path string) string {
	base := baseName(path)
	if i := strings.Index(base, "_plugin"); i >= 0 {
		base = base[:i]
	} else if i := strings.LastIndexByte(base, '.'); i >= 0 {
		base = base[:i]
	}
	return upper(base)
}

func baseName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// scheme returns a URL's scheme, "" for other text (condor_url.cpp:IsUrl).
func scheme(text string) string {
	i := strings.Index(text, "://")
	if i <= 0 || i+3 == len(text) || !letter(text[0]) {
		return ""
	}
	for _, c := range []byte(text[:i]) {
		if !letter(c) && (c < '0' || c > '9') && c != '+' && c != '-' && c != '.' {
			return ""
		}
	}
	return text[:i]
}

func letter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// Method is the key by which plugins are chosen: the last part of a URL's scheme
// behind a "+", "-" or ".", in lower case (condor_url.cpp:getURLType). It is empty
// if url is not a URL.
func Method(url string) string {
	s := scheme(url)
	return strings.ToLower(s[strings.LastIndexAny(s, "+-.")+1:])
}

// Safe returns the form of a URL that may be shown: queries hold credentials
// (UrlSafePrint).
func Safe(url string) string {
	if i := strings.IndexByte(url, '?'); i >= 0 && scheme(url) != "" {
		return url[:i] + "?..."
	}
	return url
}

// upper is toupper for ASCII, enough for names and protocols.
func upper(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'a' <= c && c <= 'z' {
			b[i] = c - 'a' + 'A'
		}
	}
	return string(b)
}

// words splits at commas and blanks, as HTCondor does by default.
func words(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) })
}
