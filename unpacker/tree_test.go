package main

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"podstarter/unpacker/fault"
	"podstarter/unpacker/tarstream"
	"podstarter/unpacker/tree"
)

// extract makes a directory of a stream, as far as the tests' user can.
func extract(t *testing.T, r io.Reader, dir string) {
	t.Helper()
	in := tar.NewReader(r)
	var headers []*tar.Header
	for {
		h, err := in.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, h.Name)
		switch h.Typeflag {
		case tar.TypeDir:
			err = os.Mkdir(path, 0o700)
		case tar.TypeSymlink:
			err = os.Symlink(h.Linkname, path)
		case tar.TypeLink:
			err = os.Link(filepath.Join(dir, h.Linkname), path)
		case tar.TypeFifo:
			err = unix.Mkfifo(path, 0o600)
		default:
			var b []byte
			if b, err = io.ReadAll(in); err == nil {
				err = os.WriteFile(path, b, 0o600)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		headers = append(headers, h)
	}
	for i := len(headers) - 1; i >= 0; i-- {
		h := headers[i]
		path := filepath.Join(dir, h.Name)
		if h.Typeflag != tar.TypeSymlink {
			if err := unix.Chmod(path, uint32(h.Mode)); err != nil {
				t.Fatal(err)
			}
		}
		at := unix.NsecToTimespec(time.Unix(1700000000, 0).UnixNano())
		if err := unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{at, at}, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			t.Fatal(err)
		}
	}
}

func walkTree(t *testing.T, dir string, b tarstream.Bounds, out io.Writer) error {
	t.Helper()
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := tarstream.New(out, b)
	if err := tree.Walk(int(f.Fd()), w); err != nil {
		return err
	}
	return w.Close()
}

// TestSameStream: an image and the directory that it was unpacked to give the same bytes.
func TestSameStream(t *testing.T) {
	var image, directory bytes.Buffer
	if err := unpackBytes(fixture(t, "gzip"), usual, &image); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	extract(t, bytes.NewReader(image.Bytes()), dir)
	if os.Getuid() != 0 {
		// Only root reads a file that nobody may read.
		if err := os.Chmod(filepath.Join(dir, "modes/0000"), 0o400); err != nil {
			t.Fatal(err)
		}
	}
	if err := walkTree(t, dir, usual.bounds, &directory); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 && !bytes.Equal(image.Bytes(), directory.Bytes()) {
		t.Errorf("(-image +directory):\n%s", cmp.Diff(list(t, &image), list(t, &directory)))
	}
}

func TestTree(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "a/b", "a/b/c"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("12345"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		bounds tarstream.Bounds
		want   fault.Reason
	}{
		"enough":  {tarstream.Bounds{Bytes: 5, Entries: 5, Depth: 3, Target: 4096}, ""},
		"bytes":   {tarstream.Bounds{Bytes: 4, Entries: 5, Depth: 3, Target: 4096}, fault.TooLarge},
		"entries": {tarstream.Bounds{Bytes: 5, Entries: 4, Depth: 3, Target: 4096}, fault.TooLarge},
		"depth":   {tarstream.Bounds{Bytes: 5, Entries: 5, Depth: 2, Target: 4096}, fault.TooLarge},
		"target":  {tarstream.Bounds{Bytes: 5, Entries: 5, Depth: 3, Target: 2}, fault.TooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := walkTree(t, dir, tt.bounds, &out)
			if got := reason(err); got != tt.want {
				t.Fatalf("%q, want %q: %v", got, tt.want, err)
			}
			if bytes.Contains(out.Bytes(), []byte("secret")) {
				t.Error("a link was followed")
			}
		})
	}
}
