package procfamily

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Signal sends sig to every member and returns how many there were. For a family of a user
// ID, killer signals all in one system call that no fork can outrun; killer may be nil for
// a family of descendants.
//
// For descendants, Signal reaches those that it sees alive, and looks again until it sees
// no new ones or has looked too often (such a family can only be killed).
func (f Family) Signal(sig syscall.Signal, killer *Killer) (int, error) {
	if f.UID >= 0 {
		return f.signalUser(sig, killer)
	}
	const looks = 20
	type key struct {
		pid   int
		start uint64
	}
	reached := make(map[key]bool)
	for range looks {
		members, err := f.Members()
		if err != nil {
			return len(reached), err
		}
		news := false
		for _, p := range members {
			k := key{p.PID, p.Start}
			if reached[k] {
				continue
			}
			switch err := SignalProcess(f.Proc, p, sig); {
			case err == nil:
				reached[k], news = true, true
			case !gone(err):
				return len(reached), err
			}
		}
		if !news {
			break
		}
	}
	return len(reached), nil
}

func (f Family) signalUser(sig syscall.Signal, killer *Killer) (int, error) {
	ctx := context.Background()
	pids, err := processIDs(ctx, f.Proc)
	if err != nil {
		return 0, err
	}
	members, unused, err := f.ofUserAndUnused(ctx, pids)
	if err != nil {
		return 0, err
	}
	// Even if no member was seen: the list of processes is not read in one moment, and a
	// process that keeps forking and ending may be missed.
	return len(living(members)), killer.signalAll(f.UID, unused, sig)
}

// Strike is Signal without a count. For a user ID it does not look first where possible: a
// look at thousands of processes that use all CPU time takes a minute, while the system
// call that ends them works at once.
func (f Family) Strike(sig syscall.Signal, killer *Killer) error {
	if f.UID >= 0 {
		err := killer.signalAll(f.UID, farGuard(), sig)
		if !errors.Is(err, errNoSuchID) {
			return err
		}
	}
	_, err := f.Signal(sig, killer)
	return err
}

// SignalProcess signals exactly the process that p describes, never one that
// got its process ID later (then the error is ESRCH).
func SignalProcess(proc string, p Process, sig syscall.Signal) error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		fd, err = -1, nil // Linux before 5.3, or a sandbox that forbids it
	}
	if err != nil {
		return fmt.Errorf("signal process %d: %w", p.PID, err)
	}
	if fd >= 0 {
		defer func() { _ = unix.Close(fd) }()
	}
	now, err := readStat(proc, p.PID, make([]byte, statusSize))
	if err != nil {
		return err
	}
	if now.Start != p.Start {
		return fmt.Errorf("signal process %d: %w: another process has its ID now", p.PID, unix.ESRCH)
	}
	if fd >= 0 {
		err = unix.PidfdSendSignal(fd, sig, nil, 0)
	} else {
		err = unix.Kill(p.PID, sig)
	}
	if err != nil {
		return fmt.Errorf("send signal %d to process %d: %w", int(sig), p.PID, err)
	}
	return nil
}

// Pauses between looks at a family that is being killed.
const (
	firstPause = time.Millisecond
	lastPause  = 50 * time.Millisecond
)

// Kill kills every member again and again until none is left alive. Zombies count as dead;
// somebody else reaps them. If ctx ends first, the error names what is left.
//
// The signal hits all members of a user ID at once, and a process with a fatal signal
// pending cannot fork (Linux, copy_process), so one look that finds none is proof.
// Descendants need two in a row.
func (f Family) Kill(ctx context.Context, killer *Killer) error {
	proof := 1
	if f.UID < 0 {
		proof = 2
	}
	pause := firstPause
	for empty := 0; ; {
		if err := f.Strike(syscall.SIGKILL, killer); err != nil {
			return fmt.Errorf("kill all processes of the payload: %w", err)
		}
		all, err := f.Look(ctx)
		if err != nil {
			return fmt.Errorf("kill all processes of the payload: look for what is left: %w", err)
		}
		members := living(all)
		if len(members) == 0 {
			if empty++; empty >= proof {
				return nil
			}
			continue
		}
		empty = 0
		select {
		case <-ctx.Done():
			return fmt.Errorf("kill all processes of the payload: %w: %s", context.Cause(ctx), Describe(members))
		case <-time.After(pause):
			pause = min(2*pause, lastPause)
		}
	}
}

// Describe lists some processes for a message: "3 left: 17 (D), 18 (R), ...".
func Describe(members []Process) string {
	const show = 5
	text := fmt.Sprintf("%d left:", len(members))
	for i, p := range members {
		if i == show {
			return text + " ..."
		}
		text += fmt.Sprintf(" %d (%c)", p.PID, p.State)
	}
	return text
}
