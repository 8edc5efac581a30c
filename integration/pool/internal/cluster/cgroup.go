package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-multierror"
	"github.com/moby/sys/mountinfo"
)

// A CgroupTree is one cgroup directory, in every hierarchy of the machine, below which the kubelet puts its pods.
type CgroupTree struct {
	Name string
	// hierarchies are the mount points.
	hierarchies []hierarchy
}

type hierarchy struct {
	mount   string
	unified bool
	cpuset  bool
}

// FindCgroups finds the machine's cgroup hierarchies; name is that of the tree.
func FindCgroups(name string) (CgroupTree, error) {
	mounts, err := mountinfo.GetMounts(mountinfo.FSTypeFilter("cgroup", "cgroup2"))
	if err != nil {
		return CgroupTree{}, fmt.Errorf("finding the cgroup hierarchies: %w", err)
	}
	t := CgroupTree{Name: name}
	for _, m := range mounts {
		options := strings.Split(m.VFSOptions, ",")
		t.hierarchies = append(t.hierarchies, hierarchy{m.Mountpoint, m.FSType == "cgroup2", slices.Contains(options, "cpuset")})
	}
	if len(t.hierarchies) == 0 {
		return t, errors.New("no cgroup hierarchy is mounted; the kubelet needs them")
	}
	return t, nil
}

// Unified says whether cgroup v2 is the machine's only hierarchy.
func (t CgroupTree) Unified() bool { return len(t.hierarchies) == 1 && t.hierarchies[0].unified }

// Make makes the tree's directories, with every available controller.
func (t CgroupTree) Make() error {
	for _, h := range t.hierarchies {
		dir := filepath.Join(h.mount, t.Name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("making the cgroup of the pods: %w", err)
		}
		if h.unified {
			delegate(h.mount)
			delegate(dir)
		}
		if !h.cpuset {
			continue
		}
		// A new directory of the v1 cpuset hierarchy is empty, and nothing can run in it (cpuset(7)).
		for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
			text, err := os.ReadFile(filepath.Join(h.mount, name))
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, name), text, 0o644)
			}
			if err != nil {
				return fmt.Errorf("making the cgroup of the pods: %w", err)
			}
		}
	}
	return nil
}

// delegate turns on every controller for the children of a v2 directory, as far as the kernel lets us (cgroups(7)): the
// kubelet decides which ones it needs.
func delegate(dir string) {
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return
	}
	for _, c := range strings.Fields(string(text)) {
		_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+c), 0o644)
	}
}

// Processes returns the processes in the tree.
func (t CgroupTree) Processes() []int {
	seen := map[int]bool{}
	t.walk(func(dir string) {
		text, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil {
			return
		}
		for _, f := range strings.Fields(string(text)) {
			var pid int
			if _, err := fmt.Sscan(f, &pid); err == nil && pid > 0 {
				seen[pid] = true
			}
		}
	})
	var pids []int
	for pid := range seen {
		pids = append(pids, pid)
	}
	return pids
}

func (t CgroupTree) walk(visit func(dir string)) {
	for _, h := range t.hierarchies {
		_ = filepath.WalkDir(filepath.Join(h.mount, t.Name), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				visit(path)
			}
			return nil
		})
	}
}

// Remove removes the tree's directories. A directory whose last process has just ended may be busy for a moment.
func (t CgroupTree) Remove() error {
	var dirs []string
	t.walk(func(dir string) { dirs = append(dirs, dir) })
	slices.Reverse(dirs)
	var errs *multierror.Error
	for _, dir := range dirs {
		var err error
		for range 50 {
			if err = os.Remove(dir); err == nil || errors.Is(err, fs.ErrNotExist) {
				err = nil
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		if err != nil {
			errs = multierror.Append(errs, fmt.Errorf("removing a cgroup: %w", err))
		}
	}
	return errs.ErrorOrNil()
}
