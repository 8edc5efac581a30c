// Package proctable is the starter's process table of the payload, for a starter
// that shares the payload's PID namespace: a pilot container with
// shareProcessNamespace, or a starter that runs its payload beside itself.
//
// Package procfamily finds the payload's processes; this package sums their usage,
// including the CPU time of processes that started and ended between two looks.
package proctable

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"podstarter/payload/procfamily"
)

// Options say which processes are the payload.
type Options struct {
	// Proc is where procfs is mounted; "" is /proc.
	Proc string
	// UID and GID of the payload. If this process is root, the payload is every
	// process of UID; otherwise it is every descendant of Wrapper.
	UID, GID int
	// Wrapper is the process ID of the wrapper, which inherits the CPU time of orphans; 0 if
	// it is not known, which is allowed only for root.
	Wrapper int
}

// Table is the process table of one payload. Make it before the payload starts. Its methods
// may be called from several goroutines.
type Table struct {
	proc    string
	gid     int
	family  procfamily.Family
	killer  *procfamily.Killer  // nil without root
	wrapper *procfamily.Process // as it was when the table was made; nil if not known
	history *history
}

// New makes a Table. The caller must call Close.
func New(o Options) (*Table, error) {
	if o.Proc == "" {
		o.Proc = "/proc"
	}
	t := &Table{proc: o.Proc, gid: o.GID}
	if os.Geteuid() == 0 {
		if o.UID <= 0 {
			return nil, fmt.Errorf("process table of the payload: user %d cannot be a payload's user", o.UID)
		}
		var err error
		if t.killer, err = procfamily.NewKiller(); err != nil {
			return nil, err
		}
		t.family = procfamily.OfUser(o.Proc, o.UID)
	} else {
		if o.Wrapper <= 0 {
			return nil, errors.New("process table of the payload: without root, the wrapper's process ID is needed")
		}
		t.family = procfamily.OfDescendants(o.Proc, o.Wrapper)
	}
	var base cpu
	if o.Wrapper > 0 {
		p, err := procfamily.Lookup(o.Proc, o.Wrapper)
		if err != nil {
			t.Close()
			return nil, fmt.Errorf("look at the wrapper, process %d: %w", o.Wrapper, err)
		}
		t.wrapper, base = &p, waited(p)
	}
	t.history = newHistory(base)
	return t, nil
}

// Close frees what the table holds.
func (t *Table) Close() {
	if t.killer != nil {
		t.killer.Close()
		t.killer = nil
	}
}

// Detail says which expensive figures a snapshot contains.
type Detail struct {
	// PSS asks for proportional set sizes. The kernel walks the page tables of each process
	// for it, which takes milliseconds per GB.
	PSS bool
	// IO asks for block I/O.
	IO bool
}

// Process is one process of the payload.
type Process struct {
	procfamily.Process
	// PSS in bytes, ReadBytes and WriteBytes as in [Snapshot]; -1 if not asked for or not
	// available.
	PSS, ReadBytes, WriteBytes int64
}

// Snapshot is the payload at one moment.
type Snapshot struct {
	Time time.Time
	// Processes that are alive, by process ID.
	Processes []Process
	// Threads over all processes.
	Threads int
	// RSS and ImageSize (address space) are sums in bytes.
	RSS, ImageSize int64
	// PSS is the sum of the proportional set sizes in bytes; the RSS stands in
	// for processes whose PSS cannot be read. -1 if not asked for.
	PSS int64
	// UserCPU and SystemCPU count all processes since the table was made, living and dead.
	// They never decrease. For a process that nobody waited for (its parent ignores
	// SIGCHLD), they count only what the last look saw.
	UserCPU, SystemCPU time.Duration
	// BlockWait is how long the living processes have waited for block I/O.
	BlockWait time.Duration
	// ReadBytes and WriteBytes are block I/O of all processes; of dead ones, what looks saw.
	// -1 if not asked for.
	ReadBytes, WriteBytes int64
}

// tick is the unit of CPU time in /proc, USER_HZ, which is 100 on every
// architecture Go runs on (times(2), sysconf(_SC_CLK_TCK)).
const tick = time.Second / 100

// Snapshot takes a look at the payload.
func (t *Table) Snapshot(ctx context.Context, d Detail) (Snapshot, error) {
	if err := ctx.Err(); err != nil {
		return Snapshot{}, context.Cause(ctx)
	}
	// In this order, this look misses a process that ends in between rather than counts it
	// twice.
	reaped := t.reapedByWrapper()
	all, err := t.family.Look(ctx)
	if err != nil {
		return Snapshot{}, fmt.Errorf("look at the payload: %w", err)
	}
	s := Snapshot{Time: time.Now(), PSS: -1, ReadBytes: -1, WriteBytes: -1}
	for _, p := range all {
		if p.Dead() {
			continue
		}
		s.Processes = append(s.Processes, Process{Process: p, PSS: -1, ReadBytes: -1, WriteBytes: -1})
		s.Threads += p.Threads
		s.RSS += p.ResidentPages * int64(os.Getpagesize())
		s.ImageSize += int64(p.VirtualBytes)
		s.BlockWait += time.Duration(p.BlockDelayTicks) * tick
	}
	if d.PSS || d.IO {
		if err := t.readRestricted(ctx, s.Processes, d); err != nil {
			return Snapshot{}, err
		}
	}
	if d.PSS {
		s.PSS = sumPSS(s.Processes)
	}
	t.history.add(&s, all, reaped, d.IO)
	return s, nil
}

func sumPSS(list []Process) int64 {
	var sum int64
	for _, p := range list {
		if p.PSS >= 0 {
			sum += p.PSS
		} else {
			sum += p.ResidentPages * int64(os.Getpagesize())
		}
	}
	return sum
}

// Signal sends a signal to every process of the payload and returns how many
// there were.
func (t *Table) Signal(ctx context.Context, sig syscall.Signal) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, context.Cause(ctx)
	}
	return t.family.Signal(sig, t.killer)
}

// SignalProcess sends a signal to one process of a snapshot. If it has ended, the error is
// [syscall.ESRCH], even if another process has its ID now.
func (t *Table) SignalProcess(ctx context.Context, p Process, sig syscall.Signal) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	return procfamily.SignalProcess(t.proc, p.Process, sig)
}

// Strike sends SIGKILL to every process of the payload, as [Table.KillAll] does, but does
// not wait for their end.
func (t *Table) Strike(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	return t.family.Strike(syscall.SIGKILL, t.killer)
}

// KillAll kills every process of the payload, including those that it starts meanwhile, and
// returns when none is alive. If ctx ends first, the error names what is left.
func (t *Table) KillAll(ctx context.Context) error { return t.family.Kill(ctx, t.killer) }

// Empty tells whether two looks in a row see no live process of the payload. A payload can
// hide from looks; [Table.KillAll] is proof.
func (t *Table) Empty(ctx context.Context) (bool, error) {
	for range 2 {
		if err := ctx.Err(); err != nil {
			return false, context.Cause(ctx)
		}
		members, err := t.family.Members()
		if err != nil || len(members) > 0 {
			return false, err
		}
	}
	return true, nil
}

// reapedByWrapper is the CPU time of all children that the wrapper has reaped; 0 if the
// wrapper is gone or not known.
func (t *Table) reapedByWrapper() cpu {
	if t.wrapper == nil {
		return cpu{}
	}
	p, err := procfamily.Lookup(t.proc, t.wrapper.PID)
	if err != nil || p.Start != t.wrapper.Start {
		return cpu{}
	}
	return waited(p)
}

func waited(p procfamily.Process) cpu { return cpu{p.WaitedUserTicks, p.WaitedSystemTicks} }
