package beneath

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// deep makes a chain of directories with a file of one byte in each.
func deep(t *testing.T, dir string, levels int) {
	t.Helper()
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	must(t, err)
	for i := range levels {
		must(t, unix.Mkdirat(fd, "d", 0o755))
		next, err := unix.Openat(fd, "d", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		must(t, err)
		f, err := unix.Openat(next, "f"+strconv.Itoa(i), unix.O_CREAT|unix.O_WRONLY, 0o644)
		must(t, err)
		_, err = unix.Write(f, []byte("x"))
		must(t, err)
		unix.Close(f)
		unix.Close(fd)
		fd = next
	}
	unix.Close(fd)
}

func openDirFD(t *testing.T, path string) int {
	t.Helper()
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	must(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

func TestMeasure(t *testing.T) {
	top := tree(t)
	write(t, filepath.Join(top, "a"), "12345")
	write(t, filepath.Join(top, "d/b"), "123")
	must(t, os.Link(filepath.Join(top, "a"), filepath.Join(top, "d/hard")))
	must(t, os.Symlink("/usr", filepath.Join(top, "link")))
	must(t, unix.Mkfifo(filepath.Join(top, "fifo"), 0o600))
	u, err := Measure(context.Background(), openDirFD(t, top), 0, nil)
	if want := (Usage{Bytes: 13, Files: 6}); err != nil || u != want {
		t.Errorf("%+v, %v; want %+v", u, err, want)
	}
}

func TestMeasureDeep(t *testing.T) {
	top := tree(t)
	write(t, filepath.Join(top, "a"), "12345")
	for i := range 20 {
		write(t, filepath.Join(top, "s/"+strconv.Itoa(i)), strings.Repeat("x", i))
	}
	deep(t, top, 500)
	fd := openDirFD(t, top)
	u, err := Measure(context.Background(), fd, 0, nil)
	if want := (Usage{Bytes: 5 + 190 + 500, Files: 1 + 1 + 20 + 2*500}); err != nil || u != want {
		t.Errorf("%+v, %v; want %+v", u, err, want)
	}
	u, err = Measure(context.Background(), fd, 700, nil)
	if !errors.Is(err, ErrIncomplete) || u.Files != 700 {
		t.Errorf("limited: %+v, %v", u, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err = Measure(ctx, fd, 0, nil); !errors.Is(err, ErrIncomplete) || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestRemoveAll(t *testing.T) {
	for _, who := range []string{"root", "payload"} {
		t.Run(who, func(t *testing.T) {
			if who == "payload" && !asPayload(t) {
				return
			}
			if who == "root" {
				needRoot(t)
			}
			top := tree(t)
			outside := filepath.Join(filepath.Dir(top), "keep")
			if who == "root" {
				write(t, filepath.Join(outside, "me"), "precious")
				must(t, os.Symlink(outside, filepath.Join(top, "dirlink")))
			}
			must(t, os.Symlink("/etc/passwd", filepath.Join(top, "link")))
			must(t, unix.Mkfifo(filepath.Join(top, "fifo"), 0))
			write(t, filepath.Join(top, "locked/inner/file"), "x")
			must(t, os.Chmod(filepath.Join(top, "locked/inner"), 0))
			must(t, os.Chmod(filepath.Join(top, "locked"), 0))
			write(t, filepath.Join(top, "readonly/file"), "x")
			must(t, os.Chmod(filepath.Join(top, "readonly"), 0o555))
			write(t, filepath.Join(top, "noexec/sub/file"), "x")
			must(t, os.Chmod(filepath.Join(top, "noexec"), 0o600))
			deep(t, top, 1500)
			for i := range 2000 {
				write(t, filepath.Join(top, "many/"+strconv.Itoa(i)), "")
			}
			at := openDirFD(t, filepath.Dir(top))
			if err := RemoveAll(context.Background(), at, "top"); err != nil {
				t.Error(err)
			}
			if _, err := os.Lstat(top); !os.IsNotExist(err) {
				t.Errorf("still there: %v", err)
			}
			if who == "root" {
				if data, err := os.ReadFile(filepath.Join(outside, "me")); string(data) != "precious" {
					t.Errorf("outside was touched: %v", err)
				}
			}
			if err := RemoveAll(context.Background(), at, "top"); err != nil {
				t.Errorf("nothing to remove: %v", err)
			}
		})
	}
}

func TestRemoveImmutable(t *testing.T) {
	needRoot(t)
	top := tree(t)
	write(t, filepath.Join(top, "d/file"), "x")
	for _, p := range []string{"d/file", "d"} {
		fd, err := unix.Open(filepath.Join(top, p), unix.O_RDONLY, 0)
		must(t, err)
		if err := unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, flagImmutable); err != nil {
			t.Skipf("no immutable files here: %v", err)
		}
		unix.Close(fd)
	}
	if err := RemoveAll(context.Background(), openDirFD(t, filepath.Dir(top)), "top"); err != nil {
		t.Error(err)
	}
}

// TestDirectoriesAreEnteredByTheirName, and not by that of a link to them.
func TestDirectoriesAreEnteredByTheirName(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "real"), 0o700))
	must(t, os.Symlink("real", filepath.Join(dir, "link")))
	at := openDirFD(t, dir)
	d, err := openDir(at, "real", mountOf{})
	must(t, err)
	d.Close()
	if d, err := openDir(at, "link", mountOf{}); !errors.Is(err, unix.ENOTDIR) && !errors.Is(err, unix.ELOOP) {
		if err == nil {
			d.Close()
		}
		t.Errorf("a link was followed: %v", err)
	}
}

// TestMeasureLimit: the entry at the limit is the last that counts.
func TestMeasureLimit(t *testing.T) {
	dir := t.TempDir()
	for i := range 4 {
		write(t, filepath.Join(dir, strconv.Itoa(i)), "x")
	}
	for limit, whole := range map[int64]bool{0: true, 5: true, 4: true, 3: false, 1: false} {
		u, err := Measure(t.Context(), openDirFD(t, dir), limit, nil)
		want := min(4, limit)
		if limit == 0 {
			want = 4
		}
		if whole != (err == nil) || !whole && !errors.Is(err, ErrIncomplete) || u.Files != want || u.Bytes != want {
			t.Errorf("limit %d: %+v, %v", limit, u, err)
		}
	}
}

func TestRemoveStopsAtMounts(t *testing.T) {
	if !mayMount(t) {
		return
	}
	top := filepath.Join(t.TempDir(), "top")
	precious := filepath.Join(filepath.Dir(top), "precious")
	write(t, filepath.Join(precious, "file"), "x")
	write(t, filepath.Join(top, "d/other"), "x")
	point := filepath.Join(top, "d/mnt")
	must(t, os.Mkdir(point, 0o755))
	if err := unix.Mount(precious, point, "", unix.MS_BIND, ""); err != nil {
		t.Skipf("cannot mount: %v", err)
	}
	err := RemoveAll(context.Background(), openDirFD(t, filepath.Dir(top)), "top")
	must(t, unix.Unmount(point, 0))
	if err == nil || !strings.Contains(err.Error(), "mounted") {
		t.Errorf("error is %v", err)
	}
	if _, err := os.Stat(filepath.Join(precious, "file")); err != nil {
		t.Errorf("went into the mount: %v", err)
	}
	if _, err := os.Stat(filepath.Join(top, "d/other")); !os.IsNotExist(err) {
		t.Errorf("stopped at the first error: %v", err)
	}
}
