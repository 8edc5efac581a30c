package payload

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

const (
	maxActivation = 128
	maxGroups     = 65536 // NGROUPS_MAX
	maxPath       = 4096  // PATH_MAX
	maxLimits     = 64    // more than there are resources
	maxCPUs       = 1024  // CPU_SETSIZE
	maxID         = 1<<32 - 2
)

// ValidActivation tells whether name is a valid activation name. The name becomes part of a
// file name in the control directory.
func ValidActivation(name string) bool {
	if name == "" || len(name) > maxActivation || name[0] == '.' {
		return false
	}
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// MaxLinks bounds the links of a start.
const MaxLinks = 64

// Validate checks whether a link can have these two paths.
func (l Link) Validate() error {
	below := func(a, b string) bool { return strings.HasPrefix(a+"/", b+"/") }
	isPath := func(p string) bool { return path.IsAbs(p) && path.Clean(p) == p && p != "/" }
	if !isPath(l.At) || !isPath(l.To) || below(l.At, l.To) || below(l.To, l.At) {
		return fmt.Errorf("cannot make a link from %.200q to %.200q; both must be absolute paths without '.', '..' and extra slashes, and neither below the other", l.At, l.To)
	}
	return nil
}

// Validate checks what it can without access to the system. Both ends call it: the starter
// to find a mistake near its origin, the wrapper because it trusts nobody.
func (s *Spec) Validate() error {
	if !ValidActivation(s.Activation) {
		return fmt.Errorf("activation %.40q is not a name of 1 to %d letters, digits, '.', '_', '-'", s.Activation, maxActivation)
	}
	if s.UID < 0 || s.UID > maxID || s.GID < 0 || s.GID > maxID {
		return fmt.Errorf("user %d and group %d are not both user and group IDs", s.UID, s.GID)
	}
	if len(s.Groups) > maxGroups {
		return fmt.Errorf("%d supplementary groups, at most %d are allowed", len(s.Groups), maxGroups)
	}
	for _, g := range s.Groups {
		if g < 0 || g > maxID {
			return fmt.Errorf("supplementary group %d is not a group ID", g)
		}
	}
	if s.MaxTasks < 0 {
		return fmt.Errorf("%d is not a valid limit of processes and threads", s.MaxTasks)
	}
	if s.Path == "" {
		return fmt.Errorf("no program to run")
	}
	switch {
	case len(s.Program) > MaxProgram:
		return fmt.Errorf("a program of %d bytes, at most %d are allowed", len(s.Program), MaxProgram)
	case s.Itself && (len(s.Program) > 0 || len(s.Args) == 0):
		return fmt.Errorf("the wrapper's own program comes with no other, and needs the name under which it runs")
	case s.AsRoot && len(s.Program) == 0 && !s.Itself:
		return fmt.Errorf("only a program that comes with the request, or the wrapper's own, can run as container-root")
	case s.AsRoot && (s.Stdin != "" || s.Stdout != "" || s.Stderr != "" || s.ImageEnv || len(s.Groups) > 0):
		return fmt.Errorf("a program that runs as container-root opens no files, and takes no groups and no environment of the image")
	case s.Rehearse && (len(s.Program) > 0 || s.Itself || s.Capture != 0 || len(s.Passed) > 0):
		return fmt.Errorf("a rehearsal takes no program, no open files, and keeps no output")
	case s.Capture < 0 || s.Capture > MaxCapture:
		return fmt.Errorf("the number of output bytes to keep, %d, is not between 0 and %d", s.Capture, MaxCapture)
	case s.Capture > 0 && (s.Stdout != "" || s.Stderr != "" || slices.ContainsFunc(s.Passed, func(name string) bool { return name != Stdin })):
		return fmt.Errorf("output cannot both be kept and go to files")
	}
	if !path.IsAbs(s.Dir) {
		return fmt.Errorf("working directory %q is not an absolute path", s.Dir)
	}
	if len(s.Links) > MaxLinks {
		return fmt.Errorf("%d links, at most %d are allowed", len(s.Links), MaxLinks)
	}
	files := []string{s.Path, s.Dir, s.Stdin, s.Stdout, s.Stderr}
	for _, l := range s.Links {
		if err := l.Validate(); err != nil {
			return err
		}
		files = append(files, l.At, l.To)
	}
	if err := s.Mounts.Validate(); err != nil {
		return err
	}
	if s.Mounts != nil {
		files = append(append(files, s.Mounts.Sandbox), s.Mounts.Dirs...)
	}
	for _, file := range files {
		if len(file) >= maxPath || strings.IndexByte(file, 0) >= 0 {
			return fmt.Errorf("path %.40q... has a NUL byte or %d bytes or more", file, maxPath)
		}
	}
	if err := s.validatePassed(); err != nil {
		return err
	}
	// Arguments and environment may hold secrets: refer to them by number.
	for i, arg := range s.Args {
		if strings.IndexByte(arg, 0) >= 0 {
			return fmt.Errorf("argument %d has a NUL byte", i)
		}
	}
	for i, entry := range s.Env {
		if strings.IndexByte(entry, 0) >= 0 || strings.IndexByte(entry, '=') < 1 {
			return fmt.Errorf("environment entry %d is not NAME=value without NUL bytes", i)
		}
	}
	if s.Umask < 0 || s.Umask > 0o777 {
		return fmt.Errorf("umask %#o is not between 0 and 0777", s.Umask)
	}
	if s.Nice < -20 || s.Nice > 19 {
		return fmt.Errorf("nice increment %d is not between -20 and 19", s.Nice)
	}
	if len(s.CPUs) > maxCPUs {
		return fmt.Errorf("%d CPUs to run on, at most %d are allowed", len(s.CPUs), maxCPUs)
	}
	for _, n := range s.CPUs {
		if n < 0 || n >= maxCPUs {
			return fmt.Errorf("CPU %d is not between 0 and %d", n, maxCPUs-1)
		}
	}
	if len(s.Limits) > maxLimits {
		return fmt.Errorf("%d resource limits, at most %d are allowed", len(s.Limits), maxLimits)
	}
	for _, l := range s.Limits {
		if _, ok := ResourceNumber(l.Resource); !ok {
			return fmt.Errorf("unknown resource %.40q in a limit", l.Resource)
		}
		if l.Soft > l.Hard {
			return fmt.Errorf("soft limit %d of %s is above its hard limit %d", l.Soft, l.Resource, l.Hard)
		}
	}
	return nil
}
