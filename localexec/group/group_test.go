package group

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"podstarter/payload"
)

func TestBaseOf(t *testing.T) {
	for name, tt := range map[string]struct{ self, base, want string }{
		"a service":           {"0::/system.slice/condor.service\n", "htcondor", "system.slice/htcondor"},
		"at the top":          {"0::/\n", "htcondor", "htcondor"},
		"below the top":       {"0::/daemons\n", "/htcondor/", "htcondor"},
		"two words":           {"0::/a/b\n", "x/y", "a/x/y"},
		"with version 1":      {"4:memory:/v1\n1:name=systemd:/s\n0::/a/b\n", "x", "a/x"},
		"it leads up":         {"0::/a/b\n", "../../x", "a/x"},
		"another namespace's": {"0::/../b\n", "x", ""},
		"only dots":           {"0::/a\n", "..", ""},
		"version 1":           {"4:memory:/a\n", "x", ""},
		"nothing":             {"", "x", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := baseOf([]byte(tt.self), tt.base)
			if got != tt.want || (err == nil) != (tt.want != "") {
				t.Errorf("%q, %v; want %q", got, err, tt.want)
			}
		})
	}
}

func FuzzBaseOf(f *testing.F) {
	f.Add([]byte("4:memory:/a\n0::/a/b\n"), "htcondor")
	f.Add([]byte("0::/../x"), "../y")
	f.Fuzz(func(t *testing.T, self []byte, base string) {
		if got, err := baseOf(self, base); err == nil && (!fs.ValidPath(got) || got == ".") {
			t.Errorf("%q", got)
		}
	})
}

func TestReleases(t *testing.T) {
	for release, want := range map[string]bool{"5.14.0-427.el9.x86_64": true, "5.7.1": true, "5.6.19": false, "4.18.0-553.el8": false, "6.1.0-rc1": true, "": false, "x": false} {
		if got := joinsAtFork(release); got != want {
			t.Errorf("%q: %t", release, got)
		}
	}
}

// TestFindElsewhere: groups are made only in the part of the hierarchy that this process is in.
func TestFindElsewhere(t *testing.T) {
	p, top := hierarchy(t)
	other, err := p.Make(t.Context(), payload.Group{Name: "other"}, 12345, 12345, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := other.Remove(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	for name, self := range map[string]string{"it is not there": "docker/box", "it has other processes": other.slice} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "cgroup")
			if err := os.WriteFile(file, []byte("0::/"+self+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if q, err := Find(Site{Base: "htcondor", Top: top, Self: file}); err == nil {
				t.Errorf("groups would be made in %s", q.Path())
				q.Close()
			}
		})
	}
}

func TestFindNowhere(t *testing.T) {
	if _, err := Find(Site{}); !errors.Is(err, ErrOff) {
		t.Errorf("%v", err)
	}
	if _, err := Find(Site{Base: "x", WithoutRoot: true, Top: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "not version 2") {
		t.Errorf("%v", err)
	}
}

// hierarchy finds a place for the test's groups in version 2 of control groups, with whatever controllers.
func hierarchy(t *testing.T) (*Place, string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	for _, top := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		var at unix.Statfs_t
		if unix.Statfs(top, &at) != nil || at.Type != unix.CGROUP2_SUPER_MAGIC {
			continue
		}
		base := fmt.Sprintf("grouptest-%d-%s", os.Getpid(), strings.ReplaceAll(t.Name(), "/", "-"))
		p, err := Find(Site{Base: base, Top: top})
		if err != nil {
			t.Skipf("needs control groups that can be made: %v", err)
		}
		t.Cleanup(func() {
			if err := p.root.Remove(p.base); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Error(err)
			}
			p.Close()
		})
		return p, top
	}
	t.Skip("needs version 2 of control groups")
	return nil, ""
}

// in starts a program in the group, as the wrapper does.
func in(t *testing.T, dir string, argv ...string) *exec.Cmd {
	t.Helper()
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(f.Fd())}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd
}

func scope(g *Group) string {
	name := strings.TrimSuffix(filepath.Base(g.Path()), sliceEnd)
	return filepath.Join(g.Path(), name+scopeEnd)
}

// TestLife: a group is made with its owner, what runs in it and in groups that the job made is killed, and nothing of it stays.
func TestLife(t *testing.T) {
	for _, old := range []bool{false, true} {
		t.Run(fmt.Sprintf("without cgroup.kill: %t", old), func(t *testing.T) {
			p, _ := hierarchy(t)
			g, err := p.Make(t.Context(), payload.Group{Name: "/var/execute_slot1@host.example"}, 12345, 12346, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			if filepath.Base(g.Path()) != "_var_execute_slot1@host.example.slice" {
				t.Error(g.Path())
			}
			for name, uid := range map[string]uint32{".": 12345, "cgroup.procs": 12345, "cgroup.subtree_control": 12345, "cgroup.freeze": 0, "cgroup.kill": 0, filepath.Base(scope(g)): 0} {
				var st unix.Stat_t
				if err := unix.Stat(filepath.Join(g.Path(), name), &st); err != nil || st.Uid != uid {
					t.Errorf("%s belongs to %d, %v", name, st.Uid, err)
				}
			}
			below := filepath.Join(g.Path(), "jobs", "own")
			if err := os.MkdirAll(below, 0o755); err != nil {
				t.Fatal(err)
			}
			main, other := in(t, scope(g), "sleep", "1000"), in(t, below, "sleep", "1000")
			if old {
				done := make(chan error, 2)
				for _, c := range []*exec.Cmd{main, other} {
					go func() { done <- c.Wait() }()
				}
				freeze := g.slice + "/cgroup.freeze"
				if err := errors.Join(p.write(freeze, "1"), p.killEach(g.slice, 0), p.write(freeze, "0")); err != nil {
					t.Fatal(err)
				}
				for range 2 {
					select {
					case <-done:
					case <-time.After(10 * time.Second):
						t.Fatal("a process lives")
					}
				}
			}
			if err := g.Remove(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(g.Path()); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%v", err)
			}
			if !old {
				for _, c := range []*exec.Cmd{main, other} {
					if err := c.Wait(); err == nil || c.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
						t.Errorf("%v", err)
					}
				}
			}
			if err := g.Remove(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestLeft: what an earlier starter left in the group of the slot, which was frozen, ends before the next job.
func TestLeft(t *testing.T) {
	p, _ := hierarchy(t)
	log := slog.New(slog.DiscardHandler)
	want := payload.Group{Name: "slot1", CPUWeight: 200, MemoryMax: 64 << 20, NoSwap: true}
	first, err := p.Make(t.Context(), want, 12345, 12345, log)
	if err != nil {
		t.Fatal(err)
	}
	left := in(t, scope(first), "sleep", "1000")
	if err := p.write(first.slice+"/cgroup.freeze", "1"); err != nil {
		t.Fatal(err)
	}
	second, err := p.Make(t.Context(), want, 12345, 12345, log)
	if err != nil {
		t.Fatal(err)
	}
	if err := left.Wait(); err == nil {
		t.Error("it ended by itself")
	}
	if !second.empty() {
		t.Error("the new group has processes")
	}
	if err := second.Remove(context.Background()); err != nil {
		t.Error(err)
	}
}

// TestRemovedTwice: a startd may remove what is left of a starter's groups while the next starter does.
func TestRemovedTwice(t *testing.T) {
	p, _ := hierarchy(t)
	for range 50 {
		g, err := p.Make(t.Context(), payload.Group{Name: "slot1"}, 12345, 12345, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		_ = in(t, scope(g), "sleep", "1000")
		done := make(chan error)
		for range 2 {
			go func() { done <- g.Remove(t.Context()) }()
		}
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if t.Failed() {
			return
		}
	}
}

// TestDeep: the longest names on all levels that a job may make are longer than a path may be.
func TestDeep(t *testing.T) {
	p, _ := hierarchy(t)
	g, err := p.Make(t.Context(), payload.Group{Name: "slot1"}, 12345, 12345, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	at, err := unix.Open(g.Path(), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(at) }()
	name, levels := strings.Repeat("x", 255), 0
	for ; unix.Mkdirat(at, name, 0o755) == nil; levels++ {
		next, err := unix.Openat(at, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		_ = unix.Close(at)
		at = next
	}
	if levels != maxDepth {
		t.Errorf("%d levels could be made", levels)
	}
	for _, kill := range []func() error{func() error { return p.killEach(g.slice, 0) }, func() error { return g.Remove(t.Context()) }} {
		if err := kill(); err != nil {
			t.Error(err)
		}
	}
}

// TestMissing: a group has the controllers that the group above gives it. The top's are given by somebody else.
func TestMissing(t *testing.T) {
	for name, tt := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"the top gives none":     {map[string]string{"cgroup.controllers": "cpu io memory pids", "cgroup.subtree_control": ""}, controllers},
		"the top gives some":     {map[string]string{"cgroup.controllers": "cpu io memory pids", "cgroup.subtree_control": "memory pids"}, []string{"cpu", "io"}},
		"a group that can give":  {map[string]string{"a.slice/cgroup.controllers": "cpu memory pids", "a.slice/cgroup.subtree_control": ""}, []string{"io"}},
		"a group with processes": {map[string]string{"a.slice/cgroup.controllers": "cpu memory pids", "a.slice/cgroup.subtree_control": "pids", "a.slice/cgroup.procs": "1\n"}, []string{"memory", "cpu", "io"}},
		"the base":               {map[string]string{"a.slice/htcondor/cgroup.controllers": "cpu io memory pids", "a.slice/htcondor/cgroup.subtree_control": ""}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			for file, text := range tt.files {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(top, file)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(top, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			root, err := os.OpenRoot(top)
			if err != nil {
				t.Fatal(err)
			}
			p := &Place{root: root, top: top, base: "a.slice/htcondor"}
			defer p.Close()
			if diff := cmp.Diff(tt.want, p.Missing()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNames(t *testing.T) {
	p, _ := hierarchy(t)
	for _, name := range []string{"", "a\nb", strings.Repeat("x", maxName+1)} {
		if _, err := p.Make(t.Context(), payload.Group{Name: name}, 1, 1, slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%.20q was made", name)
		}
	}
}
