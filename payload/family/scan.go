package family

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// Family says which processes belong together. The zero value is not useful;
// see [OfUser] and [OfDescendants].
type Family struct {
	// Proc is where procfs is mounted.
	Proc string
	// UID is the user ID of all members, -1 if descent decides.
	UID int
	// Ancestor is the process whose descendants are the members if UID is -1.
	// It is no member itself.
	Ancestor int
}

// OfUser is the family of all processes that have uid as their real or saved
// user ID, which is what kill(2) goes by. A process of the payload has all its
// user IDs alike and, with no_new_privs, cannot change that; a daemon of root
// that takes the effective user ID on for a moment is no member.
func OfUser(proc string, uid int) Family { return Family{Proc: proc, UID: uid} }

// OfDescendants is the family of all descendants of a process.
func OfDescendants(proc string, ancestor int) Family {
	return Family{Proc: proc, UID: -1, Ancestor: ancestor}
}

// Members lists the members that are alive, sorted by process ID. Processes
// that end meanwhile are left out; those that begin meanwhile may be.
func (f Family) Members() ([]Process, error) {
	pids, err := processIDs(f.Proc)
	if err != nil {
		return nil, err
	}
	if f.UID >= 0 {
		return f.ofUser(pids)
	}
	return f.descendants(pids)
}

func (f Family) ofUser(pids []int) ([]Process, error) {
	var members []Process
	for _, pid := range pids {
		uids, err := readUIDs(f.Proc, pid)
		if gone(err) || err == nil && uids[realUID] != f.UID && uids[savedUID] != f.UID {
			continue
		}
		if err != nil {
			return nil, err
		}
		p, err := readStat(f.Proc, pid)
		if gone(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if !p.Dead() {
			p.UIDs = uids
			members = append(members, p)
		}
	}
	return members, nil
}

func (f Family) descendants(pids []int) ([]Process, error) {
	children := make(map[int][]Process)
	for _, pid := range pids {
		p, err := readStat(f.Proc, pid)
		if gone(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		children[p.PPID] = append(children[p.PPID], p)
	}
	var members []Process
	// The table was not read in one moment, so it may hold a circle if process
	// IDs were used again meanwhile; each parent is visited once.
	visit := []int{f.Ancestor}
	for len(visit) > 0 {
		parent := visit[len(visit)-1]
		visit = visit[:len(visit)-1]
		for _, p := range children[parent] {
			visit = append(visit, p.PID)
			if !p.Dead() && p.PID != f.Ancestor {
				members = append(members, p)
			}
		}
		delete(children, parent)
	}
	slices.SortFunc(members, func(a, b Process) int { return a.PID - b.PID })
	return members, nil
}

// processIDs lists all processes. It does not use os.ReadDir, which would sort
// and stat.
func processIDs(proc string) ([]int, error) {
	dir, err := os.Open(proc)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list processes in %s: %w", proc, err)
	}
	pids := make([]int, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids, nil
}

// gone tells whether err means that the process ended while it was looked at.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH)
}

func readStat(proc string, pid int) (Process, error) {
	data, err := readSmall(filepath.Join(proc, strconv.Itoa(pid), "stat"))
	if err != nil {
		return Process{}, err
	}
	p, err := parseStat(data)
	if err != nil {
		return Process{}, fmt.Errorf("process %d: %w", pid, err)
	}
	return p, nil
}

func readUIDs(proc string, pid int) ([4]int, error) {
	data, err := readSmall(filepath.Join(proc, strconv.Itoa(pid), "status"))
	if err != nil {
		return [4]int{}, err
	}
	uids, err := parseUIDs(data)
	if err != nil {
		return uids, fmt.Errorf("process %d: %w", pid, err)
	}
	return uids, nil
}

// maxStatus bounds /proc/PID/status, whose longest line lists the supplementary
// groups: 65536 (NGROUPS_MAX) of up to 11 characters.
const maxStatus = 1 << 20

func readSmall(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxStatus))
}
