package apptainer

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// Runtime is what is known of the site's runtime.
type Runtime struct {
	Version string // as it says itself; empty if there is none
}

// RuntimeOf reads what the runtime says of its version.
func RuntimeOf(output []byte) Runtime {
	line, _, _ := strings.Cut(string(output[:min(len(output), maxVersion)]), "\n")
	return Runtime{Version: printable(strings.TrimSpace(line))}
}

// maxVersion bounds what a runtime says of its version, in bytes.
const maxVersion = 200

// prefix is of variables that are set inside (singularity.cpp:Singularity::environmentPrefix).
func (r Runtime) prefix() string {
	if strings.Contains(r.Version, "apptainer") {
		return "APPTAINERENV_"
	}
	return "SINGULARITYENV_"
}

// Report is what a probe found.
type Report struct {
	Runtime
	// Sandbox and SIF say which images can run: directories, and files.
	Sandbox, SIF bool
	// PIDNamespaces says whether images ran with a PID namespace of their own.
	PIDNamespaces bool
	// UserNamespaces says whether the runtime works by user namespaces; nil if it is not known.
	UserNamespaces *bool
	// Trouble is what the runtime said last when no image ran.
	Trouble string
}

// Works says whether some image can run.
func (r Report) Works() bool { return r.Sandbox || r.SIF }

// Images are those that HTCondor brings to find out whether a runtime works.
type Images struct {
	Sandbox string // SINGULARITY_TEST_SANDBOX
	SIF     string // LIBEXEC/exit_37.sif
	// Timeout bounds each run (SINGULARITY_TEST_SANDBOX_TIMEOUT).
	Timeout time.Duration
	// PIDNamespaces is SINGULARITY_USE_PID_NAMESPACES; nil for auto, which tries.
	PIDNamespaces *bool
}

// Good is the program of those images, and its exit status.
const (
	Good       = "/exit_37"
	GoodStatus = 37
)

// namespaceProgram of the directory prints the number of its user namespace.
const namespaceProgram = "/get_user_ns"

// Run runs a program as a job would be run and waits for its end. It gives the exit status, -1 if a signal
// ended it, and its output.
type Run func(ctx context.Context, argv []string) (status int, output []byte, err error)

// Probe runs the runtime with HTCondor's images (starter_v61_main.cpp:printClassAd). The error says that the runtime
// itself cannot be executed, or that nothing can.
func (s Site) Probe(ctx context.Context, run Run, images Images) (Report, error) {
	var r Report
	bounded := func(argv ...string) (int, []byte, error) {
		ctx, cancel := context.WithTimeout(ctx, images.Timeout)
		defer cancel()
		return run(ctx, argv)
	}
	status, output, err := bounded(s.Program, "--version")
	switch {
	case err != nil:
		return r, fmt.Errorf("ask %s for its version: %w", s.Program, err)
	case status != 0:
		return r, fmt.Errorf("ask %s for its version: it ended with status %d: %s", s.Program, status, LastWords(output))
	}
	if r.Runtime = RuntimeOf(output); r.Version == "" {
		return r, fmt.Errorf("ask %s for its version: it says nothing", s.Program)
	}
	tries := []bool{true, false}
	if images.PIDNamespaces != nil {
		tries = []bool{*images.PIDNamespaces}
	}
	hangs := false
	try := func(image string) bool {
		for i, namespaces := range tries {
			s.PIDNamespaces = namespaces
			argv := append(append([]string{s.Program, "exec"}, s.containment()...), image, Good)
			status, output, err := bounded(argv...)
			if err == nil && status == GoodStatus {
				r.PIDNamespaces, tries = namespaces, tries[i:i+1]
				return true
			}
			if hangs = err != nil; hangs { // the startd waits
				r.Trouble = err.Error()
				return false
			} else if words := LastWords(output); words != "" {
				r.Trouble = words
			}
		}
		return false
	}
	r.Sandbox = try(images.Sandbox)
	r.SIF = !hangs && try(images.SIF)
	if r.Sandbox && !hangs {
		s.PIDNamespaces = r.PIDNamespaces
		argv := append(append([]string{s.Program, "exec"}, s.containment()...), images.Sandbox, namespaceProgram)
		if status, output, err := bounded(argv...); err == nil && status == GoodStatus {
			r.UserNamespaces = otherNamespace(output)
		}
	}
	if r.Works() {
		r.Trouble = ""
	}
	return r, nil
}

// otherNamespace says whether the program ran in another user namespace than this one.
func otherNamespace(output []byte) *bool {
	own, err := os.Readlink("/proc/self/ns/user")
	number := strings.TrimSpace(string(output[:min(len(output), maxVersion)]))
	if err != nil || number == "" || strings.Trim(number, "0123456789") != "" {
		return nil
	}
	other := own != "user:["+number+"]"
	return &other
}

// maxWords bounds what is quoted of a runtime's output, in bytes.
const maxWords = 500

// LastWords is the line of a runtime's output that says what went wrong, without colors: the last that is fatal or an
// error, or else the last at all.
func LastWords(output []byte) string {
	var last, worst string
	for line := range strings.Lines(colors.ReplaceAllString(string(output), "")) {
		line = strings.TrimSpace(strings.ToValidUTF8(line, "?"))
		if line == "" {
			continue
		}
		last = line
		if strings.HasPrefix(line, "FATAL") || strings.HasPrefix(line, "ERROR") || strings.HasPrefix(line, "Error") {
			worst = line
		}
	}
	if worst == "" {
		worst = last
	}
	worst = printable(worst)
	if len(worst) > maxWords {
		worst = strings.ToValidUTF8(worst[:maxWords], "") + "..."
	}
	return worst
}

// printable has spaces in the place of control characters.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}

var colors = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")

// ByMachine is the [Disk] of a job that starts in Dir.
type ByMachine struct{ Dir string }

// Exists implements [Disk].
func (d ByMachine) Exists(path string) bool { _, err := os.Stat(d.at(path)); return err == nil }

// IsDir implements [Disk].
func (d ByMachine) IsDir(path string) bool {
	info, err := os.Stat(d.at(path))
	return err == nil && info.IsDir()
}

func (d ByMachine) at(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(d.Dir, path)
}
