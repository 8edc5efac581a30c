//go:build volumes

package commonfiles_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"podstarter/sandbox/commonfiles"
	"podstarter/sandbox/sandboxtest"
)

// volume makes a file system in a file and mounts it.
func volume(t *testing.T, mkfs string) string {
	t.Helper()
	dir := t.TempDir()
	image, where := filepath.Join(dir, "image"), filepath.Join(dir, "volume")
	run := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
	}
	if _, err := exec.LookPath(mkfs); err != nil {
		run("apt-get", "update", "-q")
		run("apt-get", "install", "-y", "-q", "--no-install-recommends", "xfsprogs", "btrfs-progs")
	}
	if err := os.Mkdir(where, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, 512<<20); err != nil {
		t.Fatal(err)
	}
	run(mkfs, "-q", image)
	run("mount", "-o", "loop", image, where)
	t.Cleanup(func() { run("umount", where) })
	// The parents of a test's directory are closed to other users; the payload's must get in.
	for d := dir; d != "/tmp" && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(where, 0o755); err != nil {
		t.Fatal(err)
	}
	return where
}

// TestReflinks: where the volume shares blocks, each job has a file of its own, and the disk has it once.
func TestReflinks(t *testing.T) {
	root(t)
	for _, mkfs := range []string{"mkfs.xfs", "mkfs.btrfs"} {
		t.Run(mkfs, func(t *testing.T) {
			where := volume(t, mkfs)
			execute := sandboxtest.ExecuteDirIn(t, where)
			data := box(t, execute, 1, dataUID, true)
			big := strings.Repeat("0123456789abcdef", 64<<20/16)
			keep(t, data, key, map[string]string{"big": big, "sub/small": "second"})
			unix.Sync()
			before := used(t, where)
			for i := range 3 {
				job := box(t, execute, 2+i, jobUID+i, false)
				// Neither links nor copies are allowed, so that nothing else can be used.
				shared, err := job.Share(t.Context(), find(t, execute, key), "", commonfiles.Policy{}, quiet)
				if err != nil {
					t.Fatal(err)
				}
				want := commonfiles.Shared{Files: map[commonfiles.Method]int{commonfiles.Reflink: 2}, Bytes: int64(len(big)) + 6}
				if diff := cmp.Diff(want, shared); diff != "" {
					t.Errorf("shared (-want +got):\n%s", diff)
				}
				path := filepath.Join(job.Scratch(), "big")
				if st := stat(t, path); int(st.Uid) != jobUID+i || st.Nlink != 1 || st.Mode&0o7777 != 0o444 {
					t.Errorf("job %d: uid %d, %d names, mode %o", i, st.Uid, st.Nlink, st.Mode)
				}
				// Its own file may be changed, and nobody else sees that.
				if err := job.Payload().Do(func() error {
					if err := os.Chmod(path, 0o644); err != nil {
						return err
					}
					f, err := os.OpenFile(path, os.O_WRONLY, 0)
					if err != nil {
						return err
					}
					defer f.Close()
					_, err = f.WriteAt([]byte{'A' + byte(i)}, 0)
					return err
				}); err != nil {
					t.Errorf("job %d changes its own file: %v", i, err)
				}
				got, err := os.ReadFile(path)
				if err != nil || !bytes.Equal(got, []byte(string(rune('A'+i))+big[1:])) {
					t.Errorf("job %d reads another file (%v)", i, err)
				}
			}
			unix.Sync()
			if more := used(t, where) - before; more > 16<<20 {
				t.Errorf("three jobs took %d bytes of the disk beside the first copy of %d", more, len(big))
			}
		})
	}
}

// TestReflinksWithDigests: where jobs have the starter's user, what a job has as shared blocks is what
// was kept, or nothing.
func TestReflinksWithDigests(t *testing.T) {
	for _, mkfs := range []string{"mkfs.xfs", "mkfs.btrfs"} {
		t.Run(mkfs, func(t *testing.T) {
			execute := sandboxtest.ExecuteDirIn(t, volume(t, mkfs))
			data, job := ownBox(t, execute, 1, true), ownBox(t, execute, 2, false)
			d := stage(t, data, map[string]string{"a": strings.Repeat("0123456789abcdef", 1<<16), "b": "second"})
			place, err := d.Keep(t.Context(), key, true)
			if err != nil {
				t.Fatal(err)
			}
			share := func() (commonfiles.Shared, error) {
				found, err := commonfiles.Find(execute, key, place)
				if err != nil {
					t.Fatal(err)
				}
				defer found[0].Close()
				return job.Share(t.Context(), found[0], "", commonfiles.Policy{}, quiet)
			}
			shared, err := share()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[commonfiles.Method]int{commonfiles.Reflink: 2}, shared.Files); diff != "" {
				t.Errorf("shared (-want +got):\n%s", diff)
			}
			for _, name := range []string{"a", "b"} {
				if err := job.RemoveFile(name); err != nil {
					t.Fatal(err)
				}
			}
			kept, err := os.OpenFile(filepath.Join(data.Dir(), "catalogs", string(place), "a"), os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer kept.Close()
			if _, err := kept.WriteAt([]byte("X"), 1<<19); err != nil {
				t.Fatal(err)
			}
			shared, err = share()
			if names, _ := filepath.Glob(job.Scratch() + "/*"); err == nil || len(names) > 0 {
				t.Errorf("a changed file: %v, %v, left %q", shared, err, names)
			}
		})
	}
}

// used returns the bytes that a volume has given away.
func used(t *testing.T, where string) int64 {
	t.Helper()
	var s unix.Statfs_t
	if err := unix.Statfs(where, &s); err != nil {
		t.Fatal(err)
	}
	return int64(s.Blocks-s.Bfree) * s.Bsize
}
