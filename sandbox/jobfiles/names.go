package jobfiles

import (
	"strings"
)

// LegalName reports whether a peer may use a file name: relative, not empty, without
// "..", also if backslashes are read as slashes (LegalPathInSandbox).
func LegalName(name string) bool {
	if name == "" || strings.IndexByte(name, 0) >= 0 {
		return false
	}
	name = strings.ReplaceAll(name, `\`, "/")
	if name[0] == '/' || (len(name) > 2 && name[1] == ':' && name[2] == '/') {
		return false
	}
	for step := range strings.SplitSeq(name, "/") {
		if step == ".." {
			return false
		}
	}
	return true
}

// BaseName is what follows the last slash (condor_basename); a slash at the
// end makes it empty.
func BaseName(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// DirName is what precedes the last slash, "." if there is none
// (condor_dirname).
func DirName(name string) string {
	switch i := strings.LastIndexByte(name, '/'); i {
	case -1:
		return "."
	case 0:
		return "/"
	default:
		return name[:i]
	}
}

func joinName(dir, base string) string {
	if dir == "" {
		return base
	}
	return dir + "/" + base
}

// URLScheme returns the scheme of a URL, empty if text is none
// (src/condor_utils/condor_url.cpp:IsUrl).
func URLScheme(text string) string {
	i := strings.Index(text, "://")
	if i <= 0 || i+3 == len(text) || !isLetter(text[0]) {
		return ""
	}
	for _, c := range []byte(text[:i]) {
		if !isLetter(c) && !('0' <= c && c <= '9') && c != '+' && c != '-' && c != '.' {
			return ""
		}
	}
	return text[:i]
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// URLMethod returns the method that selects a plugin: the last part of the scheme
// behind a "+", "-" or ".", in lower case (getURLType).
func URLMethod(url string) string {
	scheme := URLScheme(url)
	return strings.ToLower(scheme[strings.LastIndexAny(scheme, "+-.")+1:])
}

// SafeURL is the form of a URL that may be shown: queries hold credentials
// (UrlSafePrint).
func SafeURL(text string) string {
	if URLScheme(text) == "" {
		return text
	}
	if i := strings.IndexByte(text, '?'); i >= 0 {
		return text[:i] + "?..."
	}
	return text
}

// MatchesAny reports whether a name matches one of the patterns of an
// encryption list: the same text, or the text around one "*", which stands for
// anything; a second "*" may end the pattern (src/condor_utils/
// stl_string_utils.cpp:matches_withwildcard_impl).
func MatchesAny(patterns []string, name string) bool {
	for _, p := range patterns {
		if matches(p, name) {
			return true
		}
	}
	return false
}

func matches(pattern, name string) bool {
	star := strings.IndexByte(pattern, '*')
	if star < 0 {
		return pattern == name
	}
	head, tail := pattern[:star], pattern[star+1:]
	if !strings.HasPrefix(name, head) {
		return false
	}
	rest := name[len(head):]
	if t, open := strings.CutSuffix(tail, "*"); open {
		return strings.Contains(rest, t)
	}
	return strings.HasSuffix(rest, tail)
}
