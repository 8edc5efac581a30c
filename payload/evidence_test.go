package payload

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// sayWith is say with open files.
func sayWith(text string, files ...*os.File) func(net.Conn) {
	// The test closes the files without waiting for this server.
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(f.Fd())
	}
	return func(c net.Conn) {
		if _, _, err := c.(*net.UnixConn).WriteMsgUnix([]byte(text), unix.UnixRights(fds...), nil); err != nil {
			return
		}
		_, _ = c.Read(make([]byte, 1))
	}
}

// TestCgroups: whatever comes with the Hello, only a file of /proc is read, and no file
// stays open.
func TestCgroups(t *testing.T) {
	open := func(path string) *os.File {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	own, err := os.ReadFile(CgroupFile)
	if err != nil {
		t.Fatal(err)
	}
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, own, 0o600); err != nil {
		t.Fatal(err)
	}
	silent, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close(); writer.Close() })
	for name, test := range map[string]struct {
		files []*os.File
		want  string
	}{
		"none":            {},
		"as it should be": {[]*os.File{open(CgroupFile)}, string(own)},
		"the first":       {[]*os.File{open(CgroupFile), silent, silent}, string(own)},
		"too many":        {[]*os.File{open(CgroupFile), silent, silent, silent, silent, silent, silent, silent, silent, silent, silent}, string(own)},
		"a pipe":          {[]*os.File{silent}, ""},
		"forged":          {[]*os.File{open(plain)}, ""},
		"a directory":     {[]*os.File{open("/proc/self")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "c")
			serve := say(`{"hello":{"protocol":1,"nonce":"new"}}` + "\n")
			if len(test.files) > 0 {
				serve = sayWith(`{"hello":{"protocol":1,"nonce":"new"}}`+"\n", test.files...)
			}
			fakeWrapper(t, dir, serve)
			before := openFiles(t)
			c, err := Dial(soon(t, patience), Options{Dir: dir, Nonce: "new"})
			if err != nil {
				t.Fatal(err)
			}
			if got := c.Cgroups(); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
			for path, n := range openFiles(t) {
				if n > before[path] {
					t.Errorf("%s is left open", path)
				}
			}
			c.Close()
		})
	}
}

// openFiles counts the open pipes and files of /proc and of temporary
// directories.
func openFiles(t *testing.T) map[string]int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	count := make(map[string]int)
	for _, e := range entries {
		link, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err == nil && !isSocketOrEvent(link) {
			count[link]++
		}
	}
	return count
}

func isSocketOrEvent(link string) bool {
	kind, _, _ := strings.Cut(link, ":")
	return kind == "socket" || kind == "anon_inode"
}
