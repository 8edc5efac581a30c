package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/payload"
	"podstarter/payload/memcg"
)

const trees = "../../testdata/cgroup"

func TestCgroupTrees(t *testing.T) {
	tests := map[string]struct {
		base cgroupSample // what was there before the run
		want payload.CgroupUsage
	}{
		"v1": {
			base: cgroupSample{memory: memcg.Figures{Peak: 100, OOMKills: 1}, user: 995992602636, system: 179801234567, throttled: 345678, readBytes: 1, writeBytes: 1, reads: 5, writes: 1},
			want: payload.CgroupUsage{
				Version: 1, MemoryCurrent: 122073088, MemoryUsed: 5083136 + 1048576, MemoryCache: 114491392 - 1048576, MemoryPeak: 2179428352, MemoryLimit: -1, MemoryHigh: -1, OOMKills: 1,
				UserCPU: 1000 * time.Second, SystemCPU: 1000 * time.Second, ThrottledCPU: 812 * time.Millisecond,
				Periods: 120, Throttled: 7, Pids: 14, PidsPeak: -1, PidsRefused: 2, ReadBytes: 1064960 + 40960 - 1, WriteBytes: 4096 + 8192 - 1, Reads: 60, Writes: 2,
			},
		},
		"v2": {
			base: cgroupSample{memory: memcg.Figures{Anon: 8388608, Peak: 734003200, OOMKills: 4}, user: 123_000, system: 4_444_000, throttled: 4_567_000, readBytes: -1, writeBytes: -1, reads: -1, writes: -1},
			want: payload.CgroupUsage{
				Version: 2, MemoryCurrent: 318767104, MemoryUsed: 52428800, MemoryCache: 251658240 - 8388608, MemoryPeak: 318767104, MemoryLimit: 1 << 30, MemorySwapped: 4 << 20, OOMKills: 1,
				UserCPU: 80 * time.Second, SystemCPU: 11230 * time.Millisecond, ThrottledCPU: 1230 * time.Millisecond,
				Periods: 2100, Throttled: 33, Pids: 9, PidsPeak: 61, PidsRefused: 3, ReadBytes: 1064960 + 8192, WriteBytes: 40960, Reads: 62, Writes: 4,
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := openCgroup(filepath.Join(trees, name))
			if c == nil {
				t.Fatal("not found")
			}
			var high int64
			got := c.sample().since(&test.base, c.version, &high)
			if test.want.Version == 1 {
				// Figures copied from a running kernel.
				memory := c.dirs["memory"]
				test.want.MemoryCurrent = number(filepath.Join(memory, "memory.usage_in_bytes"))
				test.want.MemoryPeak = number(filepath.Join(memory, "memory.max_usage_in_bytes"))
				test.want.MemoryUsed = flatKeyed(filepath.Join(memory, "memory.stat"))["total_rss"] + 1048576
			}
			if diff := cmp.Diff(&test.want, got); diff != "" {
				t.Error(diff)
			}
			if got.MemoryCurrent <= 0 || got.MemoryPeak <= 0 || high != got.MemoryCurrent {
				t.Errorf("%+v, highest %d", got, high)
			}
		})
	}
}

func TestCgroupAbsent(t *testing.T) {
	if c := openCgroup(t.TempDir()); c != nil {
		t.Errorf("found %+v in nothing", c)
	}
	var none *cgroup
	if s := none.sample(); s != nil {
		t.Errorf("%+v", s)
	}
	empty := &cgroup{version: 2, dirs: map[string]string{"": t.TempDir()}}
	var high int64
	got := empty.sample().since(empty.sample(), 2, &high)
	want := &payload.CgroupUsage{
		Version: 2, MemoryCurrent: -1, MemoryUsed: -1, MemoryCache: -1, MemoryPeak: -1, MemoryLimit: -1, MemorySwapped: -1, MemoryHigh: -1, OOMKills: -1,
		UserCPU: -1, SystemCPU: -1, ThrottledCPU: -1, Periods: -1, Throttled: -1, Pids: -1, PidsPeak: -1, PidsRefused: -1, ReadBytes: -1, WriteBytes: -1, Reads: -1, Writes: -1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// tree makes a directory tree with the files that a process sees of its control groups.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// TestCgroupPlaces: each controller is read where it is, and the limit is the least of all
// groups that can be seen.
func TestCgroupPlaces(t *testing.T) {
	const (
		unified = "36 31 0:33 %s /u rw - cgroup2 cgroup rw\n"
		cpu     = "user_usec 5\nsystem_usec 6\nnr_periods 7\nnr_throttled 8\nthrottled_usec 9\n"
	)
	type seen struct {
		Version         int
		Current, Limit  int64
		User, Throttled int64
		Pids            int64
	}
	tests := map[string]struct {
		files map[string]string
		want  seen
	}{
		"a cgroup namespace": {
			map[string]string{
				"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": fmt.Sprintf(unified, "/"),
				"u/cgroup.events": "", "u/memory.current": "100\n", "u/memory.max": "1000\n", "u/cpu.stat": cpu, "u/pids.current": "4\n",
			},
			seen{2, 100, 1000, 5000, 9000, 4},
		},
		"nested, a group above has the lower limit": {
			map[string]string{
				"proc/self/cgroup": "0::/pod/box/init\n", "proc/self/mountinfo": fmt.Sprintf(unified, "/"),
				"u/pod/memory.max": "500\n", "u/pod/box/memory.max": "700\n", "u/pod/box/init/memory.max": "max\n",
				"u/pod/box/init/cgroup.events": "", "u/pod/box/init/memory.current": "100\n",
			},
			seen{2, 100, 500, -1, -1, -1},
		},
		"a mount of the group, whose own limit is the lowest": {
			map[string]string{
				"proc/self/cgroup": "0::/pod/box\n", "proc/self/mountinfo": fmt.Sprintf(unified, "/pod"),
				"u/memory.max": "500\n", "u/box/memory.max": "400\n", "u/box/cgroup.events": "", "u/box/memory.current": "100\n",
			},
			seen{2, 100, 400, -1, -1, -1},
		},
		"no limit anywhere": {
			map[string]string{
				"proc/self/cgroup": "0::/pod\n", "proc/self/mountinfo": fmt.Sprintf(unified, "/"),
				"u/pod/memory.max": "max\n", "u/pod/cgroup.events": "", "u/pod/memory.current": "100\n",
			},
			seen{2, 100, -1, -1, -1, -1},
		},
		"hybrid: all controllers in version 1": {
			map[string]string{
				"proc/self/cgroup":            "4:memory:/box\n3:cpu,cpuacct:/box\n2:pids:/box\n1:name=systemd:/box\n0::/box\n",
				"proc/self/mountinfo":         "35 31 0:32 / /m rw - cgroup cgroup rw,memory\n35 31 0:32 / /c rw - cgroup cgroup rw,cpu,cpuacct\n35 31 0:32 / /p rw - cgroup cgroup rw,pids\n" + fmt.Sprintf(unified, "/"),
				"m/box/memory.usage_in_bytes": "200\n", "m/box/memory.limit_in_bytes": "9223372036854771712\n", "m/box/memory.stat": "hierarchical_memory_limit 2000\n",
				"c/box/cpuacct.usage_user": "11\n", "c/box/cpu.stat": "throttled_time 12\n", "p/box/pids.current": "13\n",
				"u/box/cgroup.events": "", "u/box/cpu.stat": cpu, "u/box/pids.current": "99\n",
			},
			seen{1, 200, 2000, 11, 12, 13},
		},
		"hybrid: memory in version 2, the rest in version 1": {
			map[string]string{
				"proc/self/cgroup":         "3:cpu,cpuacct:/box\n2:pids:/box\n0::/box\n",
				"proc/self/mountinfo":      "35 31 0:32 / /c rw - cgroup cgroup rw,cpu,cpuacct\n35 31 0:32 / /p rw - cgroup cgroup rw,pids\n" + fmt.Sprintf(unified, "/"),
				"c/box/cpuacct.usage_user": "11\n", "c/box/cpu.stat": "throttled_time 12\n", "p/box/pids.current": "13\n",
				"u/box/cgroup.events": "", "u/box/memory.current": "100\n", "u/box/memory.max": "1000\n", "u/box/pids.current": "99\n",
			},
			seen{2, 100, 1000, 11, 12, 13},
		},
		"hybrid: memory in version 1, the rest in version 2": {
			map[string]string{
				"proc/self/cgroup": "4:memory:/box\n0::/box\n", "proc/self/mountinfo": "35 31 0:32 / /m rw - cgroup cgroup rw,memory\n" + fmt.Sprintf(unified, "/"),
				"m/box/memory.usage_in_bytes": "200\n", "m/box/memory.limit_in_bytes": "2000\n", "u/box/cgroup.events": "", "u/box/cpu.stat": cpu, "u/box/pids.current": "4\n",
			},
			seen{1, 200, 2000, 5000, 9000, 4},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := openCgroup(tree(t, tt.files))
			if c == nil {
				t.Fatal("not found")
			}
			s := c.sample()
			got := seen{c.version, s.memory.Current, s.memory.Limit, s.user, s.throttled, s.pids}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestCgroupTop makes sure that the figures of a whole machine are not taken for
// a container's.
func TestCgroupTop(t *testing.T) {
	files := map[string]string{
		"proc/self/cgroup":        "4:memory:/\n0::/\n",
		"proc/self/mountinfo":     "35 31 0:32 / /m rw - cgroup cgroup rw,memory\n36 31 0:33 / /u rw - cgroup2 cgroup rw\n",
		"m/memory.usage_in_bytes": "1\n",
		"m/release_agent":         "\n",
		"u/cpu.stat":              "user_usec 1\n",
	}
	root := tree(t, files)
	if c := openCgroup(root); c != nil {
		t.Errorf("the top was taken for a container's group: %+v", c)
	}
	files["u/cgroup.events"] = "populated 1\n"
	root = tree(t, files)
	if c := openCgroup(root); c == nil || c.version != 2 {
		t.Errorf("%+v", c)
	}
}

func FuzzCgroup(f *testing.F) {
	for _, tree := range []string{"v1", "v2"} {
		f.Add(readLimited(filepath.Join(trees, tree, "proc/self/cgroup")), readLimited(filepath.Join(trees, tree, "proc/self/mountinfo")),
			readLimited(filepath.Join(trees, "v2/sys/fs/cgroup/io.stat")))
	}
	f.Fuzz(func(t *testing.T, groups, mounts, figures []byte) {
		parsed := parseGroups(groups)
		for _, m := range parseMounts(mounts) {
			for controller, group := range parsed {
				if below, ok := m.below(group); m.has(controller) && ok && below != "" && below[0] != '/' {
					t.Errorf("%q below %+v is %q", group, m, below)
				}
			}
		}
		var s cgroupSample
		s.readIO(figures)
		if r, w := readBlkio(figures); figures != nil && (r < 0 || w < 0) {
			t.Errorf("%d, %d", r, w)
		}
	})
}
