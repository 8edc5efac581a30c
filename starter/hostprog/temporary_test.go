package hostprog

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"podstarter/condor/plugin"
	"podstarter/starter/hostprog/hostprogtest"
)

// TestPluginTemporary: a plugin's temporary files are in a directory of its own in the
// sandbox, and go with the run.
func TestPluginTemporary(t *testing.T) {
	j := forJob(t, 4717)
	path := hostprogtest.Script(t, `echo "$TMPDIR $TMP $TEMP"; umask 0; mkdir -p "$TMPDIR/a/b"; mktemp; chmod 0 "$TMPDIR/a"`)
	o, err := j.RunPlugin(t.Context(), plugin.Program{Path: path, Env: []string{"PATH=/usr/bin:/bin", "TMPDIR=/tmp"}, Dir: j.Sandbox.Scratch()})
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(o.Output)), "\n")
	dirs := strings.Fields(lines[0])
	if len(lines) != 2 || len(dirs) != 3 || dirs[0] != dirs[1] || dirs[0] != dirs[2] || filepath.Dir(dirs[0]) != j.Sandbox.Scratch() || filepath.Dir(lines[1]) != dirs[0] {
		t.Errorf("the plugin says %q", lines)
	}
	if left, err := os.ReadDir(j.Sandbox.Scratch()); err != nil || len(left) > 0 {
		t.Errorf("%v are left, %v", left, err)
	}
}

// TestPluginTemporaryOfAFailure: the directory goes, too, if the plugin cannot be run.
func TestPluginTemporaryOfAFailure(t *testing.T) {
	j := forJob(t, 4717)
	if _, err := j.RunPlugin(t.Context(), plugin.Program{Path: "/no/such/plugin", Dir: j.Sandbox.Scratch()}); !errors.Is(err, ErrNotRun) {
		t.Errorf("%v, want %v", err, ErrNotRun)
	}
	if left, err := os.ReadDir(j.Sandbox.Scratch()); err != nil || len(left) > 0 {
		t.Errorf("%v are left, %v", left, err)
	}
}

// TestRemoveOwned: what the user left goes, whatever it is, and nothing else does.
func TestRemoveOwned(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	const uid, other = 4718, 4719
	top := t.TempDir()
	shared, elsewhere := filepath.Join(top, "tmp"), filepath.Join(top, "elsewhere")
	in := func(name string) string { return filepath.Join(shared, name) }
	must := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	file := func(path string, owner int) {
		t.Helper()
		must(os.WriteFile(path, []byte("x"), 0o600), os.Lchown(path, owner, owner))
	}
	dir := func(path string, owner int) {
		t.Helper()
		must(os.Mkdir(path, 0o700), os.Lchown(path, owner, owner))
	}
	must(os.Mkdir(shared, 0o755), os.Mkdir(elsewhere, 0o755))
	file(filepath.Join(elsewhere, "kept"), uid)
	file(in("x509up_u4718"), uid)
	file(in("x509up_u4719"), other)
	must(os.Symlink(elsewhere, in("link")), os.Lchown(in("link"), uid, uid))
	dir(in("theirs"), other)
	file(in("theirs/file"), uid) // put where another let it; it goes with that
	dir(in("tree"), uid)
	file(in("tree/theirs"), other)
	must(os.Symlink(elsewhere, in("tree/link")))
	// Deeper than there may be open files.
	deep := in("tree")
	for range 60 {
		deep = filepath.Join(deep, "sub")
		dir(deep, uid)
	}
	must(os.Chmod(in("tree"), 0))
	for i := range 3000 {
		file(in("many-"+strings.Repeat("n", 100)+string(rune(0x4e00+i))), uid)
	}
	must(removeOwned(t.Context(), []string{shared, filepath.Join(top, "not-there")}, uid, slog.New(slog.DiscardHandler)))
	var left []string
	must(filepath.WalkDir(top, func(path string, _ os.DirEntry, err error) error {
		rel, _ := filepath.Rel(top, path)
		left = append(left, rel)
		return err
	}))
	if diff := cmp.Diff([]string{".", "elsewhere", "elsewhere/kept", "tmp", "tmp/theirs", "tmp/theirs/file", "tmp/x509up_u4719"}, left); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	file(in("again"), uid)
	if err := removeOwned(ended, []string{shared}, uid, slog.New(slog.DiscardHandler)); !errors.Is(err, context.Canceled) {
		t.Errorf("an ended context: %v", err)
	}
}

// TestRemoveOwnedCloses: what of a user's directory cannot be removed is no use to the
// next who has the user's number, and no reason to take no jobs.
func TestRemoveOwnedCloses(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	const uid = 4720
	shared := t.TempDir()
	tree := filepath.Join(shared, "tree")
	held := filepath.Join(tree, "held")
	err := errors.Join(os.Mkdir(tree, 0o777), os.Chmod(tree, 0o777), os.Mkdir(held, 0o777), os.Lchown(tree, uid, uid))
	if err != nil {
		t.Fatal(err)
	}
	removed := make(chan error)
	var onThread func()
	onThread = func() {
		// A mount of this thread's alone is what root cannot remove, either. The thread
		// ends with its goroutine, which the main one cannot.
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			other := make(chan struct{})
			go func() { defer close(other); onThread() }()
			<-other
			runtime.UnlockOSThread()
			return
		}
		err := errors.Join(unix.Unshare(unix.CLONE_NEWNS|unix.CLONE_FS), unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), unix.Mount("none", held, "tmpfs", 0, ""))
		if err == nil {
			err = removeOwned(t.Context(), []string{shared}, uid, slog.New(slog.DiscardHandler))
		}
		removed <- err
	}
	go onThread()
	if err := <-removed; err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Lstat(tree, &st); err != nil || st.Uid != 0 || st.Mode&0o777 != 0 {
		t.Errorf("the directory is %d's, with mode %o, %v", st.Uid, st.Mode, err)
	}
}
