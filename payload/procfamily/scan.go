package procfamily

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
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
	// Ancestor is the process whose descendants are the members if UID is -1. It is not a
	// member itself.
	Ancestor int
}

// OfUser is the family of all processes that have uid as their real or saved user ID, which
// kill(2) checks. A process of the payload has all its user IDs alike and, with
// no_new_privs, cannot change that; a daemon of root that takes on the effective user ID
// for a moment is not a member.
func OfUser(proc string, uid int) Family { return Family{Proc: proc, UID: uid} }

// OfDescendants is the family of all descendants of a process.
func OfDescendants(proc string, ancestor int) Family {
	return Family{Proc: proc, UID: -1, Ancestor: ancestor}
}

// Members lists the members that are alive, sorted by process ID. Processes that end
// meanwhile are left out; those that start meanwhile may be missing.
func (f Family) Members() ([]Process, error) {
	all, err := f.All()
	return living(all), err
}

// All also lists zombies: their parent does not have their CPU time yet.
func (f Family) All() ([]Process, error) { return f.Look(context.Background()) }

// Look is All with a time limit: a payload decides how many processes there are and how
// little CPU time is left to look at them. If ctx ends first, the error is its cause, and
// the list has what was seen by then.
func (f Family) Look(ctx context.Context) ([]Process, error) {
	pids, err := processIDs(ctx, f.Proc)
	if err != nil {
		return nil, err
	}
	if f.UID >= 0 {
		members, _, err := f.ofUserAndUnused(ctx, pids)
		return members, err
	}
	return f.descendants(ctx, pids)
}

func living(list []Process) []Process {
	return slices.DeleteFunc(list, Process.Dead)
}

// ofUserAndUnused also finds a user ID that no process has.
func (f Family) ofUserAndUnused(ctx context.Context, pids []int) (members []Process, unused int, err error) {
	used := make(map[int]bool)
	buffer := make([]byte, statusSize)
	for _, pid := range pids {
		if ctx.Err() != nil {
			return members, 0, context.Cause(ctx)
		}
		uids, err := readUIDs(f.Proc, pid, buffer)
		if gone(err) {
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		used[uids[realUID]], used[uids[savedUID]] = true, true
		if uids[realUID] != f.UID && uids[savedUID] != f.UID {
			continue
		}
		p, err := readStat(f.Proc, pid, buffer)
		if gone(err) {
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		p.UIDs = uids
		members = append(members, p)
	}
	used[f.UID] = true
	for unused = firstGuard; used[unused]; unused-- {
		if unused == lastGuard {
			return nil, 0, errors.New("every user ID in the search range is in use")
		}
	}
	return members, unused, nil
}

func (f Family) descendants(ctx context.Context, pids []int) ([]Process, error) {
	children := make(map[int][]Process)
	buffer := make([]byte, statusSize)
	var cut error
	for _, pid := range pids {
		if ctx.Err() != nil {
			cut = context.Cause(ctx)
			break
		}
		p, err := readStat(f.Proc, pid, buffer)
		if gone(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		children[p.PPID] = append(children[p.PPID], p)
	}
	var members []Process
	// The table was not read in one moment, so reused process IDs may make a cycle in it;
	// visit each parent once.
	visit := []int{f.Ancestor}
	for len(visit) > 0 {
		parent := visit[len(visit)-1]
		visit = visit[:len(visit)-1]
		for _, p := range children[parent] {
			visit = append(visit, p.PID)
			if p.PID != f.Ancestor {
				members = append(members, p)
			}
		}
		delete(children, parent)
	}
	slices.SortFunc(members, func(a, b Process) int { return a.PID - b.PID })
	return members, cut
}

// processIDs lists all processes. os.ReadDir would also sort and stat.
func processIDs(ctx context.Context, proc string) ([]int, error) {
	dir, err := os.Open(proc)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	defer dir.Close()
	const atOnce = 1024
	var pids []int
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		names, err := dir.Readdirnames(atOnce)
		for _, name := range names {
			if pid, err := strconv.Atoi(name); err == nil && pid > 0 {
				pids = append(pids, pid)
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			slices.Sort(pids)
			return pids, nil
		case err != nil:
			return nil, fmt.Errorf("list processes in %s: %w", proc, err)
		}
	}
}

// gone tells whether err means that the process ended during the look.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH)
}

func readStat(proc string, pid int, buffer []byte) (Process, error) {
	data, err := readSmall(proc, pid, "stat", buffer)
	if err != nil {
		return Process{}, err
	}
	p, err := parseStat(data)
	if err != nil {
		return Process{}, fmt.Errorf("process %d: %w", pid, err)
	}
	return p, nil
}

func readUIDs(proc string, pid int, buffer []byte) ([4]int, error) {
	data, err := readSmall(proc, pid, "status", buffer)
	if err != nil {
		return [4]int{}, err
	}
	uids, err := parseUIDs(data)
	if err != nil {
		return uids, fmt.Errorf("process %d: %w", pid, err)
	}
	return uids, nil
}

// statusSize is enough for /proc/PID/stat, and for the user IDs in
// /proc/PID/status, which come before anything long.
const statusSize = 2048

// readSmall reads the beginning of a file of a process. A look at the whole system opens
// hundreds of them, so it avoids os.File, which would register each with the runtime's
// poller, and a buffer that is used again: new ones would be most of what a waiting starter
// allocates.
func readSmall(proc string, pid int, name string, buffer []byte) ([]byte, error) {
	path := proc + "/" + strconv.Itoa(pid) + "/" + name
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	for errors.Is(err, unix.EINTR) {
		fd, err = unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	defer func() { _ = unix.Close(fd) }()
	n, err := unix.Read(fd, buffer)
	for errors.Is(err, unix.EINTR) {
		n, err = unix.Read(fd, buffer)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return buffer[:n], nil
}
