package imagetree

import (
	"archive/tar"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// TestLayers: files of later layers come where a container runtime puts them, and what they remove goes.
func TestLayers(t *testing.T) {
	const dir, file, symlink, link = tar.TypeDir, tar.TypeReg, tar.TypeSymlink, tar.TypeLink
	usr := []entry{{dir, "usr", 0o755, ""}, {dir, "usr/lib", 0o755, ""}, {file, "usr/lib/a", 0o644, "a"}, {symlink, "lib", 0, "usr/lib"}}
	for name, tt := range map[string]struct {
		layers [][]entry
		reason Reason
		want   map[string]string
	}{
		"below a link": {
			layers: [][]entry{usr, {{file, "lib/b", 0o644, "b"}, {link, "c", 0, "lib/a"}}},
			want: map[string]string{
				"usr": "drwxr-xr-x", "usr/lib": "drwxr-xr-x", "usr/lib/a": "-rw-r--r-- a *2", "usr/lib/b": "-rw-r--r-- b", "lib": "Lrwxrwxrwx usr/lib", "c": "-rw-r--r-- a *2",
			},
		},
		"below a link that leads out": { // the root is above all
			layers: [][]entry{{{symlink, "l", 0, "../../outside"}, {dir, "outside", 0o755, ""}}, {{file, "l/new", 0o644, "x"}, {removal, "l/old", 0, RecordGone}}},
			want:   map[string]string{"l": "Lrwxrwxrwx ../../outside", "outside": "drwxr-xr-x", "outside/new": "-rw-r--r-- x"},
		},
		"in directories that no layer has": {
			layers: [][]entry{{{file, "a/b/c", 0o600, "x"}, {file, "a/d", 0o600, "y"}}},
			want:   map[string]string{"a": "drwxr-xr-x", "a/b": "drwxr-xr-x", "a/b/c": "-rw------- x", "a/d": "-rw------- y"},
		},
		"a directory in the place of a link": {
			layers: [][]entry{usr, {{dir, "lib", 0o700, ""}, {file, "lib/b", 0o644, "b"}}},
			want:   map[string]string{"usr": "drwxr-xr-x", "usr/lib": "drwxr-xr-x", "usr/lib/a": "-rw-r--r-- a", "lib": "drwx------", "lib/b": "-rw-r--r-- b"},
		},
		"a file in the place of a directory": {
			layers: [][]entry{usr, {{file, "usr", 0o644, "u"}}},
			want:   map[string]string{"usr": "-rw-r--r-- u", "lib": "Lrwxrwxrwx usr/lib"},
		},
		"removed": {
			layers: [][]entry{usr, {{removal, "usr/lib", 0, RecordGone}, {removal, "lib", 0, RecordGone}, {removal, "none", 0, RecordGone}, {removal, "none/at/all", 0, RecordGone}, {file, "usr/lib", 0o644, "new"}}},
			want:   map[string]string{"usr": "drwxr-xr-x", "usr/lib": "-rw-r--r-- new"},
		},
		"removed while it is open": {
			layers: [][]entry{{{file, "a/b", 0o644, "1"}}, {{removal, "a", 0, RecordGone}, {file, "a/c", 0o644, "2"}}},
			want:   map[string]string{"a": "drwxr-xr-x", "a/c": "-rw-r--r-- 2"},
		},
		"emptied": {
			layers: [][]entry{usr, {{removal, "usr", 0, RecordEmptied}, {removal, "none", 0, RecordEmptied}, {file, "usr/new", 0o644, "n"}}},
			want:   map[string]string{"usr": "drwxr-xr-x", "usr/new": "-rw-r--r-- n", "lib": "Lrwxrwxrwx usr/lib"},
		},
		"all of it emptied": {
			layers: [][]entry{usr, {{removal, ".", 0, RecordEmptied}, {file, "new", 0o644, "n"}}},
			want:   map[string]string{"new": "-rw-r--r-- n"},
		},
		"below a file": {layers: [][]entry{{{file, "a", 0o644, "x"}, {file, "a/b", 0o644, "y"}}}, reason: Malformed, want: map[string]string{"a": "-rw-r--r-- x"}},
		"below a link that leads to nothing": {
			layers: [][]entry{{{dir, "var", 0o755, ""}, {symlink, "var/run", 0, "../run/a"}, {symlink, "l", 0, "/m"}, {symlink, "m", 0, "/o"}, {file, "var/run/b", 0o644, "y"}, {file, "l/c", 0o644, "z"}}},
			want: map[string]string{
				"var": "drwxr-xr-x", "var/run": "Lrwxrwxrwx ../run/a", "run": "drwxr-xr-x", "run/a": "drwxr-xr-x", "run/a/b": "-rw-r--r-- y", "l": "Lrwxrwxrwx /m", "m": "Lrwxrwxrwx /o",
				"o": "drwxr-xr-x", "o/c": "-rw-r--r-- z",
			},
		},
		"links in a circle": {layers: [][]entry{{{symlink, "l", 0, "m"}, {symlink, "m", 0, "l"}, {file, "l/b", 0o644, "y"}}}, reason: Malformed, want: map[string]string{"l": "Lrwxrwxrwx m", "m": "Lrwxrwxrwx l"}},
		"replaced, and replaced again": {
			layers: [][]entry{{{dir, "a", 0o755, ""}, {file, "a/b", 0o644, "1"}}, {{file, "a", 0o644, "2"}}, {{dir, "a", 0o755, ""}, {file, "a/c", 0o644, "3"}}},
			want:   map[string]string{"a": "drwxr-xr-x", "a/c": "-rw-r--r-- 3"},
		},
		"the root removed": {layers: [][]entry{{{removal, ".", 0, RecordGone}}}, reason: Malformed, want: map[string]string{}},
		"what is to go?":   {layers: [][]entry{{{removal, "a", 0, "some"}}}, reason: Malformed, want: map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			root, outside := filepath.Join(top, "deep/root"), filepath.Join(top, "outside")
			must(t, os.MkdirAll(root, 0o755), os.Mkdir(outside, 0o755), os.WriteFile(filepath.Join(outside, "old"), []byte("o"), 0o644))
			var all []entry
			for _, layer := range tt.layers {
				all = append(all, layer...)
			}
			report := writeBy(t, root, stream(t, all...), Order{Limits: ample, Layers: true})
			if report.Reason != tt.reason {
				t.Errorf("%+v", report)
			}
			if diff := cmp.Diff(tt.want, tree(t, root)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(map[string]string{"old": "-rw-r--r-- o"}, tree(t, outside)); diff != "" {
				t.Errorf("outside (-want +got):\n%s", diff)
			}
		})
	}
}

// TestMadeDirectoriesCount: directories that no layer has count, too: a name can have hundreds of them.
func TestMadeDirectoriesCount(t *testing.T) {
	for name, tt := range map[string]struct {
		entries []entry
		limit   int64
		reason  Reason
	}{
		"enough":            {[]entry{{tar.TypeReg, "a/b/c/d", 0o644, ""}}, 4, ""},
		"one more":          {[]entry{{tar.TypeReg, "a/b/c/d", 0o644, ""}}, 3, TooLarge},
		"where links lead":  {[]entry{{tar.TypeSymlink, "l", 0, "/a/b/c"}, {tar.TypeReg, "l/d", 0o644, ""}}, 4, TooLarge},
		"a hard link's way": {[]entry{{tar.TypeLink, "l", 0, "a/b/c/d"}}, 9, Malformed},
	} {
		t.Run(name, func(t *testing.T) {
			r := writeBy(t, t.TempDir(), stream(t, tt.entries...), Order{Limits: Limits{Bytes: 1, Entries: tt.limit}, Layers: true})
			if r.Reason != tt.reason || tt.reason == TooLarge && !strings.HasPrefix(r.Message, "the image has more than") {
				t.Errorf("%+v, want reason %q", r, tt.reason)
			}
		})
	}
}

// TestRemovalLeavesMounts: what is mounted stays, with what it needs, and the rest goes.
func TestRemovalLeavesMounts(t *testing.T) {
	if !mounts(t) {
		return
	}
	root := t.TempDir()
	for _, d := range []string{"a/mount", "a/other", "b"} {
		must(t, os.MkdirAll(filepath.Join(root, d), 0o755))
	}
	at := filepath.Join(root, "a/mount")
	must(t, unix.Mount("tmpfs", at, "tmpfs", 0, ""), os.WriteFile(filepath.Join(at, "precious"), []byte("p"), 0o644))
	defer func() { must(t, unix.Unmount(at, unix.MNT_DETACH)) }()
	report := writeBy(t, root, stream(t, entry{removal, ".", 0, RecordEmptied}, entry{removal, "a/mount/precious", 0, RecordGone}, entry{removal, "a", 0, RecordGone}), Order{Limits: ample, Layers: true})
	if report.Reason != "" || report.MountedCount != 3 {
		t.Errorf("%+v", report)
	}
	if diff := cmp.Diff(map[string]string{"a": "drwxr-xr-x", "a/mount": "dtrwxrwxrwx", "a/mount/precious": "-rw-r--r-- p"}, tree(t, root)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestNothingIsRemovedOutsideOfLayers: an image that is a file is one tree.
func TestNothingIsRemovedOutsideOfLayers(t *testing.T) {
	root := t.TempDir()
	report := write(t, root, stream(t, entry{tar.TypeReg, "a", 0o644, "x"}, entry{removal, "a", 0o644, RecordGone}), ample)
	if diff := cmp.Diff(map[string]string{"a": "-rw-r--r-- "}, tree(t, root)); report.Reason != "" || diff != "" {
		t.Errorf("%+v (-want +got):\n%s", report, diff)
	}
}
