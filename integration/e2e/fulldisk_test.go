//go:build pool

package e2e

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"podstarter/integration/harness"
)

// Hold codes of a failed transfer of input (src/condor_utils/condor_holdcodes.h).
const holdTransferInput = 13

// TestFullVolume: the volume of sandboxes has no room for the job's input. Both
// starters say the same of it, and are able to.
func TestFullVolume(t *testing.T) {
	sides := []harness.Side{harness.Ours}
	if pool.HasStock() {
		sides = append(sides, harness.Stock)
	}
	reasons := map[harness.Side]string{}
	for _, at := range sides {
		t.Run(string(at), func(t *testing.T) {
			smallVolume(t, at, "2m")
			job := submit(t, harness.Submission{
				Side:  at,
				Files: []harness.File{probe, {Name: "large", Content: make([]byte, 6<<20)}},
				Commands: "executable = " + harness.ProbeName + "\ntransfer_input_files = large\nshould_transfer_files = YES\noutput = out\n" +
					"request_cpus = 1\nrequest_memory = 64\nrequest_disk = 1K",
			})[0]
			end := ending(t, job)
			if !end.Held || end.Code != holdTransferInput || end.Subcode != int(unix.ENOSPC) {
				t.Errorf("%s; want held with code %d, subcode %d", end, holdTransferInput, int(unix.ENOSPC))
			}
			_, reasons[at], _ = strings.Cut(end.Reason, "Error: ")
			if !strings.Contains(end.Reason, "No space left on device") {
				t.Errorf("reason %q", end.Reason)
			}
		})
	}
	t.Log(reasons)
}

// smallVolume puts a file system of this size over EXECUTE of an execution point's
// pilot, as an empty directory of the pod with that limit would be, for as long as
// the test runs.
func smallVolume(t *testing.T, at harness.Side, size string) {
	t.Helper()
	execute, err := pool.Config(t.Context(), at, "EXECUTE")
	if err != nil {
		t.Fatal(err)
	}
	inside := pool.Inside(at)
	startd, err := harness.One("startd of "+string(at), func(p harness.Process) bool { return p.Comm == "condor_startd" && inside(p) })
	if err != nil {
		t.Fatal(err)
	}
	// What is there now keeps the owner and the mode.
	var st unix.Stat_t
	if err := unix.Stat(fmt.Sprintf("/proc/%d/root%s", startd.PID, execute), &st); err != nil {
		t.Fatal(err)
	}
	mounts, err := os.Open(fmt.Sprintf("/proc/%d/ns/mnt", startd.PID))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mounts.Close() })
	options := fmt.Sprintf("size=%s,mode=%o,uid=%d,gid=%d", size, st.Mode&0o7777, st.Uid, st.Gid)
	err = inMounts(mounts, func() error { return unix.Mount("tmpfs", execute, "tmpfs", 0, options) })
	if err != nil {
		t.Fatalf("mounting %s: %v", execute, err)
	}
	t.Cleanup(func() {
		if err := inMounts(mounts, func() error { return unix.Unmount(execute, unix.MNT_DETACH) }); err != nil {
			t.Errorf("unmounting %s: %v", execute, err)
		}
	})
}

// inMounts runs do on a thread that sees the mounts of another namespace, and
// ends with it.
func inMounts(mounts *os.File, do func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread goes
		err := unix.Unshare(unix.CLONE_FS)
		if err == nil {
			err = unix.Setns(int(mounts.Fd()), unix.CLONE_NEWNS)
		}
		if err == nil {
			err = do()
		}
		result <- err
	}()
	return <-result
}
