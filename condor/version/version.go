// Package version parses the version strings of HTCondor's daemons, and tells
// which features a peer has.
package version

import (
	"fmt"
	"strconv"
	"strings"
)

// Version is the version of a daemon. The zero value is an unknown version. It
// counts as older than every known one, so no feature that needs a version is
// used with it.
type Version struct{ Major, Minor, Patch int }

// maxComponent is the limit of a component; HTCondor itself computes
// major*1000000 + minor*1000 + patch.
const maxComponent = 999999

// Parse reads "$CondorVersion: 25.14.1 2026-10-16 ... $", also with "_" for
// blanks as in CONDOR_INHERIT, or a plain "25.14.1"
// (condor_utils/condor_ver_info.cpp:string_to_VersionData).
func Parse(s string) (Version, error) {
	text := s
	if rest, ok := strings.CutPrefix(text, "$CondorVersion:"); ok {
		text = strings.TrimLeft(rest, " _")
	}
	end := strings.IndexFunc(text, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	if end >= 0 {
		if c := text[end]; c != ' ' && c != '_' && c != '$' && c != '-' {
			return Version{}, malformed(s)
		}
		text = text[:end]
	}
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return Version{}, malformed(s)
	}
	var n [3]int
	for i, part := range parts {
		v, err := strconv.Atoi(part)
		if err != nil || v > maxComponent {
			return Version{}, malformed(s)
		}
		n[i] = v
	}
	return Version{n[0], n[1], n[2]}, nil
}

func malformed(s string) error {
	if len(s) > 80 {
		s = s[:80] + "..."
	}
	return fmt.Errorf("%q is not a version such as $CondorVersion: 25.14.1 2026-10-16 $", s)
}

// Known tells whether the version is known.
func (v Version) Known() bool { return v != Version{} }

// AtLeast tells whether v is major.minor.patch or newer.
func (v Version) AtLeast(major, minor, patch int) bool {
	return v.Compare(Version{major, minor, patch}) >= 0
}

// Compare returns -1 if v is older than w, 0 if they are the same, 1 if v is newer.
func (v Version) Compare(w Version) int {
	for _, d := range [3]int{v.Major - w.Major, v.Minor - w.Minor, v.Patch - w.Patch} {
		switch {
		case d < 0:
			return -1
		case d > 0:
			return 1
		}
	}
	return 0
}

// String returns "25.14.1", or "unknown".
func (v Version) String() string {
	if !v.Known() {
		return "unknown"
	}
	return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch)
}

// Of returns what Parse does, or an unknown version if s is missing or malformed.
func Of(s string) Version {
	v, _ := Parse(s) // the zero value with an error
	return v
}
