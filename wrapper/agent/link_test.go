package agent

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"podstarter/payload"
)

// TestLink makes links in a directory that stands for the root of a container.
func TestLink(t *testing.T) {
	const to = "/exec/dir_1/scratch"
	for name, tt := range map[string]struct {
		image func(root string) error
		at    string
		want  error
	}{
		"nothing there":       {nil, "/srv", nil},
		"parents are missing": {nil, "/a/b/c", nil},
		"an empty directory":  {func(root string) error { return os.Mkdir(root+"/srv", 0o755) }, "/srv", nil},
		"a full directory":    {func(root string) error { return os.MkdirAll(root+"/srv/x", 0o755) }, "/srv", unix.ENOTEMPTY},
		"a file":              {func(root string) error { return os.WriteFile(root+"/srv", nil, 0o644) }, "/srv", unix.ENOTDIR},
		"a link":              {func(root string) error { return os.Symlink("/elsewhere", root+"/srv") }, "/srv", unix.ENOTDIR},
		"a link in the way":   {func(root string) error { return os.Symlink("/tmp", root+"/a") }, "/a/b", unix.ELOOP},
		"a link to a sibling": {func(root string) error { return errors.Join(os.Mkdir(root+"/b", 0o755), os.Symlink("b", root+"/a")) }, "/a/c", unix.ELOOP},
		"a file in the way":   {func(root string) error { return os.WriteFile(root+"/a", nil, 0o644) }, "/a/b", unix.ENOTDIR},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if tt.image != nil {
				if err := tt.image(dir); err != nil {
					t.Fatal(err)
				}
			}
			root := openDir(t, dir)
			l := link{tt.at, to}
			err := makeLink(root, l)
			if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
				t.Fatalf("error %v, want %v", err, tt.want)
			}
			if err != nil {
				f := linkFailure(tt.at, err)
				if f.Stage != payload.StageLink || f.Path != tt.at || f.Detail == "" || f.Detail == err.Error() {
					t.Errorf("%+v tells a user nothing", f)
				}
				return
			}
			if got, err := os.Readlink(dir + tt.at); err != nil || got != to {
				t.Errorf("%q, %v", got, err)
			}
			if err := removeLink(root, link{tt.at, "/other"}); err != nil {
				t.Error(err)
			}
			if _, err := os.Lstat(dir + tt.at); err != nil {
				t.Errorf("somebody else's link was removed: %v", err)
			}
			for range 2 {
				if err := removeLink(root, l); err != nil {
					t.Error(err)
				}
			}
			if _, err := os.Lstat(dir + tt.at); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the link still exists: %v", err)
			}
		})
	}
}

// TestLinkStaysOffMounts: an image cannot lead root into a volume of the pod.
func TestLinkStaysOffMounts(t *testing.T) {
	root := openDir(t, "/")
	for at, want := range map[string][]error{
		"/proc/podstarter-test":         {unix.EXDEV},
		"/proc/self/cwd/x":              {unix.EXDEV, unix.ELOOP},
		"/sys/fs/podstarter-test":       {unix.EXDEV},
		"/dev/shm/podstarter-test/deep": {unix.EXDEV},
		"/proc":                         {unix.EBUSY, unix.EACCES, unix.EPERM},
	} {
		err := makeLink(root, link{at, "/nowhere"})
		matched := false
		for _, errno := range want {
			matched = matched || errors.Is(err, errno)
		}
		if !matched {
			t.Errorf("%s: %v, want %v", at, err, want)
		}
	}
	if _, err := os.Lstat("/dev/shm/podstarter-test"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something was made: %v", err)
	}
}

// TestSetLink: each start makes its own link and removes the previous one.
func TestSetLink(t *testing.T) {
	dir, err := os.MkdirTemp("/var/tmp", "link")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	var mount, other syscall.Statfs_t
	if err := errors.Join(syscall.Statfs("/", &mount), syscall.Statfs(dir, &other)); err != nil {
		t.Fatal(err)
	}
	a := &agent{}
	steps := []link{{dir + "/a", "/one"}, {dir + "/a", "/two"}, {dir + "/a", "/two"}, {dir + "/b/c", "/two"}, {}}
	for _, l := range steps {
		if f := a.setLink(&payload.Spec{Link: l.at, LinkTo: l.to}); f != nil {
			if mount.Fsid != other.Fsid && f.Errno == unix.EXDEV {
				return // /var/tmp is a mount of its own on this machine
			}
			t.Fatalf("%+v: %v", l, f)
		}
		for _, at := range []string{dir + "/a", dir + "/b/c"} {
			to, err := os.Readlink(at)
			if want := at == l.at; want != (err == nil) || want && to != l.to {
				t.Errorf("after %+v: %s is %q, %v", l, filepath.Base(at), to, err)
			}
		}
	}
}

func openDir(t *testing.T, dir string) int {
	t.Helper()
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return fd
}
