package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func open(t *testing.T) (*os.Root, string) {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root, dir
}

// listing returns what a directory contains: "name mode content" of each file, with
// "->" and the target instead of the content for a link.
func listing(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		path, text := filepath.Join(dir, e.Name()), ""
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			text, err = os.Readlink(path)
			text = "->" + text
		case info.Mode().IsRegular():
			var data []byte
			data, err = os.ReadFile(path)
			text = string(data)
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, strings.TrimRight(e.Name()+" "+info.Mode().Perm().String()+" "+text, " "))
	}
	return out
}

func TestReplace(t *testing.T) {
	defer unix.Umask(unix.Umask(0o077)) // modes must not depend on it
	for what, c := range map[string]struct {
		before  func(dir string) error
		name    string
		options Options
		want    []string
		err     error
	}{
		"new":           {name: "a", options: Options{Mode: 0o644}, want: []string{"a -rw-r--r-- new"}},
		"without write": {name: "a", options: Options{Mode: 0o400}, want: []string{"a -r-------- new"}},
		"old": {name: ".a", options: Options{Mode: 0o600}, want: []string{".a -rw------- new"},
			before: func(dir string) error { return os.WriteFile(dir+"/.a", []byte("older and longer"), 0o644) }},
		"link": {name: "a", options: Options{Mode: 0o600}, want: []string{"a -rw------- new", "b -rw------- theirs"},
			before: func(dir string) error {
				return errors.Join(os.WriteFile(dir+"/b", []byte("theirs"), 0o600), os.Symlink("b", dir+"/a"))
			}},
		"left by a crash": {name: "a", options: Options{Mode: 0o600, Temporary: "a.new"}, want: []string{"a -rw------- new"},
			before: func(dir string) error { return os.WriteFile(dir+"/a.new", []byte("half of something longer"), 0o644) }},
		"link in the way": {name: "a", options: Options{Mode: 0o600, Temporary: "a.new"}, want: []string{"a.new -rwxrwxrwx ->b", "b -rw------- theirs"}, err: unix.EEXIST,
			before: func(dir string) error {
				return errors.Join(os.WriteFile(dir+"/b", []byte("theirs"), 0o600), os.Symlink("b", dir+"/a.new"))
			}},
		"directory in the way": {name: "a", options: Options{Temporary: "t"}, want: []string{"t -rwx------"}, err: unix.EEXIST,
			before: func(dir string) error { return os.Mkdir(dir+"/t", 0o700) }},
		"directory": {name: "a", want: []string{"a -rwx------"}, err: unix.EISDIR,
			before: func(dir string) error { return os.Mkdir(dir+"/a", 0o700) }},
		"given": {name: "a", options: Options{Mode: 0o600, Give: func(fd int) error { return unix.Fchmod(fd, 0o640) }},
			want: []string{"a -rw-r----- new"}},
		"cannot be given": {name: "a", options: Options{Give: func(int) error { return unix.EPERM }}, want: []string{"a -rw------- old"}, err: unix.EPERM,
			before: func(dir string) error { return os.WriteFile(dir+"/a", []byte("old"), 0o600) }},
		"path":           {name: "d/a", err: unix.EINVAL},
		"above":          {name: "..", err: unix.EINVAL},
		"itself":         {name: ".", err: unix.EINVAL},
		"no name":        {name: "", err: unix.EINVAL},
		"temporary path": {name: "a", options: Options{Temporary: "../a"}, err: unix.EINVAL},
	} {
		t.Run(what, func(t *testing.T) {
			root, dir := open(t)
			if c.before != nil {
				if err := c.before(dir); err != nil {
					t.Fatal(err)
				}
			}
			if err := Replace(root, c.name, []byte("new"), c.options); !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
				t.Errorf("error %v, want %v", err, c.err)
			}
			if diff := cmp.Diff(c.want, listing(t, dir)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestGivenEmpty: the file is empty until it has its owner.
func TestGivenEmpty(t *testing.T) {
	root, dir := open(t)
	size := int64(-1)
	err := Replace(root, "a", []byte("secret"), Options{Mode: 0o600, Give: func(fd int) error {
		var st unix.Stat_t
		err := unix.Fstat(fd, &st)
		size = st.Size
		return err
	}})
	if err != nil || size != 0 {
		t.Errorf("%d bytes were in the file before it was given away, %v", size, err)
	}
	if diff := cmp.Diff([]string{"a -rw------- secret"}, listing(t, dir)); diff != "" {
		t.Error(diff)
	}
}

// TestReadersSeeItWhole: many replace a file at once, and every reader finds one of
// their texts.
func TestReadersSeeItWhole(t *testing.T) {
	root, dir := open(t)
	texts := map[string]bool{}
	for _, c := range "abcd" {
		texts[strings.Repeat(string(c), 1<<16)] = true
	}
	var writers sync.WaitGroup
	for text := range texts {
		if err := Replace(root, "f", []byte(text), Options{Mode: 0o600}); err != nil {
			t.Fatal(err)
		}
		writers.Go(func() {
			for range 100 {
				if err := Replace(root, "f", []byte(text), Options{Mode: 0o600}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { writers.Wait(); close(done) }()
	for reading := true; reading; {
		select {
		case <-done:
			reading = false
		default:
		}
		if data, err := os.ReadFile(filepath.Join(dir, "f")); err != nil || !texts[string(data)] {
			t.Fatalf("%d bytes %.10q, %v", len(data), data, err)
		}
	}
	if got := listing(t, dir); len(got) != 1 {
		t.Errorf("temporary files are left: %d names", len(got))
	}
}

// TestReplaceAt works with a descriptor that cannot be read (O_PATH).
func TestReplaceAt(t *testing.T) {
	_, dir := open(t)
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := ReplaceAt(fd, "a", []byte("x"), Options{Mode: 0o600}); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"a -rw------- x"}, listing(t, dir)); diff != "" {
		t.Error(diff)
	}
}
