package footprint_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// footprint is what one process needs, in KiB.
type footprint struct {
	pss, dirty, anonymous int
	kinds                 map[string]int // private dirty memory by what it is of
	threads               int
	wakes                 int // of all its threads, since they were made
}

// read reads a process's footprint.
func read(t testing.TB, pid int) footprint {
	t.Helper()
	f := footprint{kinds: map[string]int{}}
	smaps, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps", pid))
	if err != nil {
		t.Fatal(err)
	}
	kind := ""
	for lines := bufio.NewScanner(bytes.NewReader(smaps)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if !strings.HasSuffix(fields[0], ":") {
			kind = kindOf(t, fields)
			continue
		}
		n, _ := strconv.Atoi(fields[1])
		switch fields[0] {
		case "Pss:":
			f.pss += n
		case "Private_Dirty:":
			f.dirty += n
			f.kinds[kind] += n
		case "Anonymous:":
			f.anonymous += n
		}
	}
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	f.threads = len(tasks)
	for _, task := range tasks {
		status, err := os.ReadFile(task)
		if err != nil {
			continue // it has just ended
		}
		_, rest, _ := bytes.Cut(status, []byte("\nvoluntary_ctxt_switches:"))
		number, _, _ := bytes.Cut(rest, []byte("\n"))
		n, err := strconv.Atoi(string(bytes.TrimSpace(number)))
		if err != nil {
			t.Fatalf("%s: %v", task, err)
		}
		f.wakes += n
	}
	return f
}

// rest returns when a process has neither run nor waited for a processor for a while: nothing tells when
// what another process does is done.
func rest(t testing.TB, pid int) {
	t.Helper()
	const pause, looks = 50 * time.Millisecond, 6
	deadline := time.Now().Add(time.Minute)
	for same, last := 0, int64(-1); same < looks; time.Sleep(pause) {
		if time.Now().After(deadline) {
			t.Fatalf("process %d does not rest", pid)
		}
		if now := scheduled(t, pid); now == last {
			same++
		} else {
			same, last = 0, now
		}
	}
}

// scheduled is for how long the threads of a process have run and waited for a processor, in nanoseconds
// (Documentation/scheduler/sched-stats.rst, /proc/PID/schedstat).
func scheduled(t testing.TB, pid int) (sum int64) {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(tasks) == 0 {
		t.Fatalf("looking at the threads of process %d: %v", pid, err)
	}
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		if err != nil {
			continue // it has just ended
		}
		var ran, waited int64
		if _, err := fmt.Sscan(string(text), &ran, &waited); err != nil {
			t.Fatalf("%s: %v", task, err)
		}
		sum += ran + waited
	}
	return sum
}

// kindOf tells what a mapping holds by the first line about it (proc_pid_smaps(5)). The Go
// runtime maps its heap, with stacks, between the program and the highest addresses, where
// its own tables are.
func kindOf(t testing.TB, fields []string) string {
	t.Helper()
	begin, _, _ := strings.Cut(fields[0], "-")
	address, err := strconv.ParseUint(begin, 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	const lowestHeap, highestHeap = 1 << 30, 0x7e << 40
	switch {
	case len(fields) > 5 && strings.HasPrefix(fields[5], "/"):
		return "data"
	case address < lowestHeap:
		return "bss"
	case address < highestHeap:
		return "heap"
	}
	return "runtime"
}

// connections are the remote ports of a process's TCP sockets; 0 for one that listens.
func connections(t testing.TB, pid int) (remote []string) {
	t.Helper()
	own := map[string]bool{}
	links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, link := range links {
		if of, err := os.Readlink(link); err == nil && strings.HasPrefix(of, "socket:[") {
			own[strings.Trim(of, "socket:[]")] = true
		}
	}
	for _, name := range []string{"tcp", "tcp6"} {
		table, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, name))
		if err != nil {
			continue // a kernel without IPv6
		}
		for line := range strings.Lines(string(table)) {
			const remoteAddress, inode = 2, 9
			if fields := strings.Fields(line); len(fields) > inode && own[fields[inode]] {
				_, port, _ := strings.Cut(fields[remoteAddress], ":")
				n, err := strconv.ParseUint(port, 16, 16)
				if err != nil {
					t.Fatal(err)
				}
				remote = append(remote, strconv.FormatUint(n, 10))
			}
		}
	}
	return remote
}
