//go:build pool

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"podstarter/integration/harness"
)

const (
	holdJobOutOfResources = 34
	subcodeMemory         = 102
)

// TestOutOfMemory: the kernel kills a child of the job because memory runs out. The
// job, whose main process would have ended well, is held with a message about its
// memory, whose figures are near the truth however the memory was used up.
func TestOutOfMemory(t *testing.T) {
	oursOnly(t)
	for _, how := range []string{"slowly", "leap", "shared", "cached", "crowd"} {
		t.Run(how, func(t *testing.T) { outOfMemory(t, how) })
	}
}

func outOfMemory(t *testing.T, how string) {
	const limit = 64 // MiB
	comm := "before-" + how
	job := submit(t, harness.Submission{
		Files: []harness.File{probe, {Name: "main", Mode: 0o755, Content: []byte(`#!/bin/sh
trap go=1 USR1
printf %s ` + comm + ` >/proc/$$/comm
while [ -z "$go" ]; do sleep 0.1; done
./probe eat=` + how + `
exit 0
`)}},
		Commands: "executable = main\ntransfer_input_files = " + harness.ProbeName + "\ntransfer_output_files =\nshould_transfer_files = YES\noutput = out\nrequest_memory = 64\nrequest_disk = 128M",
	})[0]
	running(t, job, 1)
	of := payload()
	main, err := harness.WaitSome(soon(t, patience), 1, func(p harness.Process) bool { return p.Comm == comm && of(p) })
	if err != nil {
		t.Fatal(err)
	}
	limitMemory(t, main[0].PID, limit<<20)
	if err := harness.Kill(main[0], unix.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	end := ending(t, job)
	if !end.Held || end.Code != holdJobOutOfResources || end.Subcode != subcodeMemory {
		t.Errorf("%s; want held with code %d, subcode %d", end, holdJobOutOfResources, subcodeMemory)
	}
	t.Log(end.Reason)
	var said, used int
	_, after, _ := strings.Cut(end.Reason, "memory limit of ")
	if _, err := fmt.Sscanf(after, "%d megabytes. Last measured usage: %d megabytes.", &said, &used); err != nil {
		t.Fatalf("limit and usage are not in it: %v", err)
	}
	if said != limit || used < limit*9/10 || used > limit*11/10 {
		t.Errorf("it says that %d of %d megabytes were used, of a limit of %d", used, said, limit)
	}
	if nothing := regexp.MustCompile(`\b0 megabytes`); nothing.MatchString(end.Reason) {
		t.Error("it says that nothing was used")
	}
}

// limitMemory limits the control group of a process, as the kubelet does for a
// container that has such a limit in its manifest.
func limitMemory(t *testing.T, pid int, bytes int64) {
	t.Helper()
	if err := writeGroup(memoryFile(t, pid), strconv.FormatInt(bytes, 10)); err != nil {
		t.Fatalf("limiting the memory of process %d: %v", pid, err)
	}
}

// memoryFile is the file with the limit of a process's control group.
func memoryFile(t *testing.T, pid int) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		t.Fatal(err)
	}
	var file string
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(parts) != 3 || parts[2] == "/":
		case parts[1] == "memory":
			file = filepath.Join("/sys/fs/cgroup/memory", parts[2], "memory.limit_in_bytes")
		case parts[1] == "" && file == "":
			file = filepath.Join("/sys/fs/cgroup", parts[2], "memory.max")
		}
	}
	if file == "" {
		t.Fatalf("process %d has no control group for memory:\n%s", pid, text)
	}
	return file
}

// writeGroup writes to a file of a control group, without O_CREATE: the directory above may be a plain one.
func writeGroup(file, text string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}
