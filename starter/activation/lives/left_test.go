package lives_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// judgeRemains: nothing is left of a life: no sandbox, and no process.
func (w *world) judgeRemains() {
	w.Helper()
	left, err := os.ReadDir(w.execute())
	w.must(err)
	for _, entry := range left {
		w.Errorf("%s is left in EXECUTE", entry.Name())
	}
	state, err := os.ReadDir(w.options.Settings.StateDir())
	w.must(err)
	for _, entry := range state {
		if entry.IsDir() {
			w.Errorf("the control directory %s is left", entry.Name())
		}
	}
	for _, fd := range w.orphans {
		ended, err := 0, error(unix.EINTR)
		for errors.Is(err, unix.EINTR) {
			ended, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(patience/time.Millisecond))
		}
		if ended != 1 {
			w.Errorf("a process does not end with its wrapper: %v", err)
		}
	}
	for _, pid := range processesOf(w.dir) {
		w.Errorf("process %s is left: %s", pid, processText(pid, "cmdline"))
	}
}

// processesOf finds the processes that have a directory in their arguments, environment
// or as their own directory.
func processesOf(dir string) (found []string) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, path := range all {
		pid := filepath.Base(path)
		if processText(pid, "cmdline") == "" {
			continue // it is ending
		}
		cwd, _ := os.Readlink(filepath.Join(path, "cwd"))
		if strings.HasPrefix(cwd, dir) || strings.Contains(processText(pid, "cmdline")+processText(pid, "environ"), dir) {
			found = append(found, pid)
		}
	}
	return found
}

func processText(pid, name string) string {
	text, _ := os.ReadFile(filepath.Join("/proc", pid, name))
	return string(bytes.ReplaceAll(text, []byte{0}, []byte{' '}))
}

// belongings are what this process has: goroutines by what they do, and descriptors by
// what they are of.
type belongings struct {
	goroutines, descriptors map[string]int
	stacks                  map[string]string // one of each kind of goroutine
}

// possessions counts them.
func possessions() belongings {
	b := belongings{map[string]int{}, map[string]int{}, map[string]string{}}
	stacks := make([]byte, 16<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		if origin := originOf(stack); origin != "" {
			b.goroutines[origin]++
			b.stacks[origin] = stack
		}
	}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		panic(err)
	}
	for _, entry := range entries {
		of, err := os.Readlink("/proc/self/fd/" + entry.Name())
		if err != nil || strings.HasPrefix(of, "/proc/") {
			continue // of this look
		}
		kind, number, _ := strings.Cut(of, "[")
		if kind == "anon_inode:" {
			kind += "[" + number // what it is, such as a pidfd
		}
		b.descriptors[kind]++
	}
	return b
}

// originOf is who has started a goroutine of this program; empty for others.
func originOf(stack string) string {
	_, origin, ok := strings.Cut(stack, "created by ")
	if !ok || !strings.Contains(stack, "podstarter/") || strings.Contains(stack, "hostprog.(*lesserThreads).serve") {
		return "" // a host keeps its threads with fewer rights as long as the process lives
	}
	creator, place, _ := strings.Cut(origin, "\n")
	creator, _, _ = strings.Cut(creator, " in goroutine ")
	place, _, _ = strings.Cut(strings.TrimSpace(place), " ")
	if strings.HasPrefix(creator, "testing.") {
		return ""
	}
	return creator + " at " + place
}

// more is what there is now that was not there before.
func (b belongings) more() (more []string) {
	now := possessions()
	for _, kind := range []struct{ before, now map[string]int }{{b.goroutines, now.goroutines}, {b.descriptors, now.descriptors}} {
		for what, n := range kind.now {
			if n > kind.before[what] {
				more = append(more, what+"\n"+now.stacks[what])
			}
		}
	}
	slices.Sort(more)
	return more
}

// left is what this process has gained and keeps. What has just been told to end may still
// be at it.
func (b belongings) left() []string {
	for deadline := time.Now().Add(patience); ; runtime.Gosched() {
		more := b.more()
		if len(more) == 0 || time.Now().After(deadline) {
			return more
		}
		time.Sleep(time.Millisecond) // nothing tells when a goroutine has ended
	}
}

// sparing runs all lives, and checks then that this process is as it was before: no
// goroutine and no descriptor is left.
type sparing struct{ *testing.M }

// Run implements agenttest.Tests.
func (s sparing) Run() int {
	if r, w, err := os.Pipe(); err == nil { // with the first pipe, the runtime makes its poller
		r.Close()
		w.Close()
	}
	before := possessions()
	code := s.M.Run()
	if left := before.left(); len(left) > 0 {
		fmt.Fprintf(os.Stderr, "left in this process:\n%s\n", strings.Join(left, "\n"))
		return 1
	}
	return code
}
