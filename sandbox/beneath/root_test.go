package beneath

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// roots returns the same root twice: with openat2 and without.
func roots(t *testing.T, path string) map[string]*Root {
	t.Helper()
	byKernel, err := OpenRoot(path)
	must(t, err)
	bySteps, err := OpenRoot(path)
	must(t, err)
	bySteps.byStep = true
	t.Cleanup(func() { byKernel.Close(); bySteps.Close() })
	out := map[string]*Root{"steps": bySteps}
	if !byKernel.byStep {
		out["openat2"] = byKernel
	}
	return out
}

func TestLookup(t *testing.T) {
	top := tree(t)
	out := filepath.Join(filepath.Dir(top), "outside")
	write(t, out, "outside")
	write(t, filepath.Join(top, "f"), "f")
	write(t, filepath.Join(top, "d/e/g"), "g")
	for from, to := range map[string]string{
		"up":       "../outside",
		"abs":      out,
		"proc":     "/proc/self/root/etc/passwd",
		"loop":     "loop",
		"loop1":    "loop2",
		"loop2":    "d/../loop1",
		"in":       "d/e/g",
		"d/back":   "../f",
		"d/far":    "../../outside",
		"inabs":    filepath.Join(top, "d/e/g"),
		"dirabs":   filepath.Join(top, "d"),
		"topabs":   top,
		"dangling": "nothing",
		"chain":    "dirabs/back",
		"sneaky":   "d/e/../../../outside",
		"like":     top + "x/f",
	} {
		must(t, os.Symlink(to, filepath.Join(top, from)))
	}
	for _, c := range []struct {
		name string
		want string // content, or
		err  error
	}{
		{name: "f", want: "f"},
		{name: "./f", want: "f"},
		{name: ".//d///e/./g", want: "g"},
		{name: "d/../f", want: "f"},
		{name: "in", want: "g"},
		{name: "d/back", want: "f"},
		{name: "inabs", want: "g"},
		{name: "dirabs/e/g", want: "g"},
		{name: "topabs/f", want: "f"},
		{name: "topabs/topabs/dirabs/back", want: "f"},
		{name: "chain", want: "f"},
		{name: filepath.Join(top, "f"), want: "f"},
		{name: top, err: unix.EISDIR},
		{name: "up", err: ErrOutside},
		{name: "abs", err: ErrOutside},
		{name: "proc", err: ErrOutside},
		{name: "d/far", err: ErrOutside},
		{name: "sneaky", err: ErrOutside},
		{name: "like", err: ErrOutside},
		{name: "..", err: ErrOutside},
		{name: "../outside", err: ErrOutside},
		{name: "d/../../outside", err: ErrOutside},
		{name: "topabs/../outside", err: ErrOutside},
		{name: out, err: ErrOutside},
		{name: "/etc/passwd", err: ErrOutside},
		{name: "loop", err: unix.ELOOP},
		{name: "loop1", err: unix.ELOOP},
		{name: "dangling", err: unix.ENOENT},
		{name: "f/x", err: unix.ENOTDIR},
		{name: "f/", err: unix.ENOTDIR},
		{name: "d", err: unix.EISDIR},
		{name: "d/", err: unix.EISDIR},
		{name: "", err: unix.EISDIR},
		{name: "no/such", err: unix.ENOENT},
		{name: "nul\x00", err: unix.EINVAL},
	} {
		for how, r := range roots(t, top) {
			f, _, err := r.OpenRead(c.name)
			if err != nil {
				if c.err == nil || !errors.Is(err, c.err) {
					t.Errorf("%s: %q: %v, want %v", how, c.name, err, c.err)
				}
				continue
			}
			data, err := io.ReadAll(f)
			f.Close()
			if c.err != nil || err != nil || string(data) != c.want {
				t.Errorf("%s: %q: %q, %v; want %q, %v", how, c.name, data, err, c.want, c.err)
			}
		}
	}
}

func TestSpecialFilesDoNotBlock(t *testing.T) {
	top := tree(t)
	must(t, unix.Mkfifo(filepath.Join(top, "fifo"), 0o666))
	l, err := net.Listen("unix", filepath.Join(top, "socket"))
	must(t, err)
	defer l.Close()
	names := []string{"fifo", "socket"}
	if unix.Mknod(filepath.Join(top, "null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))) == nil {
		names = append(names, "null")
	}
	for how, r := range roots(t, top) {
		for _, name := range names {
			if _, _, err := r.OpenRead(name); !errors.Is(err, ErrNotRegular) {
				t.Errorf("%s: read %s: %v", how, name, err)
			}
			if _, err := r.Create(name, 0o600); !errors.Is(err, ErrNotRegular) {
				t.Errorf("%s: write %s: %v", how, name, err)
			}
		}
		// A FIFO that somebody reads can be opened for writing.
		fd, err := unix.Open(filepath.Join(top, "fifo"), unix.O_RDONLY|unix.O_NONBLOCK, 0)
		must(t, err)
		if _, err := r.Create("fifo", 0o600); !errors.Is(err, ErrNotRegular) {
			t.Errorf("%s: write fifo that is read: %v", how, err)
		}
		unix.Close(fd)
	}
}

func TestCreateAndMkdir(t *testing.T) {
	defer unix.Umask(unix.Umask(0o077))
	for how := range roots(t, tree(t)) {
		top := tree(t)
		r := roots(t, top)[how]
		for _, name := range []string{"a", "b/c/d", "./e", "b/../f"} {
			f, err := r.Create(name, 0o666)
			must(t, err)
			must(t, f.Chmod(0o604))
			must(t, f.Close())
			st, err := r.Stat(name)
			must(t, err)
			if st.Mode != unix.S_IFREG|0o604 {
				t.Errorf("%s: %s has mode %o", how, name, st.Mode)
			}
		}
		st, err := r.Stat("b/c")
		must(t, err)
		if st.Mode != unix.S_IFDIR|0o700 {
			t.Errorf("%s: parent has mode %o", how, st.Mode)
		}
		for _, mode := range []uint32{0o777, 0o755, 0o700, 0o050, 0o001} {
			name := fmt.Sprintf("m%o", mode)
			must(t, r.Mkdir(name, mode))
			if st, err := r.Stat(name); err != nil || st.Mode != unix.S_IFDIR|mode {
				t.Errorf("%s: mkdir %o: %o %v", how, mode, st.Mode, err)
			}
		}
		if err := r.Mkdir("a", 0o700); !errors.Is(err, unix.EEXIST) {
			t.Errorf("%s: mkdir over file: %v", how, err)
		}
		must(t, os.Symlink("..", filepath.Join(top, "out")))
		for _, do := range map[string]func() error{
			"mkdir":  func() error { return r.Mkdir("out/x", 0o700) },
			"create": func() error { _, err := r.Create("out/x", 0o600); return err },
			"remove": func() error { return r.Remove("out/x") },
			"rename": func() error { return r.Rename("a", "out/x") },
			"chmod":  func() error { return r.Chmod("out", 0o777) },
			"stat":   func() error { _, err := r.Stat("out"); return err },
		} {
			if err := do(); !errors.Is(err, ErrOutside) {
				t.Errorf("%s: outside: %v", how, err)
			}
		}
		must(t, r.Chmod("a", 0o751))
		must(t, r.Rename("a", "b/a"))
		if st, err := r.Stat("b/a"); err != nil || st.Mode&0o7777 != 0o751 {
			t.Errorf("%s: %o %v", how, st.Mode, err)
		}
		must(t, r.Remove("b/a"))
		must(t, r.Remove("out"))
		must(t, r.Remove("m1"))
		if err := r.Remove("b"); !errors.Is(err, unix.ENOTEMPTY) {
			t.Errorf("%s: remove full directory: %v", how, err)
		}
		// Created through a link that dangles but stays beneath.
		must(t, os.Symlink("b/new", filepath.Join(top, "link")))
		f, err := r.Create("link", 0o600)
		must(t, err)
		f.Close()
		if _, err := os.Lstat(filepath.Join(top, "b/new")); err != nil {
			t.Errorf("%s: %v", how, err)
		}
	}
}

// TestCreateNew: whatever already has the name is neither opened nor followed.
func TestCreateNew(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "mine")
	must(t, os.Symlink("file", filepath.Join(dir, "link")))
	must(t, os.Symlink("nothing", filepath.Join(dir, "dangling")))
	for how, r := range roots(t, dir) {
		for _, name := range []string{"file", "link", "dangling"} {
			if f, err := r.CreateNew(name); !errors.Is(err, unix.EEXIST) {
				t.Errorf("by %s, %s: %v, %v", how, name, f, err)
			}
		}
		f, err := r.CreateNew("new, by " + how)
		must(t, err)
		must(t, f.Close())
	}
	if data, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(data) != "mine" {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "nothing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file was made behind a link: %v", err)
	}
}

func TestReadDir(t *testing.T) {
	top := tree(t)
	want := map[string]bool{}
	for i := range 3000 {
		name := "file-with-a-rather-long-name-" + string(rune('a'+i%26)) + "-" + string(rune(0x4e00+i))
		write(t, filepath.Join(top, name), "")
		want[name] = true
	}
	odd := "new\nline\xff"
	write(t, filepath.Join(top, odd), "")
	want[odd] = true
	for how, r := range roots(t, top) {
		d, err := r.ReadDir(".")
		must(t, err)
		got := map[string]bool{}
		for {
			name, err := d.Next()
			if err == io.EOF {
				break
			}
			must(t, err)
			got[name] = true
		}
		d.Close()
		if len(got) != len(want) || !got[odd] {
			t.Errorf("%s: %d names, want %d", how, len(got), len(want))
		}
	}
}
