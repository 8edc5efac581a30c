package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"

	"podstarter/sandbox/confine"
)

const (
	// again is the last argument of the program when it has started itself within Landlock's rules.
	again = "-confined"
	// memoryTarget is when the garbage collector works harder, in bytes.
	memoryTarget = 192 << 20
	// maxFiles are open when a file is read; a directory needs one for each level.
	maxFiles = 32
)

// maxMemory is the hard bound of private writable memory in bytes (RLIMIT_DATA). Address space
// that Go only reserves does not count, as it would for RLIMIT_AS. Tests with the race detector change it.
var maxMemory uint64 = 768 << 20

// libraries are what a program that is not static needs to start. Only tests are.
var libraries []string

// prepare does what must be done before the program starts itself again, and starts it. Landlock
// confines one thread, and a Go program has several; exec(2) leaves only the one that calls it.
// If prepare returns, it gives what could not be had.
func prepare(o options, args []string) []string {
	runtime.LockOSThread() // and never unlocked: what follows is about this thread
	missing := limit(o)
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return append(missing, "no_new_privs: "+err.Error(), "landlock: it needs no_new_privs")
	}
	const self = "/proc/self/exe"
	rules := confine.Rules{Read: append([]string{self}, libraries...)}
	if o.tree {
		// The directory itself, whatever its path is by now.
		rules.Read = append(rules.Read, "/proc/self/fd/"+strconv.Itoa(o.fd))
	}
	if err := rules.Apply(); err != nil {
		return append(missing, "landlock: "+err.Error())
	}
	// Nothing but the image and the standard files goes along.
	if err := closeOthers(o.fd); err != nil {
		missing = append(missing, "close descriptors: "+err.Error())
	}
	err := unix.Exec(self, append(append([]string{os.Args[0]}, args...), again), os.Environ())
	return append(missing, fmt.Sprintf("landlock: start %s again: %v", self, err))
}

// closeOthers lets exec(2) close all descriptors above the standard files, except one.
func closeOthers(fd int) error {
	low, high := max(fd, 2)+1, fd-1
	var err error
	if high > 2 {
		err = unix.CloseRange(3, uint(high), unix.CLOSE_RANGE_CLOEXEC)
	}
	return errors.Join(err, unix.CloseRange(uint(low), math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC))
}

// limit sets the limits of this process.
func limit(o options) (missing []string) {
	files := uint64(maxFiles)
	if o.tree {
		files += uint64(o.bounds.Depth)
	}
	for _, l := range []struct {
		name     string
		resource int
		max      uint64
	}{
		{"core", unix.RLIMIT_CORE, 0},
		{"files", unix.RLIMIT_NOFILE, files},
		{"memory", unix.RLIMIT_DATA, maxMemory},
	} {
		var now unix.Rlimit
		err := unix.Getrlimit(l.resource, &now)
		if err == nil {
			// A limit can be lowered by everybody.
			n := min(l.max, now.Max)
			err = unix.Setrlimit(l.resource, &unix.Rlimit{Cur: n, Max: n})
		}
		if err != nil {
			missing = append(missing, "limit of "+l.name+": "+err.Error())
		}
	}
	return missing
}

// confined completes the confinement in the program that was started again, and checks that it is effective.
func confined(o options) (missing []string) {
	fd, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == nil {
		_ = unix.Close(fd)
		missing = append(missing, "landlock: the root directory can be read")
	}
	return append(missing, filtered(o)...)
}

// filtered is what is possible without Landlock, too.
func filtered(o options) (missing []string) {
	if err := refuseSystemCalls(o.tree); err != nil {
		return []string{"seccomp: " + err.Error()}
	}
	return nil
}
