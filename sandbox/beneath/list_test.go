package beneath

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// listed is what List finds.
func listed(t *testing.T, dir string) []string {
	t.Helper()
	top, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer top.Close()
	var found []string
	if err := List(t.Context(), int(top.Fd()), func(name string, isDir bool) error {
		if isDir {
			name += "/"
		}
		found = append(found, name)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return found
}

func TestList(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"d/e/f", "d/g", "z", "line\nbreak"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{
		os.Symlink("/etc", filepath.Join(dir, "out")), os.Symlink("d", filepath.Join(dir, "in")),
		os.Symlink("/no/such", filepath.Join(dir, "dangling")), os.Mkdir(filepath.Join(dir, "empty"), 0o755),
		unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	found := listed(t, dir)
	for i, name := range found {
		if above := filepath.Dir(strings.TrimSuffix(name, "/")); above != "." && !slices.Contains(found[:i], above+"/") {
			t.Errorf("%q comes before its directory: %q", name, found)
		}
	}
	slices.Sort(found)
	want := []string{"d/", "d/e/", "d/e/f", "d/g", "dangling", "empty/", "in", "line\nbreak", "out", "pipe", "z"}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Error(diff)
	}
}

// TestListDeep: a tree deeper than a path can be is listed to that depth, so the list of a
// tree grows with its entries, and no faster.
func TestListDeep(t *testing.T) {
	dir := t.TempDir()
	top, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = Empty(context.Background(), top); _ = unix.Close(top) })
	name, at := strings.Repeat("x", 200), top
	for range 100 {
		if err := unix.Mkdirat(at, name, 0o700); err != nil {
			t.Fatal(err)
		}
		next, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		if at != top {
			_ = unix.Close(at)
		}
		at = next
	}
	_ = unix.Close(at)
	found := listed(t, dir)
	if len(found) != unix.PathMax/201+1 {
		t.Errorf("%d directories are listed", len(found))
	}
	if longest := len(found[len(found)-1]); longest > unix.PathMax+256 {
		t.Errorf("a path of %d bytes", longest)
	}
}

func TestListStops(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	top, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer top.Close()
	enough, n := errors.New("enough"), 0
	err = List(t.Context(), int(top.Fd()), func(string, bool) error { n++; return enough })
	if !errors.Is(err, enough) || n != 1 {
		t.Errorf("%d names, %v", n, err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	if err = List(ctx, int(top.Fd()), func(string, bool) error { return nil }); !errors.Is(err, enough) {
		t.Errorf("after the end: %v", err)
	}
}

// TestListClosed: what may not be read is named, and the rest is listed.
func TestListClosed(t *testing.T) {
	if !asPayload(t) {
		return
	}
	dir := t.TempDir()
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "closed/below"), 0o755), os.Chmod(filepath.Join(dir, "closed"), 0),
		os.WriteFile(filepath.Join(dir, "open"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Chmod(filepath.Join(dir, "closed"), 0o700) }()
	found := listed(t, dir)
	slices.Sort(found)
	if diff := cmp.Diff([]string{"closed/", "open"}, found); diff != "" {
		t.Error(diff)
	}
}
