package imagetree

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// removal is an entry with a Record, which is its body.
const removal = 'X'

// entry is an entry of a stream; body is a file's contents or a link's target.
type entry struct {
	kind byte
	name string
	mode int64
	body string
}

func stream(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Typeflag: e.kind, Name: e.name, Mode: e.mode, ModTime: time.Unix(1e9, 0), Format: tar.FormatPAX}
		switch e.kind {
		case tar.TypeReg:
			h.Size = int64(len(e.body))
		case removal:
			h.Typeflag, h.PAXRecords = tar.TypeReg, map[string]string{Record: e.body}
		default:
			h.Linkname = e.body
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if e.kind == tar.TypeReg {
			if _, err := w.Write([]byte(e.body)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

var ample = Limits{Bytes: 1 << 40, Entries: 1 << 40}

// write writes a stream below a directory.
func write(t testing.TB, dir string, data []byte, limits Limits) Report {
	t.Helper()
	return writeBy(t, dir, data, Order{Limits: limits})
}

func writeBy(t testing.TB, dir string, data []byte, o Order) Report {
	t.Helper()
	root, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(root)
	old := unix.Umask(0)
	defer unix.Umask(old)
	return Write(root, bytes.NewReader(data), o)
}

// tree is all that is below a directory: type, mode and contents by name.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := info.Mode().String()
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += fmt.Sprintf(" %.20s", data)
			if n := info.Sys().(*syscall.Stat_t).Nlink; n > 1 {
				text += fmt.Sprintf(" *%d", n)
			}
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			text += " " + to
		}
		all[strings.TrimPrefix(path, dir+"/")] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestWrite(t *testing.T) {
	const dir, file, symlink, link = tar.TypeDir, tar.TypeReg, tar.TypeSymlink, tar.TypeLink
	for name, tt := range map[string]struct {
		carrier func(root string) error
		entries []entry
		want    map[string]string
		report  Report
	}{
		"an image": {
			nil,
			[]entry{{dir, "./", 0o755, ""}, {dir, "usr/", 0o755, ""}, {dir, "usr/bin/", 0o755, ""}, {file, "usr/bin/true", 0o755, "ELF"}, {link, "usr/bin/yes", 0, "usr/bin/true"},
				{symlink, "bin", 0o777, "usr/bin"}, {dir, "tmp/", 0o1777, ""}, {tar.TypeFifo, "pipe", 0o644, ""}, {file, "empty", 0o400, ""}},
			map[string]string{"usr": "drwxr-xr-x", "usr/bin": "drwxr-xr-x", "usr/bin/true": "-rwxr-xr-x ELF *2", "usr/bin/yes": "-rwxr-xr-x ELF *2",
				"bin": "Lrwxrwxrwx usr/bin", "tmp": "dtrwxrwxrwx", "pipe": "prw-r--r--", "empty": "-r-------- "},
			Report{Entries: 8, Bytes: 3},
		},
		"rights that a file would give": {
			nil,
			[]entry{{file, "su", 0o6755, "ELF"}, {dir, "shared", 0o2775, ""}, {tar.TypeFifo, "pipe", 0o6777, ""}},
			map[string]string{"su": "-rwxr-xr-x ELF", "shared": "drwxrwxr-x", "pipe": "prwxrwxrwx"},
			Report{Entries: 3, Bytes: 3},
		},
		"devices": {
			nil,
			[]entry{{tar.TypeChar, "mem", 0o666, ""}, {tar.TypeBlock, "sda", 0o666, ""}, {file, "after", 0o644, ""}},
			map[string]string{"after": "-rw-r--r-- "},
			Report{Entries: 1, Skipped: 2},
		},
		"a directory that its owner may not write to": {
			nil,
			[]entry{{dir, "etc/", 0o555, ""}, {file, "etc/x", 0o444, "x"}},
			map[string]string{"etc": "drwxr-xr-x", "etc/x": "-r--r--r-- x"},
			Report{Entries: 2, Bytes: 1},
		},
		"a carrier that has other things in their places": {
			func(root string) error {
				for _, step := range []error{
					os.MkdirAll(root+"/bin/deep/er", 0o755), os.WriteFile(root+"/bin/sh", []byte("old"), 0o755), os.Symlink("/", root+"/lib"),
					os.WriteFile(root+"/file", []byte("old, and longer"), 0o644), os.Mkdir(root+"/tmp", 0o700), os.Mkdir(root+"/var", 0o700), os.WriteFile(root+"/etc", nil, 0o644), os.WriteFile(root+"/stays", nil, 0o600),
				} {
					if step != nil {
						return step
					}
				}
				return nil
			},
			[]entry{{symlink, "bin", 0, "usr/bin"}, {dir, "lib/", 0o755, ""}, {file, "lib/libc", 0o644, "ELF"}, {file, "file", 0o644, "new"}, {dir, "tmp", 0o1777, ""}, {dir, "var", 0o6755, ""}, {dir, "etc", 0o755, ""}, {file, "etc/x", 0o644, ""}},
			map[string]string{"bin": "Lrwxrwxrwx usr/bin", "lib": "drwxr-xr-x", "lib/libc": "-rw-r--r-- ELF", "file": "-rw-r--r-- new", "tmp": "dtrwxrwxrwx", "var": "drwxr-xr-x", "etc": "drwxr-xr-x", "etc/x": "-rw-r--r-- ", "stays": "-rw------- "},
			Report{Entries: 8, Bytes: 6},
		},
		"the same name twice": {
			nil,
			[]entry{{file, "a", 0o644, "one"}, {link, "b", 0, "a"}, {file, "a", 0o600, "two"}},
			map[string]string{"a": "-rw------- two", "b": "-rw-r--r-- one"},
			Report{Entries: 3, Bytes: 6},
		},
		"names with odd bytes": {
			nil,
			[]entry{{file, "a\nb", 0o644, ""}, {file, "\xff", 0o644, ""}, {file, "...", 0o644, ""}, {symlink, " ", 0, "\xfe"}},
			map[string]string{"a\nb": "-rw-r--r-- ", "\xff": "-rw-r--r-- ", "...": "-rw-r--r-- ", " ": "Lrwxrwxrwx \xfe"},
			Report{Entries: 4},
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			if tt.carrier != nil {
				if err := tt.carrier(root); err != nil {
					t.Fatal(err)
				}
			}
			got := write(t, root, stream(t, tt.entries...), ample)
			if diff := cmp.Diff(tt.report, got); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.want, tree(t, root)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

// TestStaysInside: whatever a stream says, nothing outside of the root is touched.
func TestStaysInside(t *testing.T) {
	const dir, file, symlink, link = tar.TypeDir, tar.TypeReg, tar.TypeSymlink, tar.TypeLink
	for name, tt := range map[string]struct {
		entries []entry
		want    Reason
	}{
		"up":                                               {[]entry{{file, "../outside/new", 0o644, "x"}}, Malformed},
		"up in the middle":                                 {[]entry{{dir, "a", 0o755, ""}, {file, "a/../../outside/new", 0o644, "x"}}, Malformed},
		"an absolute name":                                 {[]entry{{file, "/outside/new", 0o644, "x"}}, Malformed},
		"two slashes":                                      {[]entry{{file, "a//b", 0o644, "x"}}, Malformed},
		"no name":                                          {[]entry{{file, "", 0o644, "x"}}, Malformed},
		"up, alone":                                        {[]entry{{dir, "..", 0o777, ""}}, Malformed},
		"the root as a link":                               {[]entry{{symlink, ".", 0o777, "/"}}, Malformed},
		"through an absolute link":                         {[]entry{{symlink, "a", 0o777, "OUTSIDE"}, {file, "a/new", 0o644, "x"}}, Malformed},
		"through a relative link":                          {[]entry{{symlink, "a", 0o777, "../outside"}, {file, "a/new", 0o644, "x"}}, Malformed},
		"through a link inside":                            {[]entry{{dir, "b", 0o755, ""}, {symlink, "a", 0o777, "b"}, {file, "a/new", 0o644, "x"}}, Malformed},
		"a directory's mode, by a link":                    {[]entry{{symlink, "a", 0o777, "OUTSIDE"}, {dir, "a", 0o777, ""}}, ""},
		"a file's place, by a link":                        {[]entry{{symlink, "a", 0o777, "OUTSIDE/old"}, {file, "a", 0o666, "x"}}, ""},
		"a fifo's place, by a link":                        {[]entry{{symlink, "a", 0o777, "OUTSIDE/old"}, {tar.TypeFifo, "a", 0o666, ""}}, ""},
		"a hard link to what is outside":                   {[]entry{{link, "a", 0, "../outside/old"}}, Malformed},
		"a hard link by an absolute one":                   {[]entry{{link, "a", 0, "OUTSIDE/old"}}, Malformed},
		"a hard link through a link":                       {[]entry{{symlink, "b", 0o777, "OUTSIDE"}, {link, "a", 0, "b/old"}, {file, "a", 0o666, "x"}}, Malformed},
		"a hard link to a link":                            {[]entry{{symlink, "b", 0o777, "OUTSIDE/old"}, {link, "a", 0, "b"}, {file, "a", 0o666, "x"}}, ""},
		"a hard link to nothing":                           {[]entry{{link, "a", 0, "b"}}, Malformed},
		"a hard link to itself":                            {[]entry{{link, "a", 0, "a"}}, Malformed},
		"a hard link to a directory":                       {[]entry{{dir, "b", 0o755, ""}, {link, "a", 0, "b"}}, Failed},
		"a link without a target":                          {[]entry{{symlink, "a", 0, ""}}, Malformed},
		"a directory that becomes a link while it is open": {[]entry{{dir, "a", 0o755, ""}, {file, "a/1", 0o644, ""}, {symlink, "a", 0, "OUTSIDE"}, {file, "a/new", 0o644, "x"}}, Malformed},
		"a file in a file":                                 {[]entry{{file, "a", 0o644, ""}, {file, "a/b", 0o644, ""}}, Malformed},
		"before its directory":                             {[]entry{{file, "a/b", 0o644, ""}}, Malformed},
		"a long name":                                      {[]entry{{file, strings.Repeat("n", 256), 0o644, ""}}, Malformed},
		"a long path":                                      {[]entry{{file, strings.Repeat("n/", 3000) + "n", 0o644, ""}}, Malformed},
		"an unknown type":                                  {[]entry{{'Z', "a", 0o644, ""}}, Malformed},
		"contiguous, from long ago":                        {[]entry{{tar.TypeCont, "a", 0o644, ""}}, Malformed},
	} {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			outside := base + "/outside"
			must(t, os.Mkdir(outside, 0o700), os.Mkdir(base+"/root", 0o755), os.WriteFile(outside+"/old", []byte("precious"), 0o600))
			for i := range tt.entries {
				tt.entries[i].body = strings.Replace(tt.entries[i].body, "OUTSIDE", outside, 1)
			}
			r := write(t, base+"/root", stream(t, tt.entries...), ample)
			if r.Reason != tt.want || (r.Err() == nil) != (tt.want == "") {
				t.Errorf("report %+v, want reason %q", r, tt.want)
			}
			if diff := cmp.Diff(map[string]string{"old": "-rw------- precious"}, tree(t, outside)); diff != "" {
				t.Errorf("outside (-want +got):\n%s", diff)
			}
			if info, err := os.Stat(outside); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("the directory outside is %v, %v", info.Mode(), err)
			}
		})
	}
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestMounts: what the runtime has mounted stays as it is, and the rest of the image is written.
func TestMounts(t *testing.T) {
	if !mounts(t) {
		return
	}
	const dir, file, symlink, link = tar.TypeDir, tar.TypeReg, tar.TypeSymlink, tar.TypeLink
	base, root := t.TempDir(), t.TempDir()
	must(t, os.Mkdir(base+"/volume", 0o755), os.WriteFile(base+"/volume/old", []byte("precious"), 0o600), os.WriteFile(base+"/hosts", []byte("127.0.0.1"), 0o644),
		os.MkdirAll(root+"/var/run/secrets", 0o755), os.MkdirAll(root+"/etc", 0o755), os.WriteFile(root+"/etc/hosts", nil, 0o644), os.Mkdir(root+"/proc", 0o755))
	for from, to := range map[string]string{base + "/volume": root + "/var/run/secrets", base + "/hosts": root + "/etc/hosts"} {
		if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Unmount(to, unix.MNT_DETACH) })
	}
	r := write(t, root, stream(t,
		entry{dir, "etc", 0o755, ""}, entry{file, "etc/hosts", 0o666, "of the image"}, entry{file, "etc/passwd", 0o644, "root"},
		entry{link, "etc/hosts2", 0, "etc/hosts"}, entry{symlink, "etc/hosts", 0, "passwd"},
		entry{dir, "var", 0o755, ""}, entry{dir, "var/run", 0o755, ""}, entry{dir, "var/run/secrets", 0o777, ""}, entry{file, "var/run/secrets/new", 0o644, ""},
		entry{file, "var/run/secrets/old", 0o644, "x"}, entry{link, "etc/old", 0, "var/run/secrets/old"}, entry{symlink, "var/run", 0, "/run"}, entry{file, "end", 0o644, ""},
	), ample)
	if diff := cmp.Diff(Report{Entries: 5, Bytes: 4, MountedCount: 8, Mounted: []string{"etc/hosts", "etc/hosts2", "etc/hosts", "var/run/secrets"}}, r); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	want := map[string]string{"etc": "drwxr-xr-x", "etc/hosts": "-rw-r--r-- 127.0.0.1", "etc/passwd": "-rw-r--r-- root", "proc": "drwxr-xr-x",
		"var": "drwxr-xr-x", "var/run": "drwxr-xr-x", "var/run/secrets": "drwxr-xr-x", "var/run/secrets/old": "-rw------- precious", "end": "-rw-r--r-- "}
	if diff := cmp.Diff(want, tree(t, root)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// TestDiskFull writes to small file systems.
func TestDiskFull(t *testing.T) {
	if !mounts(t) {
		return
	}
	for name, tt := range map[string]struct {
		options string
		flags   uintptr
		want    Reason
		errno   syscall.Errno
	}{
		"full":          {"size=64k", 0, DiskFull, unix.ENOSPC},
		"out of inodes": {"nr_inodes=2", 0, DiskFull, unix.ENOSPC},
		"read-only":     {"size=64k", unix.MS_RDONLY, ReadOnly, unix.EROFS},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			if err := unix.Mount("none", root, "tmpfs", tt.flags, tt.options); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = unix.Unmount(root, unix.MNT_DETACH) })
			r := write(t, root, stream(t, entry{tar.TypeReg, "a", 0o644, "x"}, entry{tar.TypeReg, "b", 0o644, strings.Repeat("x", 200_000)}), ample)
			if r.Reason != tt.want || r.Errno != tt.errno || r.Path == "" || r.Message == "" {
				t.Errorf("%+v, want %s, %v", r, tt.want, tt.errno)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	data := stream(t, entry{tar.TypeDir, "d", 0o755, ""}, entry{tar.TypeReg, "d/a", 0o644, "12345"}, entry{tar.TypeReg, "d/b", 0o644, "12345"})
	for name, tt := range map[string]struct {
		limits Limits
		want   Report
	}{
		"just enough":      {Limits{10, 3}, Report{Entries: 3, Bytes: 10}},
		"a byte too few":   {Limits{9, 3}, Report{Entries: 2, Bytes: 5, Reason: TooLarge, Path: "d/b", Message: "the image's files have more than 9 bytes"}},
		"an entry too few": {Limits{10, 2}, Report{Entries: 2, Bytes: 5, Reason: TooLarge, Path: "d/b", Message: "the image has more than 2 files"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, write(t, t.TempDir(), data, tt.limits)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestLimitOfWhatIsLeftOut: a stream of nothing but devices ends as well.
func TestLimitOfWhatIsLeftOut(t *testing.T) {
	data := stream(t, entry{tar.TypeChar, "a", 0o644, ""}, entry{tar.TypeChar, "b", 0o644, ""}, entry{tar.TypeDir, ".", 0o755, ""})
	want := Report{Skipped: 2, Reason: TooLarge, Path: ".", Message: "the image has more than 2 files"}
	if diff := cmp.Diff(want, write(t, t.TempDir(), data, Limits{Entries: 2})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestBrokenOff: a stream whose writer died is never a whole image, wherever it ends.
func TestBrokenOff(t *testing.T) {
	data := stream(t, entry{tar.TypeDir, "d", 0o755, ""}, entry{tar.TypeReg, "d/a", 0o644, strings.Repeat("x", 3000)})
	for n := 0; n < len(data); n += 64 {
		if n >= len(data)-512 {
			break // the second block of zeros tells nothing more
		}
		if r := write(t, t.TempDir(), data[:n], ample); r.Reason != Malformed {
			t.Fatalf("of %d bytes, %d came: %+v", len(data), n, r)
		}
	}
	if r := write(t, t.TempDir(), data, ample); r.Reason != "" {
		t.Errorf("all came: %+v", r)
	}
}

// TestHoles: zeros take no space, wherever they are in a file.
func TestHoles(t *testing.T) {
	for name, body := range map[string]string{
		"at the end":       "x" + strings.Repeat("\x00", 3*chunk),
		"at the beginning": strings.Repeat("\x00", 2*chunk) + "x",
		"all":              strings.Repeat("\x00", 2*chunk+5),
		"none":             strings.Repeat("x", chunk+3),
		"in short":         "\x00\x00x\x00",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			r := write(t, dir, stream(t, entry{tar.TypeReg, "f", 0o644, body}), ample)
			data, err := os.ReadFile(dir + "/f")
			if err != nil || string(data) != body || r.Bytes != int64(len(body)) {
				t.Errorf("%d bytes came back, %v; %+v", len(data), err, r)
			}
			info, err := os.Stat(dir + "/f")
			must(t, err)
			if !info.ModTime().Equal(time.Unix(1e9, 0)) {
				t.Errorf("its time is %v", info.ModTime())
			}
			if used := info.Sys().(*syscall.Stat_t).Blocks * 512; name == "all" && used > 0 {
				t.Errorf("it takes %d bytes", used)
			}
		})
	}
}
