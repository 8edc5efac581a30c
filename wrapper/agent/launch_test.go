package agent

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"podstarter/payload"
)

// TestStandardFilesBlock: the launcher opens standard files without waiting, but the
// payload gets them in blocking mode: it may not expect EAGAIN.
func TestStandardFilesBlock(t *testing.T) {
	dir := t.TempDir()
	target, err := unix.Dup(unix.Stdin)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(target) }()
	for _, flags := range []int{unix.O_WRONLY | unix.O_CREAT | unix.O_TRUNC, unix.O_WRONLY | unix.O_CREAT | unix.O_APPEND, unix.O_RDONLY} {
		if err := openOnto(target, filepath.Join(dir, "file"), flags); err != nil {
			t.Fatal(err)
		}
		got, err := unix.FcntlInt(uintptr(target), unix.F_GETFL, 0)
		if err != nil || got&(unix.O_ACCMODE|unix.O_NONBLOCK|unix.O_APPEND) != flags&(unix.O_ACCMODE|unix.O_APPEND) {
			t.Errorf("flags %#x of a file opened with %#x, %v", got, flags, err)
		}
		if got, err := unix.FcntlInt(uintptr(target), unix.F_GETFD, 0); err != nil || got != 0 {
			t.Errorf("the file is close-on-exec: %#x, %v", got, err)
		}
	}
	if err := openOnto(target, dir, unix.O_RDONLY); !errors.Is(err, unix.EISDIR) {
		t.Errorf("a directory: %v", err)
	}
}

// TestLimitsThatTheKernelTakes: hard and soft limits above the allowed one are lowered to
// it; the kernel refuses a soft limit above the hard one (setrlimit(2)).
func TestLimitsThatTheKernelTakes(t *testing.T) {
	var now unix.Rlimit
	if err := unix.Prlimit(0, unix.RLIMIT_NOFILE, nil, &now); err != nil {
		t.Fatal(err)
	}
	got, err := kernelLimits([]payload.Limit{
		{Resource: "nofile", Soft: payload.Unlimited, Hard: payload.Unlimited}, // the kernel never allows this
		{Resource: "nofile", Soft: 9, Hard: 8},
		{Resource: "nofile", Soft: 7, Hard: 8},
	})
	want := []unix.Rlimit{{Cur: now.Max, Max: now.Max}, {Cur: 8, Max: 8}, {Cur: 7, Max: 8}}
	if err != nil || len(got) != len(want) {
		t.Fatalf("%+v, %v", got, err)
	}
	for i := range want {
		if got[i].resource != unix.RLIMIT_NOFILE || got[i].value != want[i] {
			t.Errorf("%d: %+v, want %+v", i, got[i], want[i])
		}
	}
}

// TestLauncherWithoutItsWrapper: a launcher whose wrapper ended before it set its parent
// death signal does not become a payload.
func TestLauncherWithoutItsWrapper(t *testing.T) {
	const elsewhere = 1 // init is not this test
	for _, parent := range []int{os.Getpid(), elsewhere} {
		dir := t.TempDir()
		data, err := json.Marshal(job{Parent: parent, Spec: payload.Spec{
			Activation: "test", UID: os.Geteuid(), GID: os.Getegid(), Dir: dir, Umask: 0o022,
			Path: "/bin/sh", Args: []string{"sh", "-c", "exit 42"}, Stdout: "out",
		}})
		if err != nil {
			t.Fatal(err)
		}
		spec, err := anonymousFile(data)
		if err != nil {
			t.Fatal(err)
		}
		defer spec.Close()
		said, report, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer said.Close()
		launcher := exec.Command(selfExe)
		launcher.Args[0] = launcherName
		launcher.ExtraFiles = []*os.File{spec, report}
		err = launcher.Run()
		report.Close()
		text, readErr := io.ReadAll(said)
		var exit *exec.ExitError
		if readErr != nil || !errors.As(err, &exit) {
			t.Fatalf("%v, %v", err, readErr)
		}
		_, noOutput := os.Stat(filepath.Join(dir, "out"))
		if parent == elsewhere {
			if exit.ExitCode() != exitSetup || len(text) > 0 || noOutput == nil {
				t.Errorf("without its wrapper it ended with %v, said %q, opened its output: %v", exit, text, noOutput == nil)
			}
			continue
		}
		if _, failure := decodeReport(text); failure != nil || exit.ExitCode() != 42 || noOutput != nil {
			t.Errorf("with its wrapper it ended with %v, said %+v: %v", exit, failure, noOutput)
		}
	}
}
