package agent

import (
	"os"
	"path/filepath"

	"podstarter/payload/devices"
	"podstarter/payload/imagetree"
)

// WrapperName is the name (argv[0]) by which a program that calls [Dispatch]
// becomes the wrapper.
const WrapperName = "condor_pod_wrapper"

// launcherName is the name by which such a program becomes the launcher of one payload.
const launcherName = "condor_pod_launcher"

// ownPrograms are the names by which such a program can be run inside the container, beside
// what a wrapper needs.
var ownPrograms = []string{devices.Program, imagetree.Program}

// selfExe is this program, even if its file was replaced or removed since.
const selfExe = "/proc/self/exe"

// Dispatch turns the process into the wrapper, its launcher, what looks for devices, or what writes
// an image's files, if it was started under such a name; then it does not return. Programs that serve as a wrapper too (localexec) call it
// first thing in main.
func Dispatch() {
	if len(os.Args) == 0 {
		return
	}
	switch filepath.Base(os.Args[0]) {
	case WrapperName:
		os.Exit(Main(os.Args[1:]))
	case launcherName:
		os.Exit(launch())
	case devices.Program:
		os.Exit(devices.Main(os.Stdout, os.Stderr, os.Environ()))
	case imagetree.Program:
		os.Exit(imagetree.Main(os.Stdin, os.Stdout, os.Stderr, os.Args))
	}
}
