package procfamily

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Process is one process as /proc shows it (proc(5)).
type Process struct {
	PID, PPID int
	// State is the letter of /proc/PID/stat: 'R', 'S', 'D', 'T', 'Z', 'X' ...
	State byte
	// UIDs are the real, effective, saved and filesystem user ID. Only a family of a user ID
	// fills them in.
	UIDs [4]int
	// Threads that are alive; a zombie has one.
	Threads int
	// Start is the start time in clock ticks since boot: with the PID it identifies a
	// process for good.
	Start uint64
	// UserTicks and SystemTicks are CPU time in clock ticks (1/100 s) of the process,
	// WaitedUserTicks and WaitedSystemTicks that of ended descendants that it waited for.
	UserTicks, SystemTicks, WaitedUserTicks, WaitedSystemTicks uint64
	// VirtualBytes is the size of the address space, ResidentPages the resident
	// set in pages.
	VirtualBytes  uint64
	ResidentPages int64
	// BlockDelayTicks is the time spent waiting for block I/O, in clock ticks; 0
	// on a kernel without delay accounting.
	BlockDelayTicks uint64
}

// Indices of Process.UIDs.
const (
	realUID = iota
	_       // effective
	savedUID
	_ // filesystem
)

// Dead tells whether no thread of the process can run any more. The first thread may be a
// zombie while others live.
func (p Process) Dead() bool {
	return (p.State == 'Z' || p.State == 'X') && p.Threads <= 1
}

var errStat = errors.New("not in the format of /proc/PID/stat")

// parseStat parses /proc/PID/stat. The second field, the command, is in parentheses and may
// contain any text, even parentheses.
func parseStat(data []byte) (Process, error) {
	open, end := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
	if open < 1 || end < open {
		return Process{}, errStat
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(data[:open])))
	if err != nil {
		return Process{}, fmt.Errorf("%w: %w", errStat, err)
	}
	// Fields are counted from 1 in proc(5); fields[0] is the third.
	fields := bytes.Fields(data[end+1:])
	if len(fields) < 22 || len(fields[0]) != 1 || fields[0][0] >= utf8.RuneSelf {
		return Process{}, errStat
	}
	p := Process{PID: pid, State: fields[0][0]}
	var failed error
	number := func(field int) int64 {
		n, err := strconv.ParseInt(string(fields[field-3]), 10, 64)
		if err != nil && failed == nil {
			failed = fmt.Errorf("%w: field %d: %w", errStat, field, err)
		}
		return n
	}
	natural := func(field int) uint64 {
		n, err := strconv.ParseUint(string(fields[field-3]), 10, 64)
		if err != nil && failed == nil {
			failed = fmt.Errorf("%w: field %d: %w", errStat, field, err)
		}
		return n
	}
	p.PPID = int(number(4))
	p.UserTicks, p.SystemTicks = natural(14), natural(15)
	// cutime and cstime are signed in the kernel, but never below 0.
	p.WaitedUserTicks, p.WaitedSystemTicks = uint64(max(number(16), 0)), uint64(max(number(17), 0))
	p.Threads = int(number(20))
	p.Start = natural(22)
	p.VirtualBytes = natural(23)
	p.ResidentPages = number(24)
	if len(fields) > 42-3 {
		p.BlockDelayTicks = natural(42)
	}
	if failed != nil {
		return Process{}, failed
	}
	return p, nil
}

var errStatus = errors.New("not in the format of /proc/PID/status")

// parseUIDs finds the four user IDs in /proc/PID/status. The command's name is above them,
// but newlines in it are escaped.
func parseUIDs(data []byte) ([4]int, error) {
	var uids [4]int
	_, rest, found := bytes.Cut(data, []byte("\nUid:"))
	if !found {
		return uids, errStatus
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	n := 0
	for field := range bytes.FieldsSeq(line) {
		uid, err := strconv.ParseUint(string(field), 10, 32)
		if err != nil {
			return uids, fmt.Errorf("%w: %w", errStatus, err)
		}
		if n == len(uids) {
			return uids, errStatus
		}
		uids[n] = int(uid)
		n++
	}
	if n != len(uids) {
		return uids, errStatus
	}
	return uids, nil
}
