package conformance

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"podstarter/integration/harness"
)

// transferBreaks breaks the connection on which files of the job travel, as a
// network does that forgets it, once they do; that for calls stays. It waits for
// the connection, which a shadow has not called out for but was called on.
func transferBreaks() Step {
	return Do("the connection for files breaks", func(ctx context.Context, r *Run) error {
		port, err := r.Pool.SubmitPort()
		if err != nil {
			return err
		}
		const turn = 20 * time.Millisecond
		for {
			n, err := r.breakCallsOf(port)
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

// breakCallsOf breaks what the job's shadow, or a child that it transfers files
// with, was called on. The kernel breaks a connection by the end that called.
func (r *Run) breakCallsOf(port uint16) (int, error) {
	shadow, err := r.Shadow()
	if err != nil {
		return 0, nil // the last that it logged may be of a child that has gone
	}
	family, err := harness.Processes(func(q harness.Process) bool {
		return q.Namespace == shadow.Namespace && q.Comm == shadow.Comm && (q.PID == shadow.PID || parent(q.PID) == shadow.PID || parent(shadow.PID) == q.PID)
	})
	if err != nil {
		return 0, err
	}
	var sockets []uint64
	for _, q := range family {
		some, err := q.Sockets()
		if err != nil {
			continue // it has gone
		}
		sockets = append(sockets, some...)
	}
	var callers []uint16
	if _, err := harness.BreakConnections(func(c harness.Connection) bool {
		if c.LocalPort == port && slices.Contains(sockets, c.Inode) {
			callers = append(callers, c.RemotePort)
		}
		return false
	}); err != nil || len(callers) == 0 {
		return 0, err
	}
	return harness.BreakConnections(func(c harness.Connection) bool {
		return c.RemotePort == port && slices.Contains(callers, c.LocalPort)
	})
}

// parent is the parent of a process, 0 of one that has gone (proc_pid_stat(5)).
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

// within runs a shell script where a process has its files, and the table of mounts,
// which umount reads. The script's $0 is an argument.
func within(ctx context.Context, pid int, script, argument string) error {
	argv := []string{"--target", strconv.Itoa(pid), "--mount", "--pid", "--", "sh", "-c", script, argument}
	if out, err := exec.CommandContext(ctx, "nsenter", argv...).CombinedOutput(); err != nil {
		return fmt.Errorf("nsenter %s: %w: %s", strings.Join(argv, " "), err, out)
	}
	return nil
}

// onSmallDirectory releases the job, and has a step carried out, while a directory of
// its submit directory is on a file system of its own, with room for so many bytes.
func onSmallDirectory(size int64, name string, waited Step) Step {
	return Do("with a small disk at the submit side, "+waited.Words, func(ctx context.Context, r *Run) error {
		schedd, err := harness.One("condor_schedd", func(p harness.Process) bool {
			return p.Comm == "condor_schedd" && p.Namespace == r.Pool.SubmitNamespace
		})
		if err != nil {
			return err
		}
		below, err := filepath.Rel(r.Pool.User.Visible, r.Job().Dir)
		if err != nil {
			return err
		}
		dir := filepath.Join(r.Pool.User.Home, below, name)
		mount := fmt.Sprintf(`mount -t tmpfs -o "size=%d,uid=$(stat -c %%u "$0"),gid=$(stat -c %%g "$0")" small "$0"`, size)
		if err := within(ctx, schedd.PID, mount, dir); err != nil {
			return err
		}
		_, err = r.Pool.AP(ctx, "condor_release", r.Job().ID())
		if err == nil {
			err = waited.do(ctx, r)
		}
		if e := within(context.WithoutCancel(ctx), schedd.PID, `umount -l "$0"`, dir); err == nil {
			err = e
		}
		return err
	})
}

// onSmallDisk has a step carried out while the directory of sandboxes is on a
// file system of its own, with room for so many bytes.
func onSmallDisk(size int64, waited Step) Step {
	return Do("on a small disk, "+waited.Words, func(ctx context.Context, r *Run) error {
		startd, err := r.Startd()
		if err != nil {
			return err
		}
		room := strconv.FormatInt(size, 10)
		const (
			execute = `d=$(condor_config_val EXECUTE) && `
			mount   = execute + `mount -t tmpfs -o "size=$0,mode=$(stat -c %a "$d"),uid=$(stat -c %u "$d"),gid=$(stat -c %g "$d")" small "$d"`
			umount  = execute + `umount -l "$d"`
			// What the slots had on the small disk would keep others from them.
			grown = `host=$(condor_config_val STARTD_NAME)@$(condor_config_val FULL_HOSTNAME)
until condor_reconfig -startd >/dev/null && disks=$(condor_status -direct "$host" -af Disk) && [ -n "$disks" ] && ! echo "$disks" | grep -q '^.\{1,6\}$'; do sleep 0.2; done`
		)
		if err := within(ctx, startd.PID, mount, room); err != nil {
			return err
		}
		err = func() error {
			if _, err := r.Pool.AP(ctx, "condor_release", r.Job().ID()); err != nil {
				return err
			}
			if err := waited.do(ctx, r); err != nil {
				return err
			}
			return harness.WaitNone(ctx, r.Pool.Starters(r.Side))
		}()
		// Whatever came of it: the next cases need the disk.
		if e := within(context.WithoutCancel(ctx), startd.PID, umount, room); err == nil {
			err = e
		}
		if err != nil {
			return err
		}
		_, err = r.Pool.EP(ctx, r.Side, "sh", "-c", grown)
		return err
	})
}
