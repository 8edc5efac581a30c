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
			serve := say(`{"hello":{"protocol":2,"nonce":"new"}}` + "\n")
			if len(test.files) > 0 {
				serve = sayWith(`{"hello":{"protocol":2,"nonce":"new"}}`+"\n", test.files...)
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

// TestMemoryOfTheWrapper: files that the wrapper passes off as those of its memory control
// group are not read, none stays open, and the connection goes on.
func TestMemoryOfTheWrapper(t *testing.T) {
	const hello = `{"hello":{"protocol":2,"nonce":"new"}}` + "\n"
	offer := func(names string) string {
		return `{"memory":{"version":2,"files":[` + names + `],"limit_above_bytes":-1}}` + "\n"
	}
	pipes := func(n int) (files []*os.File) {
		for range n {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { r.Close(); w.Close() })
			files = append(files, r)
		}
		return files
	}
	own, err := os.Open(CgroupFile)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	ownFD := int(own.Fd())
	for name, test := range map[string]struct {
		says  string
		files int
	}{
		"a pipe":               {offer(`"memory.current"`), 1},
		"no files":             {offer(`"memory.current"`), 0},
		"too few":              {offer(`"memory.current","memory.stat"`), 1},
		"too many":             {offer(`"memory.current"`), 20},
		"with another message": {`{"id":77,"done":true}` + "\n", 2},
		"none announced":       {offer(``), 1},
		"twice":                {offer(`"memory.current"`) + offer(`"memory.stat"`), 1},
		"with the Hello":       {"", 3},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "c")
			files := pipes(test.files)
			fds := make([]int, len(files)) // the test closes the files without waiting for the server
			for i, f := range files {
				fds[i] = int(f.Fd())
			}
			before := openFiles(t)
			fakeWrapper(t, dir, func(c net.Conn) {
				// Without a file of its own the Hello may be read together with what follows.
				lines, controls := []string{hello, test.says}, [][]byte{unix.UnixRights(ownFD), nil}
				switch {
				case test.says == "":
					lines, controls = lines[:1], [][]byte{unix.UnixRights(fds...)}
				case len(fds) > 0:
					controls[1] = unix.UnixRights(fds...)
				}
				for i, line := range lines {
					control := controls[i]
					if _, _, err := c.(*net.UnixConn).WriteMsgUnix([]byte(line), control, nil); err != nil {
						return
					}
				}
				// The answer to the usage request tells that all before was read.
				if _, err := c.Read(make([]byte, 1000)); err == nil {
					_, _ = c.Write([]byte(`{"id":1,"usage":{"processes":7}}` + "\n"))
				}
				_, _ = c.Read(make([]byte, 1))
			})
			c, err := Dial(soon(t, patience), Options{Dir: dir, Nonce: "new"})
			if err != nil {
				t.Fatal(err)
			}
			if u, err := c.Usage(soon(t, patience)); err != nil || u.Processes != 7 {
				t.Errorf("%+v, %v", u, err)
			}
			if c.Memory() != nil {
				t.Error("the files were taken for those of a memory control group")
			}
			c.Close()
			for path, n := range openFiles(t) {
				if n > before[path] {
					t.Errorf("%s is left open", path)
				}
			}
		})
	}
}
