package agent

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"podstarter/payload"
	"podstarter/payload/memcg"
)

// cgroup reads the figures of the control group this process is in. In a container that is
// the container's group; no other process needs access to it.
type cgroup struct {
	version int // 1 if memory is accounted by version 1, else 2
	// dirs maps a controller to the directory of the process's group: "memory",
	// "cpu", "cpuacct", "pids", "blkio" (version 1), and "" for version 2. A machine may have
	// some controllers in each.
	dirs map[string]string
	// above are the groups above that this process can see and that may limit memory, too.
	above []string
	// peak is memory.peak of version 2 if it can be begun anew; else nil.
	peak *os.File
}

// cgroupSample is one reading. A figure that the kernel does not offer is -1.
type cgroupSample struct {
	memory                               memcg.Figures
	user, system, throttled              int64 // ns
	periods, throttledPeriods            int64
	pids, pidsPeak, pidsRefused          int64
	readBytes, writeBytes, reads, writes int64
}

// openCgroup finds the group by /proc/self/cgroup and /proc/self/mountinfo below root,
// which is "/" except in tests. It returns nil if there is none.
func openCgroup(root string) *cgroup {
	groups := readLimited(filepath.Join(root, "proc/self/cgroup"))
	mounts := readLimited(filepath.Join(root, "proc/self/mountinfo"))
	c := &cgroup{dirs: make(map[string]string)}
	of := parseGroups(groups)
	tops := make(map[string]string) // where a directory of dirs is mounted
	for _, m := range parseMounts(mounts) {
		for controller, group := range of {
			if !m.has(controller) {
				continue
			}
			below, ok := m.below(group)
			if !ok {
				continue
			}
			dir := filepath.Join(root, m.point, below)
			if st, err := os.Stat(dir); err == nil && st.IsDir() && !isTop(dir, controller) {
				c.dirs[controller], tops[controller] = dir, filepath.Join(root, m.point)
			}
		}
	}
	if len(c.dirs) == 0 {
		return nil
	}
	c.version = 2
	controller := ""
	if _, ok := c.dirs["memory"]; ok {
		c.version, controller = 1, "memory"
	}
	top := tops[controller]
	for dir := c.dirs[controller]; dir != "" && dir != top; {
		dir = filepath.Dir(dir)
		c.above = append(c.above, dir)
	}
	return c
}

// memoryDir is where the files of the memory controller are; empty if nowhere.
func (c *cgroup) memoryDir() string {
	if c.version == 1 {
		return c.dirs["memory"]
	}
	return c.dirs[""]
}

// limitAbove is the least memory limit of the groups above; -1 without one. In a cgroup
// namespace there are none: nobody in it sees the limit of a pod, for example.
func (c *cgroup) limitAbove() int64 {
	least := int64(-1)
	for _, dir := range c.above {
		least = memcg.Least(least, memcg.Limit(c.version, reader(dir)))
	}
	return least
}

func reader(dir string) func(string) []byte {
	return func(name string) []byte { return readLimited(filepath.Join(dir, name)) }
}

// isTop tells whether a directory is the top of a hierarchy, which counts the whole
// machine. The path does not show it: in a cgroup namespace a group's own path is "/". Only
// the top has a release_agent in version 1, and only it lacks cgroup.events in version 2.
func isTop(dir, controller string) bool {
	if controller == "" {
		_, err := os.Stat(filepath.Join(dir, "cgroup.events"))
		return err != nil
	}
	_, err := os.Stat(filepath.Join(dir, "release_agent"))
	return err == nil
}

// parseGroups reads /proc/PID/cgroup (cgroups(7)): lines of
// "hierarchy:controller,controller:path"; version 2 has no controllers.
func parseGroups(data []byte) map[string]string {
	groups := make(map[string]string)
	for line := range bytes.Lines(data) {
		parts := strings.SplitN(strings.TrimRight(string(line), "\n"), ":", 3)
		if len(parts) != 3 || !strings.HasPrefix(parts[2], "/") {
			continue
		}
		for controller := range strings.SplitSeq(parts[1], ",") {
			if !strings.HasPrefix(controller, "name=") {
				groups[controller] = parts[2]
			}
		}
	}
	return groups
}

// cgroupMount is one mount of a cgroup file system.
type cgroupMount struct {
	root, point string
	controllers []string // nil for version 2
}

// parseMounts reads /proc/PID/mountinfo (proc(5)): "id parent major:minor root
// point options [optional ...] - type source superoptions".
func parseMounts(data []byte) []cgroupMount {
	var mounts []cgroupMount
	for line := range bytes.Lines(data) {
		before, after, found := strings.Cut(string(line), " - ")
		head, tail := strings.Fields(before), strings.Fields(after)
		if !found || len(head) < 5 || len(tail) < 3 {
			continue
		}
		var controllers []string
		switch tail[0] {
		case "cgroup2":
		case "cgroup":
			controllers = strings.Split(tail[2], ",")
		default:
			continue
		}
		mounts = append(mounts, cgroupMount{root: unescape(head[3]), point: unescape(head[4]), controllers: controllers})
	}
	return mounts
}

// unescape undoes the octal escapes of mountinfo for space, tab, newline and
// backslash.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

func (m cgroupMount) has(controller string) bool {
	if controller == "" {
		return m.controllers == nil
	}
	for _, c := range m.controllers {
		if c == controller {
			return true
		}
	}
	return false
}

// below gives the path of a group within the mount: a container without a
// cgroup namespace has its own group as the root of the mount.
func (m cgroupMount) below(group string) (string, bool) {
	if group != filepath.Clean(group) {
		return "", false // "/../..": outside of this namespace
	}
	if m.root == "/" {
		return group, true
	}
	rest, ok := strings.CutPrefix(group, m.root)
	return rest, ok && (rest == "" || rest[0] == '/')
}

// sample reads the group's figures. A nil cgroup gives a nil sample.
func (c *cgroup) sample() *cgroupSample {
	if c == nil {
		return nil
	}
	s := &cgroupSample{memcg.None(), -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1}
	c.sampleMemory(s)
	c.sampleRest(s)
	return s
}

func (c *cgroup) sampleMemory(s *cgroupSample) {
	dir := c.memoryDir()
	if dir == "" {
		return
	}
	s.memory = memcg.Read(c.version, func(name string) []byte {
		if name == memcg.Peak2 && c.peak != nil {
			return readAt(c.peak)
		}
		return readLimited(filepath.Join(dir, name))
	})
	s.memory.Limit = memcg.Least(s.memory.Limit, c.limitAbove())
}

// cgroupUsage is what a run has used so far.
func (a *agent) cgroupUsage(r *run) *payload.CgroupUsage {
	now := a.cgroup.sample()
	if now == nil || r.base == nil {
		return nil
	}
	return now.since(r.base, a.cgroup.version, &r.peak)
}

// since makes counters relative to an earlier sample, and process memory too, since this
// program's own memory is not the payload's. high is the highest memory use seen in
// between; since updates it.
func (s *cgroupSample) since(base *cgroupSample, version int, high *int64) *payload.CgroupUsage {
	m := s.memory
	*high = max(*high, m.Current)
	peak := m.Peak
	if peak >= 0 && peak <= base.memory.Peak || peak < 0 && *high > 0 {
		peak = *high // the kernel's peak is an earlier run's, or missing
	}
	return &payload.CgroupUsage{
		Version:       version,
		MemoryCurrent: m.Current,
		MemoryUsed:    delta(m.Own(), base.memory.Own()),
		MemoryCache:   m.Cache,
		MemoryPeak:    peak,
		MemoryLimit:   m.Limit,
		MemorySwapped: m.Swap,
		MemoryHigh:    delta(m.High, base.memory.High),
		OOMKills:      delta(m.OOMKills, base.memory.OOMKills),
		UserCPU:       time.Duration(delta(s.user, base.user)),
		SystemCPU:     time.Duration(delta(s.system, base.system)),
		ThrottledCPU:  time.Duration(delta(s.throttled, base.throttled)),
		Periods:       delta(s.periods, base.periods),
		Throttled:     delta(s.throttledPeriods, base.throttledPeriods),
		Pids:          s.pids,
		PidsPeak:      s.pidsPeak,
		PidsRefused:   delta(s.pidsRefused, base.pidsRefused),
		ReadBytes:     delta(s.readBytes, base.readBytes),
		WriteBytes:    delta(s.writeBytes, base.writeBytes),
		Reads:         delta(s.reads, base.reads),
		Writes:        delta(s.writes, base.writes),
	}
}

// delta is -1 for a missing figure. A file that appears with the first use of a device
// counts from 0.
func delta(now, base int64) int64 {
	if now < 0 {
		return -1
	}
	return max(now-max(base, 0), 0)
}

// maxCgroupFile bounds a file of the cgroup file system; memory.stat and
// mountinfo are the long ones.
const maxCgroupFile = 1 << 20

func readLimited(path string) []byte {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxCgroupFile))
	if err != nil {
		return nil
	}
	return data
}

// number reads a file with one number; "max" and everything else that is not a number gives
// -1.
func number(path string) int64 { return memcg.Number(readLimited(path)) }

// flatKeyed reads a file of "key value" lines.
func flatKeyed(path string) map[string]int64 { return memcg.FlatKeyed(readLimited(path)) }

func valueOr(values map[string]int64, key string, scale int64) int64 {
	if n, ok := values[key]; ok {
		return n * scale
	}
	return -1
}
