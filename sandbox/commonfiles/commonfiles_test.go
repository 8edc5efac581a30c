package commonfiles_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"podstarter/sandbox"
	"podstarter/sandbox/commonfiles"
	"podstarter/sandbox/sandboxtest"
)

// links forces hard links, and copies whole copies, on a volume without reflinks.
var (
	links  = commonfiles.Policy{Link: true}
	copies = commonfiles.Policy{Copy: true}
	quiet  = slog.New(slog.DiscardHandler)
)

// box makes a sandbox of a user in an EXECUTE directory.
func box(t *testing.T, execute string, pid, uid int, keeps bool) *sandbox.Sandbox {
	t.Helper()
	s, err := sandbox.Create(t.Context(), sandbox.Options{Execute: execute, PID: pid, Nested: true, Keeps: keeps,
		Condor: sandbox.Self(), Payload: sandbox.Owner{UID: uid, GID: uid}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Remove(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// root leaves a test to root.
func root(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: common files belong to it")
	}
}

const dataUID, jobUID = 10101, 10102

var key = commonfiles.KeyOf("ann@example.org", "ap.example.org", "catalog")

// keep puts a catalog with these files into the sandbox of a data slot.
func keep(t *testing.T, s *sandbox.Sandbox, k commonfiles.Key, files map[string]string) {
	t.Helper()
	d := stage(t, s, files)
	if _, err := d.Keep(t.Context(), k, false); err != nil {
		t.Fatal(err)
	}
}

// stage writes files as the user of the data slot.
func stage(t *testing.T, s *sandbox.Sandbox, files map[string]string) *sandbox.Staging {
	t.Helper()
	d, err := s.Stage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		err := d.Payload().Do(func() error {
			f, err := d.Root().Create(name, 0o644)
			if err != nil {
				return err
			}
			_, err = f.Write([]byte(text))
			return errors.Join(err, f.Close())
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func find(t *testing.T, execute string, k commonfiles.Key) *commonfiles.Catalog {
	t.Helper()
	found, err := commonfiles.Find(execute, k, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range found {
		t.Cleanup(c.Close)
	}
	return found[len(found)-1]
}

func stat(t *testing.T, path string) unix.Stat_t {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		t.Fatal(err)
	}
	return st
}

// TestShare: a job gets all files of a catalog by each method, and can remove but not change them.
func TestShare(t *testing.T) {
	root(t)
	for _, tt := range []struct {
		name   string
		policy commonfiles.Policy
		own    string
		want   map[commonfiles.Method]int
	}{
		{"links", links, "", map[commonfiles.Method]int{commonfiles.Hardlink: 2}},
		{"links are better", commonfiles.Policy{Link: true, Copy: true}, "", map[commonfiles.Method]int{commonfiles.Hardlink: 2}},
		{"copies", copies, "", map[commonfiles.Method]int{commonfiles.Copy: 2}},
		{"the program", commonfiles.Policy{Link: true, Copy: true}, "a", map[commonfiles.Method]int{commonfiles.Hardlink: 1, commonfiles.Copy: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			execute := sandboxtest.ExecuteDir(t)
			data, job := box(t, execute, 1, dataUID, true), box(t, execute, 2, jobUID, false)
			keep(t, data, key, map[string]string{"a": "first", "sub/dir/b": "second"})
			shared, err := job.Share(t.Context(), find(t, execute, key), tt.own, tt.policy, quiet)
			if err != nil {
				t.Fatal(err)
			}
			if shared.Files[commonfiles.Reflink] > 0 {
				t.Skip("this volume knows reflinks, which go before")
			}
			if diff := cmp.Diff(commonfiles.Shared{Files: tt.want, Bytes: 11}, shared); diff != "" {
				t.Errorf("shared (-want +got):\n%s", diff)
			}
			for name, text := range map[string]string{"a": "first", "sub/dir/b": "second"} {
				got, err := job.ReadFile(name, 100)
				if err != nil || string(got) != text {
					t.Errorf("%s: %q, %v", name, got, err)
				}
				if st := stat(t, filepath.Join(job.Scratch(), name)); st.Mode&0o7777 != 0o444 {
					t.Errorf("%s has mode %o", name, st.Mode)
				}
			}
			if st := stat(t, filepath.Join(job.Scratch(), "sub/dir")); int(st.Uid) != jobUID {
				t.Errorf("the directory belongs to %d", st.Uid)
			}
			// What the job removes is gone for the job alone.
			if err := job.RemoveFile("a"); err != nil {
				t.Error(err)
			}
			other := box(t, execute, 3, jobUID+1, false)
			if _, err := other.Share(t.Context(), find(t, execute, key), "", tt.policy, quiet); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestJobCannotChange: with hard links, no right of the job's lets it change the file that others have.
func TestJobCannotChange(t *testing.T) {
	root(t)
	execute := sandboxtest.ExecuteDir(t)
	data, job := box(t, execute, 1, dataUID, true), box(t, execute, 2, jobUID, false)
	keep(t, data, key, map[string]string{"a": "first"})
	if _, err := job.Share(t.Context(), find(t, execute, key), "", links, quiet); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(job.Scratch(), "a")
	if st := stat(t, path); st.Nlink < 2 {
		t.Skip("this volume shares blocks and not files")
	} else if st.Uid != 0 || st.Gid != 0 { // who owns a file may give it another mode
		t.Errorf("the file belongs to %d:%d", st.Uid, st.Gid)
	}
	for name, attack := range map[string]func() error{
		"write":    func() error { return os.WriteFile(path, []byte("x"), 0o600) },
		"truncate": func() error { return unix.Truncate(path, 0) },
		"mode":     func() error { return unix.Chmod(path, 0o666) },
		"owner":    func() error { return unix.Chown(path, jobUID, jobUID) },
		"times":    func() error { return unix.Utimes(path, []unix.Timeval{{}, {}}) },
		"xattr":    func() error { return unix.Setxattr(path, "user.x", []byte("x"), 0) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, as := range []sandbox.Owner{job.Payload(), data.Payload()} {
				if err := as.Do(attack); err == nil {
					t.Errorf("user %d may do that", as.UID)
				}
			}
		})
	}
	if err := data.Payload().Do(func() error {
		_, err := os.ReadDir(filepath.Join(data.Dir(), "catalogs"))
		return err
	}); err == nil {
		t.Error("a job's user may enter the catalogs")
	}
}

// TestKeepRefuses: what may be somebody else's, or may still change, becomes no catalog.
func TestKeepRefuses(t *testing.T) {
	root(t)
	for name, tt := range map[string]struct {
		spoil func(dir string) error
		want  string
	}{
		"a link":       {func(dir string) error { return os.Symlink("/etc/shadow", dir+"/l") }, "too many levels of symbolic links"},
		"another name": {func(dir string) error { return os.Link(dir+"/a", dir+"/../mine") }, "it has 2 names"},
		"a fifo":       {func(dir string) error { return unix.Mkfifo(dir+"/f", 0o600) }, "not a regular file"},
		"too deep":     {func(dir string) error { return os.MkdirAll(dir+strings.Repeat("/d", 70), 0o700) }, "pack the files into an archive"},
		"not a directory": {func(dir string) error {
			return errors.Join(os.RemoveAll(dir), os.Symlink("/etc", dir))
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			execute := sandboxtest.ExecuteDir(t)
			data := box(t, execute, 1, dataUID, true)
			d := stage(t, data, map[string]string{"a": "first"})
			if err := d.Payload().Do(func() error { return tt.spoil(d.Scratch()) }); err != nil {
				t.Fatal(err)
			}
			if _, err := d.Keep(t.Context(), key, false); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
			if _, err := commonfiles.Find(execute, key, ""); !errors.Is(err, commonfiles.ErrNone) {
				t.Errorf("it can be found: %v", err)
			}
		})
	}
	if st := stat(t, "/etc"); st.Mode&0o777 != 0o755 {
		t.Errorf("/etc has mode %o", st.Mode)
	}
}

// TestKeepRefusesWriters: a file that a process can still write to becomes no catalog.
func TestKeepRefusesWriters(t *testing.T) {
	root(t)
	execute := sandboxtest.ExecuteDir(t)
	data := box(t, execute, 1, dataUID, true)
	d := stage(t, data, map[string]string{"a": "first"})
	w, err := os.OpenFile(d.Scratch()+"/a", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := d.Keep(t.Context(), key, false); err == nil || !strings.Contains(err.Error(), "open for writing") {
		t.Errorf("%v", err)
	}
}

// TestKeysDiffer: whatever differs of a catalog's origin, its key does.
func TestKeysDiffer(t *testing.T) {
	seen := map[commonfiles.Key]string{key: "the catalog"}
	for name, other := range others {
		if what, known := seen[other]; known {
			t.Errorf("%s has the key of %s", name, what)
		}
		if seen[other] = name; strings.Trim(string(other), "0123456789abcdef") != "" {
			t.Errorf("%s has the key %q", name, other)
		}
	}
}

// others are catalogs that differ in one thing.
var others = map[string]commonfiles.Key{
	"another user":         commonfiles.KeyOf("bob@example.org", "ap.example.org", "catalog"),
	"another access point": commonfiles.KeyOf("ann@example.org", "ap2.example.org", "catalog"),
	"another name":         commonfiles.KeyOf("ann@example.org", "ap.example.org", "catalog2"),
	"moved borders":        commonfiles.KeyOf("ann@example.orga", "p.example.org", "catalog"),
	"dots":                 commonfiles.KeyOf("ann@example.org", "ap.example.org", "../../catalogs/"+string(key)),
}

// TestFindsOwnOnly: a catalog is found by exactly its key, and only where the starter keeps some.
func TestFindsOwnOnly(t *testing.T) {
	root(t)
	execute := sandboxtest.ExecuteDir(t)
	data := box(t, execute, 1, dataUID, true)
	job := box(t, execute, 2, jobUID, false)
	keep(t, data, key, map[string]string{"a": "first"})
	for name, other := range others {
		if _, err := commonfiles.Find(execute, other, ""); !errors.Is(err, commonfiles.ErrNone) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A job that makes itself look like a data slot is not believed.
	forged := commonfiles.KeyOf("ann@example.org", "ap.example.org", "forged")
	if err := job.Payload().Do(func() error {
		dir := filepath.Join(job.Scratch(), "catalogs", string(forged))
		return errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(dir+"/a", nil, 0o444))
	}); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(job.Scratch(), filepath.Join(execute, "dir_9")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(job.Scratch(), filepath.Join(execute, "dir_8")); err != nil {
		t.Fatal(err)
	}
	if _, err := commonfiles.Find(execute, forged, ""); !errors.Is(err, commonfiles.ErrNone) {
		t.Errorf("a job's own directory is taken for a catalog: %v", err)
	}
}

// TestShareLeavesNothing: a name that is taken ends it, and what was made before is gone.
func TestShareLeavesNothing(t *testing.T) {
	root(t)
	for _, policy := range []commonfiles.Policy{links, copies} {
		t.Run(fmt.Sprintf("%+v", policy), func(t *testing.T) {
			execute := sandboxtest.ExecuteDir(t)
			data, job := box(t, execute, 1, dataUID, true), box(t, execute, 2, jobUID, false)
			keep(t, data, key, map[string]string{"a": "1", "b": "2", ".job.ad": "3", "d/e": "4"})
			if err := job.WriteFile(".job.ad", []byte("mine"), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := job.Share(t.Context(), find(t, execute, key), "", policy, quiet)
			if !errors.Is(err, fs.ErrExist) {
				t.Errorf("%v", err)
			}
			names, err := filepath.Glob(job.Scratch() + "/*")
			if err != nil || len(names) != 1 {
				t.Errorf("left, beside .job.ad: %v, %v", names, err)
			}
			if got, _ := job.ReadFile(".job.ad", 10); string(got) != "mine" {
				t.Errorf("the job's file: %q", got)
			}
		})
	}
}

// TestAllOrNothing: a catalog that is being removed gives no job a part of it.
func TestAllOrNothing(t *testing.T) {
	root(t)
	execute := sandboxtest.ExecuteDir(t)
	data, job := box(t, execute, 1, dataUID, true), box(t, execute, 2, jobUID, false)
	keep(t, data, key, map[string]string{"a": "1", "b": "2", "d/e": "3"})
	c := find(t, execute, key)
	kept, err := filepath.Glob(filepath.Join(data.Dir(), "catalogs", string(key)+".*"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("%q, %v", kept, err)
	}
	if err := os.Remove(filepath.Join(kept[0], "d", "e")); err != nil {
		t.Fatal(err)
	}
	if shared, err := job.Share(t.Context(), c, "", links, quiet); err == nil {
		t.Errorf("the job got %v", shared)
	}
	if names, _ := filepath.Glob(job.Scratch() + "/*"); len(names) > 0 {
		t.Errorf("left: %q", names)
	}
	// Another data slot has all of it.
	other := box(t, execute, 3, dataUID+5, true)
	keep(t, other, key, map[string]string{"a": "1", "b": "2", "d/e": "3"})
	found, err := commonfiles.Find(execute, key, "")
	if err != nil || len(found) != 2 {
		t.Fatalf("%d, %v", len(found), err)
	}
	good := 0
	for _, c := range found {
		if _, err := job.Share(t.Context(), c, "", links, quiet); err == nil {
			good++
		}
		c.Close()
	}
	if good != 1 {
		t.Errorf("%d of 2 are whole", good)
	}
}

// TestRemovedMeanwhile: while a data slot goes, a job gets all or an error.
func TestRemovedMeanwhile(t *testing.T) {
	root(t)
	execute := sandboxtest.ExecuteDir(t)
	files := map[string]string{}
	for i := range 800 {
		files[fmt.Sprintf("f%d", i)] = "x"
	}
	data, err := sandbox.Create(t.Context(), sandbox.Options{Execute: execute, PID: 1, Nested: true, Keeps: true, Condor: sandbox.Self(), Payload: sandbox.Owner{UID: dataUID, GID: dataUID}})
	if err != nil {
		t.Fatal(err)
	}
	keep(t, data, key, files)
	job := box(t, execute, 2, jobUID, false)
	gone := make(chan error, 1)
	go func() { gone <- data.Remove(context.WithoutCancel(t.Context())) }()
	for {
		found, err := commonfiles.Find(execute, key, "")
		if err != nil {
			break
		}
		for _, c := range found {
			if shared, err := job.Share(t.Context(), c, "", links, quiet); err == nil {
				if shared.Bytes != 800 {
					t.Errorf("the job got %d of 800", shared.Bytes)
				}
				for name := range files {
					if err := job.RemoveFile(name); err != nil {
						t.Fatal(err)
					}
				}
			}
			c.Close()
		}
	}
	if err := <-gone; err != nil {
		t.Error(err)
	}
}

// TestDiskOnce: hard links count in the sandbox of the data slot only.
func TestDiskOnce(t *testing.T) {
	root(t)
	execute := sandboxtest.ExecuteDir(t)
	data, job := box(t, execute, 1, dataUID, true), box(t, execute, 2, jobUID, false)
	keep(t, data, key, map[string]string{"a": strings.Repeat("x", 1<<20)})
	shared, err := job.Share(t.Context(), find(t, execute, key), "", links, quiet)
	if err != nil {
		t.Fatal(err)
	}
	want := []int64{1024, 0}
	if shared.Files[commonfiles.Hardlink] == 0 {
		want[1] = 1024
	}
	for i, s := range []*sandbox.Sandbox{data, job} {
		if kib, _, err := s.Usage(t.Context()); err != nil || kib != want[i] {
			t.Errorf("sandbox %d: %d KiB, want %d, %v", i, kib, want[i], err)
		}
	}
}

// TestOnlyDataSlotsKeep: a job's sandbox keeps no common files.
func TestOnlyDataSlotsKeep(t *testing.T) {
	root(t)
	job := box(t, sandboxtest.ExecuteDir(t), 1, jobUID, false)
	if _, err := job.Stage(t.Context()); err == nil {
		t.Error("no error")
	}
}

// TestFlatSandboxes: where dir_<pid> of a job is the job's, a data slot's is still closed to it, and
// the startd finds its own file's place. A job's directory of catalogs is not believed.
func TestFlatSandboxes(t *testing.T) {
	root(t)
	execute := sandboxtest.ExecuteDir(t)
	flat := func(pid, uid int, keeps bool) *sandbox.Sandbox {
		s, err := sandbox.Create(t.Context(), sandbox.Options{Execute: execute, PID: pid, Keeps: keeps, Condor: sandbox.Self(), Payload: sandbox.Owner{UID: uid, GID: uid}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Remove(context.Background()); err != nil {
				t.Error(err)
			}
		})
		return s
	}
	data, job := flat(1, dataUID, true), flat(2, jobUID, false)
	if data.HTCondor() != filepath.Join(execute, "dir_1") {
		t.Errorf("the startd's directory is %s", data.HTCondor())
	}
	forged := filepath.Join(job.Scratch(), "catalogs", string(key)+".1.6")
	if err := job.Payload().Do(func() error {
		return errors.Join(os.MkdirAll(forged, 0o700), os.WriteFile(forged+"/a", []byte("forged"), 0o444))
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := commonfiles.Find(execute, key, ""); !errors.Is(err, commonfiles.ErrNone) {
		t.Errorf("what the job made is believed: %v", err)
	}
	keep(t, data, key, map[string]string{"a": "first"})
	if _, err := job.Share(t.Context(), find(t, execute, key), "", links, quiet); err != nil {
		t.Fatal(err)
	}
	if got, err := job.ReadFile("a", 10); err != nil || string(got) != "first" {
		t.Errorf("%q, %v", got, err)
	}
	if err := job.Payload().Do(func() error { return unix.Mkdir(filepath.Join(data.Dir(), "x"), 0o700) }); err == nil {
		t.Error("a job may write into the sandbox of the data slot")
	}
}
