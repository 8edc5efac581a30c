// Package buildinfo says which build of podstarter a program is. Starter and
// wrapper of one build have the same version.
package buildinfo

import (
	"runtime"
	"runtime/debug"
	"strings"
)

// version is set by the linker: -X podstarter/internal/buildinfo.version=v1.2.3.
var version string

// unversioned is the version of a build without tag and commit.
const unversioned = "devel"

// Version is the version of the running program, without blanks: the one that
// the linker was given, which is a tag if there is one; else the version of the
// module or its commit, as the Go command recorded it; else "devel".
func Version() string {
	info, _ := debug.ReadBuildInfo()
	return of(version, info)
}

func of(linked string, info *debug.BuildInfo) string {
	if v := strings.Join(strings.Fields(linked), "-"); v != "" {
		return v
	}
	if info == nil {
		return unversioned
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	revision, changed := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			revision = "-" + s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "-dirty"
		}
	}
	if revision == "" {
		return unversioned
	}
	return unversioned + revision + changed
}

// Line is the version in the form of HTCondor's own version strings, which
// ident(1) and HTCondor's tools find by its dollar signs.
func Line() string {
	return "$PodStarterVersion: " + Version() + " " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH + " $"
}
