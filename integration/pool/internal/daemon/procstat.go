package daemon

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// bootID names the running boot of the kernel (random(4)).
func bootID() (string, error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("reading the boot's name: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

func startTime(pid int) (ticks uint64, zombie bool, err error) {
	path := fmt.Sprintf("/proc/%d/stat", pid)
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false, err
	}
	ticks, zombie, err = parseStat(text)
	if err != nil {
		return 0, false, fmt.Errorf("reading %s: %w", path, err)
	}
	return ticks, zombie, nil
}

// parseStat takes the start time (field 22) and the state (field 3) out of proc_pid_stat(5). The program's name, field 2,
// may hold spaces and parentheses; the last parenthesis ends it.
func parseStat(text []byte) (ticks uint64, zombie bool, err error) {
	i := bytes.LastIndexByte(text, ')')
	if i < 0 {
		return 0, false, fmt.Errorf("no program name in %q", text)
	}
	fields := bytes.Fields(text[i+1:])
	const state, start = 0, 22 - 3 // the state is field 3, the first behind the name (proc(5))
	if len(fields) <= start {
		return 0, false, fmt.Errorf("only %d fields after the name in %q", len(fields), text)
	}
	ticks, err = strconv.ParseUint(string(fields[start]), 10, 64)
	return ticks, fields[state][0] == 'Z', err
}
