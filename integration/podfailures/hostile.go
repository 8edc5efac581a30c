package podfailures

import (
	"archive/tar"
	"strings"
)

// Harm is what an image contains to keep the pod's wrapper from working.
type Harm struct {
	// What it is, in the words of the table.
	What string

	layer   []tar.Header // all without contents
	env     []string
	volumes map[string]struct{}
}

// another is a user that is neither root nor a payload's.
const another = 1234

// longest is longer than the kernel accepts for one variable (MAX_ARG_STRLEN).
const longest = 140_000

// Hostile are the kinds of hostile images, by the first part of their names.
var Hostile = map[string]Harm{
	"run-link":    {What: "/run/podstarter is a link to /var/lib/condor/execute", layer: link("run/podstarter", "/var/lib/condor/execute")},
	"run-proc":    {What: "/run/podstarter is a link to /proc", layer: link("run/podstarter", "/proc")},
	"run-closed":  {What: "/run has mode 0700 and belongs to somebody", layer: closed("run/")},
	"variable":    {What: "a variable of 140,000 bytes", env: []string{"LONG=" + strings.Repeat("x", longest)}},
	"go-variable": {What: "GOMEMLIMIT=x, which ends programs in Go before they begin", env: []string{"GOMEMLIMIT=x"}},
	"volume-link": volumeOver(),
	"volume":      {What: "VOLUME /run/podstarter/control/payload", volumes: map[string]struct{}{"/run/podstarter/control/payload": {}}},
}

// volumeOver is a volume of the image that reaches the wrapper's directory through
// a link. It puts an empty file in the wrapper's place.
func volumeOver() Harm {
	return Harm{
		What:    "VOLUME /a/long/way, which is a link to /proc",
		layer:   append(link("a/long/way", "/proc"), tar.Header{Name: "proc/slabinfo", Typeflag: tar.TypeReg, Mode: 0o755}),
		volumes: map[string]struct{}{"/a/long/way": {}},
	}
}

func link(name, to string) []tar.Header {
	return []tar.Header{{Name: name, Linkname: to, Typeflag: tar.TypeSymlink, Mode: 0o777}}
}

func closed(name string) []tar.Header {
	return []tar.Header{{Name: name, Typeflag: tar.TypeDir, Mode: 0o700, Uid: another, Gid: another}}
}
