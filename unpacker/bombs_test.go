package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"podstarter/unpacker/fault"
	"podstarter/unpacker/squashfs/squashfstest"
)

// mostMemory is what reading an image may take in the pilot container, in KiB, whatever the image is. docs/admin/images.md
// names it.
const mostMemory = 64 << 10

// TestBombs: images that are made to fill memory, disk or time end at the bounds of the command line, or are as small as they are; the
// program, as the starter runs it, holds little memory all the while.
func TestBombs(t *testing.T) {
	program := filepath.Join(t.TempDir(), "condor_pod_unpacker")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const gib = 1 << 30
	for name, tt := range map[string]struct {
		image []byte
		bytes int64
		want  fault.Reason
	}{
		"10 GiB of zeros":                 {squashfstest.Zeros(10 * gib), 20 * gib, ""},
		"10 GiB of zeros, and 1 may come": {squashfstest.Zeros(10 * gib), gib, fault.TooLarge},
		"2^62 bytes":                      {squashfstest.Image{Inodes: append(squashfstest.Dir(1, 0, 21), squashfstest.LargeFile(2, 1<<62)...), Listings: squashfstest.Listing(squashfstest.Entry(32, "a")), Count: 2}.Bytes(), 20 * gib, fault.TooLarge},
		"10,000,000 files":                {squashfstest.Names(10_000_000), 20 * gib, fault.TooLarge},
		"100,000 levels":                  {squashfstest.Deep(100_000), 20 * gib, fault.TooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "image")
			if err := os.WriteFile(file, tt.image, 0o644); err != nil {
				t.Fatal(err)
			}
			image, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer image.Close()
			var says bytes.Buffer
			cmd := exec.CommandContext(t.Context(), program, "-max-bytes", strconv.FormatInt(tt.bytes, 10), "-max-entries", "2000000")
			cmd.Stdin, cmd.Stderr, cmd.Env = image, &says, []string{}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var n int64
			memory := 0
			for chunk := make([]byte, 4<<20); ; {
				more, err := io.ReadFull(out, chunk)
				n += int64(more)
				memory = max(memory, highWater(cmd.Process.Pid))
				if err != nil {
					break // how it ended shows below
				}
			}
			if err := cmd.Wait(); (err == nil) != (tt.want == "") || err != nil && !bytes.Contains(says.Bytes(), []byte(`"reason":"`+tt.want+`"`)) {
				t.Errorf("%v, want %q: %s", err, tt.want, says.Bytes())
			}
			t.Logf("%d MiB of image, %d MiB of stream, %d KiB of memory, %v of CPU", len(tt.image)>>20, n>>20, memory, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
			if memory > mostMemory {
				t.Errorf("%d KiB of memory, at most %d are allowed", memory, mostMemory)
			}
		})
	}
}

// highWater is the most memory that a process has had, in KiB (proc_pid_status(5), VmHWM). What the kernel counts for its parent
// (wait4(2)) includes what this test had when it started it.
func highWater(pid int) int {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status") // none when it has ended
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, _ := strconv.Atoi(strings.Fields(value)[0])
			return n
		}
	}
	return 0
}
