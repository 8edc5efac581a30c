package group

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Site says where groups are made.
type Site struct {
	Base        string // BASE_CGROUP: below the group above this process's; "" for no groups
	WithoutRoot bool   // CREATE_CGROUP_WITHOUT_ROOT

	Top  string // where the hierarchy is mounted; "" is /sys/fs/cgroup
	Self string // the file with this process's group; "" is /proc/self/cgroup
}

// ErrOff says that the site wants no groups.
var ErrOff = errors.New("BASE_CGROUP is empty")

// Place is where groups are made.
type Place struct {
	root      *os.Root
	top, base string // base is below top
}

const (
	usualTop  = "/sys/fs/cgroup"
	usualSelf = "/proc/self/cgroup"
	// maxFile bounds what is read of a file, in bytes.
	maxFile = 1 << 20
)

// Find looks whether groups can be made here. The error says why not. The place must be closed.
func Find(s Site) (*Place, error) {
	if strings.TrimSpace(s.Base) == "" {
		return nil, ErrOff
	}
	if os.Geteuid() != 0 && !s.WithoutRoot {
		return nil, errors.New("the starter is not root, and CREATE_CGROUP_WITHOUT_ROOT is not true")
	}
	if s.Top == "" {
		s.Top = usualTop
	}
	if s.Self == "" {
		s.Self = usualSelf
	}
	var at unix.Statfs_t
	if err := unix.Statfs(s.Top, &at); err != nil {
		return nil, fmt.Errorf("look at %s: %w", s.Top, err)
	}
	if at.Type != unix.CGROUP2_SUPER_MAGIC {
		return nil, fmt.Errorf("%s is not version 2 of control groups", s.Top)
	}
	if !joinsAtFork(release()) {
		return nil, errors.New("it takes Linux 5.7 or later to start a process in a control group")
	}
	if err := mayClone3(); err != nil {
		return nil, err
	}
	text, err := readFile(s.Self)
	if err != nil {
		return nil, fmt.Errorf("look for this process's control group: %w", err)
	}
	base, err := baseOf(text, s.Base)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(s.Top)
	if err != nil {
		return nil, fmt.Errorf("open the top of the control groups: %w", err)
	}
	p := &Place{root: root, top: s.Top, base: base}
	if err = p.holds(ownGroup(text), os.Getpid()); err == nil {
		err = p.writable()
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// holds looks for this process where its group should be. In a container, another part of the hierarchy may be mounted than the one that
// /proc/self/cgroup is about, such as the machine's; groups there would be outside of the container's limits.
func (p *Place) holds(own string, pid int) error {
	file := path.Join(own, "cgroup.procs")
	for line := range strings.Lines(string(p.read(file))) {
		if strings.TrimSpace(line) == strconv.Itoa(pid) {
			return nil
		}
	}
	return fmt.Errorf("this process is not in %s: another part of the control groups is mounted than the one in which it is", path.Join(p.top, file))
}

// Close ends the use of the place. Its groups stay.
func (p *Place) Close() { p.root.Close() }

// Path is the directory of the groups.
func (p *Place) Path() string { return path.Join(p.top, p.base) }

// Missing are the controllers that groups here will lack.
func (p *Place) Missing() []string {
	dir := p.base
	for ; dir != "."; dir = path.Dir(dir) {
		if _, err := p.root.Stat(dir); err == nil {
			break
		}
	}
	file := "cgroup.controllers"
	// Make does not touch the top, and a group with processes cannot be told to give controllers that it does not give yet.
	if dir == "." || len(p.read(path.Join(dir, "cgroup.procs"))) > 0 {
		file = "cgroup.subtree_control"
	}
	has := strings.Fields(string(p.read(path.Join(dir, file))))
	var missing []string
	for _, c := range controllers {
		if !slices.Contains(has, c) {
			missing = append(missing, c)
		}
	}
	return missing
}

// baseOf is where groups are made: below the group above this process's, since a group that has groups with limits in it has no
// processes (proc_family_direct_cgroup_v2.cpp:make_full_cgroup_name). text is /proc/self/cgroup.
func baseOf(text []byte, base string) (string, error) {
	own := ownGroup(text)
	if own == "" {
		return "", errors.New("this process is in no control group of version 2")
	}
	full := path.Join(path.Dir("/"+own), path.Clean("/"+strings.TrimSpace(base)))
	if full = strings.TrimPrefix(full, "/"); !fs.ValidPath(full) || full == "." || strings.HasPrefix(own, "..") {
		return "", fmt.Errorf("no control group can be made for %.100q below that above %.200q", base, "/"+own)
	}
	return full, nil
}

// ownGroup is this process's group below the top, "." for the top, by /proc/self/cgroup; "" without version 2.
func ownGroup(text []byte) string {
	for line := range strings.Lines(string(text)) {
		if own, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "0::/"); ok {
			return cmp.Or(own, ".")
		}
	}
	return ""
}

// writable asks the kernel about the first directory on the way to the groups that exists.
func (p *Place) writable() error {
	for dir := p.base; ; dir = path.Dir(dir) {
		err := unix.Access(path.Join(p.top, dir), unix.R_OK|unix.W_OK)
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.ENOENT) || dir == "." {
			return fmt.Errorf("write to the control group %s: %w", path.Join(p.top, dir), err)
		}
	}
}

func release() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return ""
	}
	return unix.ByteSliceToString(name.Release[:])
}

// joinsAtFork tells whether a release of Linux has CLONE_INTO_CGROUP (clone3(2)).
func joinsAtFork(release string) bool {
	var major, minor int
	_, err := fmt.Sscanf(release, "%d.%d", &major, &minor)
	return err == nil && (major > 5 || major == 5 && minor >= 7)
}

// mayClone3 tells whether a process can be started in a control group. Runtimes of containers forbid clone3(2), since a filter of system calls
// cannot see its flags. Without an argument, it starts nothing and fails with EINVAL.
func mayClone3() error {
	if _, _, errno := unix.RawSyscall(unix.SYS_CLONE3, 0, 0, 0); errno != unix.EINVAL {
		return fmt.Errorf("start a process in a control group by clone3(2), which the container's filter of system calls may forbid: %w", errno)
	}
	return nil
}

func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile))
}

// read gives a file below the top; nil if it cannot be read.
func (p *Place) read(name string) []byte {
	f, err := p.root.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return nil
	}
	return data
}

// write writes to a file of the kernel's below the top. It makes none.
func (p *Place) write(name, text string) error {
	f, err := p.root.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
