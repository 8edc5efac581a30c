package conformance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"podstarter/integration/harness"
)

// transferBreaks breaks the connection that carries the job's files while it is
// in use, as a network does that forgets it; the connection for calls stays. It
// waits for a connection that the shadow accepted and did not open.
func transferBreaks() Step {
	return Do("the connection for files breaks", func(ctx context.Context, r *Run) error {
		port, err := r.Pool.SubmitPort()
		if err != nil {
			return err
		}
		const turn = 20 * time.Millisecond
		for {
			n, err := r.breakCallsOf(port)
			if errors.Is(err, fs.ErrNotExist) {
				n, err = 0, nil // the shadow has gone; another one comes
			}
			if n > 0 || err != nil {
				return err
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("waiting for the connection for files of job %s: %w", r.Job().ID(), context.Cause(ctx))
			case <-time.After(turn):
			}
		}
	})
}

// breakCallsOf breaks the connections for files that the job's shadow has accepted: it
// leaves them to a child. Behind NAT it accepts the one for calls, too, and keeps it. The
// kernel breaks a connection at the end that called, if that is in the same network.
func (r *Run) breakCallsOf(port uint16) (int, error) {
	shadow, err := r.Shadow()
	if err != nil {
		return 0, nil // the last one logged may belong to a child that has gone
	}
	family, err := harness.Processes(func(q harness.Process) bool {
		return q.Namespace == shadow.Namespace && q.Comm == shadow.Comm && (q.PID == shadow.PID || parent(q.PID) == shadow.PID || parent(shadow.PID) == q.PID)
	})
	if err != nil {
		return 0, err
	}
	held := make([]holder, 0, len(family))
	for _, q := range family {
		sockets, err := q.Sockets()
		if err != nil {
			continue // it has gone
		}
		held = append(held, holder{q.PID, parent(q.PID), sockets})
	}
	sockets := ofChildren(held)
	if r.Pool.Network != harness.HostNetwork {
		return harness.BreakConnections(shadow.PID, func(c harness.Connection) bool {
			return c.LocalPort == port && slices.Contains(sockets, c.Inode)
		})
	}
	var callers []uint16
	if _, err := harness.BreakConnections(shadow.PID, func(c harness.Connection) bool {
		if c.LocalPort == port && slices.Contains(sockets, c.Inode) {
			callers = append(callers, c.RemotePort)
		}
		return false
	}); err != nil || len(callers) == 0 {
		return 0, err
	}
	return harness.BreakConnections(shadow.PID, func(c harness.Connection) bool {
		return c.RemotePort == port && slices.Contains(callers, c.LocalPort)
	})
}

// holder is a process of a shadow with the inodes of its sockets.
type holder struct {
	pid, parent int
	sockets     []uint64
}

// ofChildren are the sockets that a child has and its parent does not, or not any more.
func ofChildren(family []holder) []uint64 {
	var found []uint64
	for _, child := range family {
		i := slices.IndexFunc(family, func(h holder) bool { return h.pid == child.parent })
		if i < 0 {
			continue
		}
		for _, socket := range child.sockets {
			if !slices.Contains(family[i].sockets, socket) {
				found = append(found, socket)
			}
		}
	}
	return found
}

// parent is the parent of a process; 0 if the process has gone
// (proc_pid_stat(5)).
func parent(pid int) int {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 2 {
		return 0
	}
	n, _ := strconv.Atoi(fields[1])
	return n
}
