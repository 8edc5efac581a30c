package agent

import (
	"os"
	"path/filepath"

	"podstarter/payload/devices"
)

// WrapperName is the name (argv[0]) by which a program that calls [Dispatch]
// becomes the wrapper.
const WrapperName = "condor_pod_wrapper"

// launcherName is the name by which such a program becomes the launcher of one payload.
const launcherName = "condor_pod_launcher"

// selfExe is this program, even if its file was replaced or removed since.
const selfExe = "/proc/self/exe"

// Dispatch turns the process into the wrapper, its launcher, or what looks for devices, if it
// was started under such a name; then it does not return. Programs that serve as a wrapper too (localexec) call it
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
	}
}
