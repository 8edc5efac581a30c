package sandbox_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"podstarter/sandbox"
	"podstarter/sandbox/sandboxtest"
)

// TestApart: a payload with the process's own user has one volume. Whatever it does
// there, it cannot reach EXECUTE, and the volume is empty afterwards.
func TestApart(t *testing.T) {
	if !sandboxtest.AsPayload(t) {
		return
	}
	for _, nested := range []bool{false, true} {
		t.Run(fmt.Sprintf("nested %t", nested), func(t *testing.T) {
			execute, volume, outside := sandboxtest.ExecuteDir(t), sandboxtest.ExecuteDir(t), sandboxtest.ExecuteDir(t)
			must(t, os.WriteFile(filepath.Join(outside, "keep"), nil, 0o600))
			// What an earlier job left, without permissions, and links that lead out.
			must(t, os.MkdirAll(filepath.Join(volume, "left", "deep"), 0o700))
			must(t, os.WriteFile(filepath.Join(volume, "left", "deep", "file"), nil, 0))
			must(t, os.Chmod(filepath.Join(volume, "left", "deep"), 0))
			must(t, os.Chmod(filepath.Join(volume, "left"), 0))
			must(t, os.Symlink(outside, filepath.Join(volume, "dir_7")))

			s, err := sandbox.Create(context.Background(), sandbox.Options{Execute: execute, Scratch: volume, PID: 7, Nested: nested, Condor: sandbox.Self(), Payload: sandbox.Self()})
			must(t, err)
			own, tree := filepath.Join(execute, "dir_7"), filepath.Join(volume, "dir_7")
			wantHTCondor, wantScratch := own, tree
			if nested {
				wantHTCondor, wantScratch = filepath.Join(own, "htcondor"), filepath.Join(tree, "scratch")
			}
			if s.HTCondor() != wantHTCondor || s.Scratch() != wantScratch {
				t.Errorf("the startd's directory is %s and the payload's %s, want %s and %s", s.HTCondor(), s.Scratch(), wantHTCondor, wantScratch)
			}
			must(t, s.WriteFile("input", []byte("x"), 0o644))
			if entries, err := os.ReadDir(volume); err != nil || len(entries) != 1 {
				t.Errorf("the volume holds %v, %v", entries, err)
			}

			// The job moves its sandbox away, puts a link in its place and fills the
			// volume beside it.
			must(t, os.Rename(tree, filepath.Join(volume, "moved")))
			must(t, os.Symlink(outside, tree))
			must(t, os.WriteFile(filepath.Join(volume, "beside"), make([]byte, 64<<10), 0o644))
			if kib, _, err := s.Usage(context.Background()); err != nil || kib < 64 {
				t.Errorf("the sandbox measures %d KiB, %v; what is beside it counts, too", kib, err)
			}
			if data, err := s.ReadFile("input", 10); err != nil || string(data) != "x" {
				t.Errorf("input: %q, %v", data, err)
			}
			must(t, s.Remove(context.Background()))
			for _, dir := range []string{execute, volume} {
				if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
					t.Errorf("%s holds %v, %v", dir, entries, err)
				}
			}
			if _, err := os.Stat(filepath.Join(outside, "keep")); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestApartKeeps: without root, common files are kept in EXECUTE, where no payload sees them, and what
// runs in the payload's volume meanwhile is left alone.
func TestApartKeeps(t *testing.T) {
	if os.Geteuid() == 0 && !sandboxtest.AsPayload(t) {
		return
	}
	execute, volume := sandboxtest.ExecuteDir(t), sandboxtest.ExecuteDir(t)
	must(t, os.MkdirAll(filepath.Join(volume, "dir_3", "running"), 0o700))
	s, err := sandbox.Create(context.Background(), sandbox.Options{Execute: execute, Scratch: volume, PID: 7, Keeps: true, Condor: sandbox.Self(), Payload: sandbox.Self()})
	must(t, err)
	if s.Dir() != filepath.Join(execute, "dir_7") {
		t.Errorf("it is in %s", s.Dir())
	}
	staging, err := s.Stage(context.Background())
	must(t, err)
	must(t, staging.Discard(context.Background()))
	must(t, s.Remove(context.Background()))
	if _, err := os.Stat(filepath.Join(volume, "dir_3", "running")); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(execute); err != nil || len(entries) != 0 {
		t.Errorf("EXECUTE holds %v, %v", entries, err)
	}
}
