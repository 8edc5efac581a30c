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
		"an empty directory": {func(root string) error {
			return errors.Join(os.Mkdir(root+"/srv", 0o755), os.Chmod(root+"/srv", os.ModeSticky|0o777))
		}, "/srv", nil},
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
			l := payload.Link{At: tt.at, To: to}
			mask := unix.Umask(0o077) // the wrapper's
			replaced, err := makeLink(root, l)
			unix.Umask(mask)
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
			if info, err := os.Stat(filepath.Dir(dir + tt.at)); err != nil || tt.at != "/srv" && info.Mode().Perm() != 0o755 {
				t.Errorf("nobody can go through the directory above: %v, %v", info.Mode(), err)
			}
			if err := removeLink(root, madeLink{Link: payload.Link{At: tt.at, To: "/other"}}); err != nil {
				t.Error(err)
			}
			if _, err := os.Lstat(dir + tt.at); err != nil {
				t.Errorf("somebody else's link was removed: %v", err)
			}
			for range 2 {
				if err := removeLink(root, madeLink{l, replaced}); err != nil {
					t.Error(err)
				}
			}
			if info, err := os.Lstat(dir + tt.at); replaced != nil {
				if err != nil || info.Mode() != os.ModeDir|os.ModeSticky|0o777 {
					t.Errorf("what was replaced is not there again: %v, %v", info, err)
				}
				return
			}
			if _, err := os.Lstat(dir + tt.at); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the link still exists: %v", err)
			}
		})
	}
}

// TestLinkThatIsGone: a payload that could write above a link has put something in its way. The next start does without the link, and
// does not go where the payload points to.
func TestLinkThatIsGone(t *testing.T) {
	l := payload.Link{At: "/open/d/link", To: "/exec/scratch"}
	for name, change := range map[string]func(top, root string) error{
		"a link": func(top, root string) error {
			return errors.Join(os.Rename(root+"/open/d", root+"/open/old"), os.Symlink(top+"/outside", root+"/open/d"))
		},
		"a file": func(_, root string) error {
			return errors.Join(os.Rename(root+"/open/d", root+"/open/old"), os.WriteFile(root+"/open/d", nil, 0o644))
		},
		"nothing": func(_, root string) error { return os.RemoveAll(root + "/open/d") },
	} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			dir, outside := filepath.Join(top, "root"), filepath.Join(top, "outside")
			if err := errors.Join(os.Mkdir(dir, 0o755), os.Mkdir(outside, 0o755), os.Symlink(l.To, outside+"/link")); err != nil {
				t.Fatal(err)
			}
			root := openDir(t, dir)
			if _, err := makeLink(root, l); err != nil {
				t.Fatal(err)
			}
			if err := change(top, dir); err != nil {
				t.Fatal(err)
			}
			if err := removeLink(root, madeLink{Link: l}); err != nil {
				t.Errorf("%v; want the link to count as gone", err)
			}
			if _, err := os.Lstat(outside + "/link"); err != nil {
				t.Errorf("the payload had something else removed: %v", err)
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
		_, err := makeLink(root, payload.Link{At: at, To: "/nowhere"})
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

// TestSetLinks: each start makes its own links and removes those of the start before.
func TestSetLinks(t *testing.T) {
	dir, err := os.MkdirTemp("/var/tmp", "link")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	var mount, other syscall.Statfs_t
	if err := errors.Join(syscall.Statfs("/", &mount), syscall.Statfs(dir, &other)); err != nil {
		t.Fatal(err)
	}
	a, at := &agent{}, func(name, to string) payload.Link { return payload.Link{At: dir + name, To: to} }
	if err := os.MkdirAll(dir+"/full/x", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		links []payload.Link
		fails string
	}{
		{links: []payload.Link{at("/a", "/one")}},
		{links: []payload.Link{at("/a", "/two")}},
		{links: []payload.Link{at("/a", "/two")}},
		{links: []payload.Link{at("/a", "/two"), at("/b/c", "/three")}},
		{links: []payload.Link{at("/b/c", "/two"), at("/full", "/one"), at("/a", "/one")}, fails: "/full"},
		{links: []payload.Link{at("/a", "/one"), at("/a/b", "/one")}, fails: "/a/b"},
		{},
	} {
		f := a.setLinks(step.links)
		if f != nil && mount.Fsid != other.Fsid && f.Errno == unix.EXDEV {
			return // /var/tmp is a mount of its own on this machine
		}
		if (f != nil) != (step.fails != "") || f != nil && f.Path != dir+step.fails {
			t.Fatalf("%+v: %v", step, f)
		}
		made := map[string]string{}
		for _, l := range step.links {
			if step.fails != "" && l.At == dir+step.fails {
				break // those behind it are not made
			}
			made[l.At] = l.To
		}
		for _, at := range []string{dir + "/a", dir + "/b/c"} {
			if to, err := os.Readlink(at); to != made[at] || (err == nil) != (made[at] != "") {
				t.Errorf("after %+v: %s is %q, %v", step, filepath.Base(at), to, err)
			}
		}
	}
}

// TestLinkInPlaceOfTemporary: a container whose /tmp was a link to the job's sandbox can be used again, with the
// /tmp that it had.
func TestLinkInPlaceOfTemporary(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("takes root")
	}
	dir, err := os.MkdirTemp("/var/tmp", "link")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	at := dir + "/tmp"
	if err := errors.Join(os.Chmod(dir, 0o755), os.Mkdir(at, 0o777), os.Chmod(at, os.ModeSticky|0o777)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func(was []string) func() { return func() { temporaryDirs = was } }(temporaryDirs))
	temporaryDirs = []string{at}
	a := &agent{}
	a.last.uid, a.last.gid = 54321, 54321
	if f := a.setLinks([]payload.Link{{At: at, To: "/exec/scratch/tmp"}}); f != nil {
		if f.Errno == unix.EXDEV {
			t.Skip("/var/tmp is a mount of its own on this machine")
		}
		t.Fatal(f)
	}
	a.emptyTemporary()
	if info, err := os.Lstat(at); err != nil || info.Mode() != os.ModeDir|os.ModeSticky|0o777 || a.soiled != "" {
		t.Errorf("%v, %v, soiled: %q", info, err, a.soiled)
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
