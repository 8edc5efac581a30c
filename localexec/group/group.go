package group

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/payload"
)

// controllers are wanted in each group; without one, what it does is missing.
var controllers = []string{"memory", "pids", "cpu", "io"}

const (
	// maxGroups and maxDepth bound what the payload's user may make in its group, and so how long its removal takes.
	maxGroups = 1000
	maxDepth  = 32
	// maxName bounds a name in bytes, with room for the endings.
	maxName = 240
	// maxWeight is the kernel's bound of cpu.weight.
	maxWeight = 10000
)

// ErrBusy says that processes of an earlier job could not be ended.
var ErrBusy = errors.New("processes of an earlier job are left")

// Group is a payload's control group.
type Group struct {
	place *Place
	slice string // below the top
}

// Names of the two directories of a group end so.
const (
	sliceEnd = ".slice"
	scopeEnd = ".scope"
)

// Make makes a group that user and group may divide. One of the same name, which an earlier starter left, goes first, with all
// processes. Limits that the kernel does not take are logged, as under the stock starter.
func (p *Place) Make(ctx context.Context, want payload.Group, uid, gid int, log *slog.Logger) (*Group, error) {
	name := strings.ReplaceAll(want.Name, "/", "_")
	if name == "" || len(name) > maxName || strings.ContainsAny(name, "\n\x00") {
		return nil, fmt.Errorf("make a control group: %.40q is no name for one", want.Name)
	}
	g := &Group{place: p, slice: path.Join(p.base, name+sliceEnd)}
	if err := g.Remove(ctx); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBusy, err)
	}
	above := ""
	for part := range strings.SplitSeq(g.slice, "/") {
		above = path.Join(above, part)
		if err := p.root.Mkdir(above, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("make control group %s: %w", path.Join(p.top, above), err)
		}
		p.enable(above, log)
	}
	if err := p.root.Mkdir(path.Join(g.slice, name+scopeEnd), 0o755); err != nil {
		return nil, errors.Join(fmt.Errorf("make control group for the processes of %s: %w", g.Path(), err), g.Remove(ctx))
	}
	g.limit(want, log)
	if os.Geteuid() == 0 {
		g.divisible(uid, gid, log)
	}
	return g, nil
}

// enable gives the groups in a directory the controllers. Each is written by itself, since the kernel takes all of a write or nothing.
func (p *Place) enable(dir string, log *slog.Logger) {
	file := path.Join(dir, "cgroup.subtree_control")
	has := " " + strings.TrimSpace(string(p.read(file))) + " "
	for _, c := range controllers {
		if strings.Contains(has, " "+c+" ") {
			continue
		}
		if err := p.write(file, "+"+c); err != nil {
			log.Debug("A controller is missing in control groups", "controller", c, "group", path.Join(p.top, dir), "error", err)
		}
	}
}

// limit writes the limits (proc_family_direct_cgroup_v2.cpp:cgroupify_myself).
func (g *Group) limit(want payload.Group, log *slog.Logger) {
	set := func(file string, value int64) {
		if err := g.place.write(path.Join(g.slice, file), strconv.FormatInt(value, 10)); err != nil {
			log.Warn("The job's control group lacks a setting", "group", g.Path(), "file", file, "value", value, "error", err)
		}
	}
	if want.MemoryMax > 0 {
		set("memory.max", want.MemoryMax)
		if want.NoSwap {
			set("memory.swap.max", 0)
		}
	}
	if want.MemoryLow > 0 {
		set("memory.low", want.MemoryLow)
	}
	if want.CPUWeight > 0 {
		set("cpu.weight", min(want.CPUWeight, maxWeight))
	}
	set("memory.oom.group", 1)
	set("cgroup.max.descendants", maxGroups)
	set("cgroup.max.depth", maxDepth)
}

// divisible lets the payload's user make groups below its own, as a pilot job does for its slots.
func (g *Group) divisible(uid, gid int, log *slog.Logger) {
	for _, name := range []string{".", "cgroup.procs", "cgroup.subtree_control"} {
		if err := g.place.root.Lchown(path.Join(g.slice, name), uid, gid); err != nil {
			log.Warn("The job cannot divide its control group", "group", g.Path(), "error", err)
		}
	}
}

// Path is the directory with the limits and figures.
func (g *Group) Path() string { return path.Join(g.place.top, g.slice) }

// Pauses between looks at a group that is being killed.
const (
	firstPause = time.Millisecond
	lastPause  = 50 * time.Millisecond
	// killTime is for how long a group may have processes after they were killed: one that hangs in the kernel stays.
	killTime = 5 * time.Second
)

// Remove kills all processes of the group, and removes it with the groups in it. A group that is not there is none to remove.
func (g *Group) Remove(ctx context.Context) error { return g.end(ctx, killFile) }

// killFile is since Linux 5.14. Without it, each process gets a signal.
const killFile = "cgroup.kill"

func (g *Group) end(ctx context.Context, killFile string) error {
	ctx, cancel := context.WithTimeout(ctx, killTime)
	defer cancel()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		if _, err := g.place.root.Lstat(g.slice); errors.Is(err, fs.ErrNotExist) {
			return nil // perhaps only now: a startd removes what is left of its starters' groups
		}
		g.regain(killFile)
		err := g.kill(killFile)
		if err == nil && g.empty() {
			if err = g.place.removeTree(g.slice, 0); err == nil {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			if err == nil {
				err = errors.New("processes are left")
			}
			return fmt.Errorf("end control group %s: %w", g.Path(), err)
		case <-time.After(pause):
		}
	}
}

// regain takes rights back that a payload with the starter's own user may have taken. Root needs none, and another user gets none.
func (g *Group) regain(killFile string) {
	for _, name := range []string{".", killFile, "cgroup.freeze", "cgroup.events"} {
		_ = g.place.root.Chmod(path.Join(g.slice, name), openMode)
	}
}

// openMode is for directories too: the payload can make one that is named like a file that the kernel does not have.
const openMode = 0o755

func (g *Group) empty() bool {
	for line := range strings.Lines(string(g.place.read(path.Join(g.slice, "cgroup.events")))) {
		if strings.TrimSpace(line) == "populated 0" {
			return true
		}
	}
	return false
}

// kill sends SIGKILL to all processes: at once by a file, and without that to each, while none can run.
func (g *Group) kill(killFile string) error {
	file := path.Join(g.slice, killFile)
	if info, err := g.place.root.Lstat(file); err == nil && info.Mode().IsRegular() { // the payload's user can make a directory of that name
		return g.place.write(file, "1")
	}
	freeze := path.Join(g.slice, "cgroup.freeze")
	if err := g.place.write(freeze, "1"); err != nil {
		return err
	}
	return errors.Join(g.place.killEach(g.slice, 0), g.place.write(freeze, "0"))
}

func (p *Place) killEach(dir string, depth int) error {
	for line := range strings.Lines(string(p.read(path.Join(dir, "cgroup.procs")))) {
		if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil && pid > 0 && pid != os.Getpid() {
			if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("kill process %d: %w", pid, err)
			}
		}
	}
	return p.below(dir, depth, p.killEach)
}

func (p *Place) removeTree(dir string, depth int) error {
	if err := p.below(dir, depth, p.removeTree); err != nil {
		return err
	}
	if err := p.root.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// below does something to each group in a directory. It takes rights back as regain does.
func (p *Place) below(dir string, depth int, do func(dir string, depth int) error) error {
	if depth > maxDepth {
		return fmt.Errorf("%s is too deep", dir)
	}
	_ = p.root.Chmod(dir, openMode)
	f, err := p.root.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		entries, err := f.ReadDir(128)
		for _, e := range entries {
			if e.IsDir() {
				if err := do(path.Join(dir, e.Name()), depth+1); err != nil {
					return err
				}
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
