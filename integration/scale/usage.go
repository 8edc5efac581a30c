package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/integration/pool/controlplane"
)

// usage is what a process uses.
type usage struct {
	cpu time.Duration
	// resident is its memory, most the most that was seen, in bytes.
	resident, most int64
	// written is what it has caused to be written to disks, in bytes.
	written int64
	// read and sent are all bytes that it has read and written, files and connections alike.
	read, sent int64
}

// usageOf reads what a process has used so far.
func usageOf(pid int) (usage, error) {
	// The clock of all of a process's threads, ended ones too (clock_getcpuclockid(3)).
	const scheduled = 2 // include/linux/posix-timers.h: CPUCLOCK_SCHED
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid)<<3|scheduled, &t); err != nil {
		return usage{}, fmt.Errorf("reading the CPU time of process %d: %w", pid, err)
	}
	u := usage{cpu: time.Duration(t.Nano())}
	status, err := field(fmt.Sprintf("/proc/%d/status", pid), "VmRSS")
	if err != nil {
		return usage{}, err
	}
	u.resident = status << 10
	for name, to := range map[string]*int64{"write_bytes": &u.written, "rchar": &u.read, "wchar": &u.sent} { // proc_pid_io(5)
		if *to, err = field(fmt.Sprintf("/proc/%d/io", pid), name); err != nil {
			return usage{}, err
		}
	}
	return u, nil
}

// field reads the number behind a name in a file of lines NAME: NUMBER.
func field(path, name string) (int64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		if fields := strings.Fields(value); key == name && len(fields) > 0 {
			return strconv.ParseInt(fields[0], 10, 64)
		}
	}
	return 0, fmt.Errorf("%s has no %s", path, name)
}

// myself is this program, with all simulated pilots.
const myself = "the simulated pilots"

// watched are the processes whose use is measured.
func watched(plane *controlplane.ControlPlane) map[string]int {
	pids := map[string]int{myself: os.Getpid()}
	for _, name := range []string{controlplane.APIServer, controlplane.Etcd, controlplane.KWOK} {
		pids[name] = plane.PID(name)
	}
	return pids
}

// uses reads what all of them have used so far.
func uses(pids map[string]int) (map[string]usage, error) {
	all := map[string]usage{}
	for name, pid := range pids {
		u, err := usageOf(pid)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all[name] = u
	}
	return all, nil
}

// used is the difference to what had been used before; memory is as it is now.
func used(before, after map[string]usage, most map[string]int64) map[string]usage {
	all := map[string]usage{}
	for name, u := range after {
		u.cpu -= before[name].cpu
		u.written -= before[name].written
		u.read -= before[name].read
		u.sent -= before[name].sent
		u.most = max(most[name], u.resident)
		all[name] = u
	}
	return all
}

// watchMemory notes the most memory of each until the context ends.
func watchMemory(ctx context.Context, pids map[string]int) map[string]int64 {
	most := map[string]int64{}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		for name, pid := range pids {
			if u, err := usageOf(pid); err == nil {
				most[name] = max(most[name], u.resident)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return most
		}
	}
}
