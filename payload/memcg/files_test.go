package memcg

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestForeignFiles: what is not a file of a control group is neither read nor kept open.
func TestForeignFiles(t *testing.T) {
	plain := func() *os.File {
		f, err := os.Create(filepath.Join(t.TempDir(), "plain"))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	pipe := func() *os.File {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { w.Close() })
		return r
	}
	fine := func(*os.File) error { return nil }
	for name, tt := range map[string]struct {
		version int
		names   []string
		files   []*os.File
		check   func(*os.File) error
	}{
		"a plain file":     {2, []string{current2}, []*os.File{plain()}, OfCgroup},
		"a pipe":           {2, []string{current2}, []*os.File{pipe()}, OfCgroup},
		"none":             {2, nil, nil, fine},
		"too few names":    {2, []string{current2}, []*os.File{plain(), plain()}, fine},
		"too many names":   {2, []string{current2, stat}, []*os.File{plain()}, fine},
		"another name":     {2, []string{"cgroup.procs"}, []*os.File{plain()}, fine},
		"the other's name": {1, []string{current2}, []*os.File{plain()}, fine},
		"a name twice":     {2, []string{stat, stat}, []*os.File{plain(), plain()}, fine},
		"another version":  {3, []string{stat}, []*os.File{plain()}, fine},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := NewFiles(tt.version, -1, tt.names, tt.files, tt.check); !errors.Is(err, ErrFiles) {
				t.Errorf("%v", err)
			}
			for _, f := range tt.files {
				if err := f.Close(); !errors.Is(err, os.ErrClosed) {
					t.Errorf("a file is left open: %v", err)
				}
			}
		})
	}
	if len(Names(1)) > MaxFiles || len(Names(2)) > MaxFiles {
		t.Error("there is no room for all files")
	}
}

// TestNoFiles: without files nothing is known, and nothing fails.
func TestNoFiles(t *testing.T) {
	var none *Files
	none.Begin()
	if now, known := none.Figures(); known || now != None() {
		t.Errorf("%+v", now)
	}
	none.Close()
	files := newGroup(t, 2).open()
	files.Close()
	if now, known := files.Figures(); known || now != None() || files.charged() != -1 {
		t.Errorf("%+v of closed files", now)
	}
}

// TestFigures: each version's files, and a group above with the lower limit.
func TestFigures(t *testing.T) {
	for version, want := range map[int]Figures{
		1: {Current: 100, Peak: 700, Limit: 800, Anon: 50, Shared: 20, Cache: 30, Kernel: -1, Swap: 5, Hits: -1, High: -1, OOMKills: 3},
		2: {Current: 100, Peak: 700, Limit: 800, Anon: 50, Shared: 20, Cache: 30, Kernel: 7, Swap: 5, Hits: 2, High: 9, OOMKills: 3},
	} {
		g := newGroup(t, version)
		g.use(700, 50, 20, 30)
		g.kill(2, 3)
		if version == 1 {
			g.set("memory.stat=total_rss 50\ntotal_shmem 20\ntotal_cache 50\ntotal_swap 5\nhierarchical_memory_limit 9223372036854771712")
		} else {
			g.set("memory.stat=anon 50\nfile 50\nshmem 20\nkernel 7", "memory.swap.current=5", "memory.events=high 9\noom 2\noom_kill 3")
		}
		names, opened := Open(version, g.dir, nil)
		files, err := NewFiles(version, 800, names, opened, func(*os.File) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		defer files.Close()
		got, known := files.Figures()
		if diff := cmp.Diff(want, got); diff != "" || !known {
			t.Errorf("version %d: %t %s", version, known, diff)
		}
	}
}

// FuzzRead: whatever the files hold, figures are -1 or more.
func FuzzRead(f *testing.F) {
	f.Add(2, []byte("anon 1\nfile 2\nshmem 3\n"))
	f.Add(1, []byte("total_rss 1\ntotal_cache 2\ntotal_shmem 3\nhierarchical_memory_limit 4\noom_kill 5\n"))
	f.Add(2, []byte("max\n"))
	f.Fuzz(func(t *testing.T, version int, data []byte) {
		now := Read(version, func(string) []byte { return data })
		for _, n := range []int64{now.Current, now.Peak, now.Limit, now.Anon, now.Shared, now.Cache, now.Kernel, now.Swap, now.Hits, now.High, now.OOMKills} {
			if n < -1 {
				t.Errorf("%+v", now)
			}
		}
	})
}

// BenchmarkLook is what a look costs: at one number, and at all files.
func BenchmarkLook(b *testing.B) {
	const v1, v2 = "/sys/fs/cgroup/memory", "/sys/fs/cgroup"
	version, dir := 1, v1
	if _, err := os.Stat(filepath.Join(v1, current1)); err != nil {
		version, dir = 2, v2
	}
	names, opened := Open(version, dir, nil)
	files, err := NewFiles(version, -1, names, opened, OfCgroup)
	if err != nil {
		b.Skip(err)
	}
	defer files.Close()
	b.Run("charged", func(b *testing.B) {
		for b.Loop() {
			files.charged()
		}
	})
	b.Run("figures", func(b *testing.B) {
		for b.Loop() {
			files.Figures()
		}
	})
}
