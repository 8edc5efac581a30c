package agent

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/payload"
)

const trees = "../../testdata/cgroup"

func TestCgroupTrees(t *testing.T) {
	tests := map[string]struct {
		base cgroupSample // what was there before the run
		want payload.CgroupUsage
	}{
		"v1": {
			base: cgroupSample{peak: 100, oomKills: 1, user: 995992602636, system: 179801234567, throttled: 345678, readBytes: 1, writeBytes: 1, reads: 5, writes: 1},
			want: payload.CgroupUsage{
				Version: 1, MemoryCurrent: 122073088, MemoryUsed: 5083136 + 1048576, MemoryCache: 114491392 - 1048576, MemoryPeak: 2179428352, MemoryLimit: -1, OOMKills: 1,
				UserCPU: 1000 * time.Second, SystemCPU: 1000 * time.Second, ThrottledCPU: 812 * time.Millisecond,
				Pids: 14, PidsPeak: -1, ReadBytes: 1064960 + 40960 - 1, WriteBytes: 4096 + 8192 - 1, Reads: 60, Writes: 2,
			},
		},
		"v2": {
			base: cgroupSample{used: 8388608, peak: 734003200, oomKills: 4, user: 123_000, system: 4_444_000, throttled: 4_567_000, readBytes: -1, writeBytes: -1, reads: -1, writes: -1},
			want: payload.CgroupUsage{
				Version: 2, MemoryCurrent: 318767104, MemoryUsed: 52428800, MemoryCache: 251658240 - 8388608, MemoryPeak: 318767104, MemoryLimit: 1 << 30, OOMKills: 1,
				UserCPU: 80 * time.Second, SystemCPU: 11230 * time.Millisecond, ThrottledCPU: 1230 * time.Millisecond,
				Pids: 9, PidsPeak: 61, ReadBytes: 1064960 + 8192, WriteBytes: 40960, Reads: 62, Writes: 4,
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
		Version: 2, MemoryCurrent: -1, MemoryUsed: -1, MemoryCache: -1, MemoryPeak: -1, MemoryLimit: -1, OOMKills: -1, UserCPU: -1, SystemCPU: -1,
		ThrottledCPU: -1, Pids: -1, PidsPeak: -1, ReadBytes: -1, WriteBytes: -1, Reads: -1, Writes: -1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestCgroupTop makes sure that the figures of a whole machine are not taken for
// a container's.
func TestCgroupTop(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("proc/self/cgroup", "4:memory:/\n0::/\n")
	write("proc/self/mountinfo", "35 31 0:32 / /m rw - cgroup cgroup rw,memory\n36 31 0:33 / /u rw - cgroup2 cgroup rw\n")
	write("m/memory.usage_in_bytes", "1\n")
	write("m/release_agent", "\n")
	write("u/cpu.stat", "user_usec 1\n")
	if c := openCgroup(root); c != nil {
		t.Errorf("the top was taken for a container's group: %+v", c)
	}
	write("u/cgroup.events", "populated 1\n")
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
