package hostprog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/payload/procfamily"
)

// pluginGroup is the group of plugins, in the pilot container. No payload and no
// other program is in it. This keeps a plugin from the processes of the payload in
// a pod with a shared PID namespace (see nobodysGroup), and marks the processes that a
// plugin leaves behind: with no_new_privs and without capabilities none of them can
// leave the group.
const pluginGroup = 65533

// pluginMark is the variable by which a plugin's processes are recognised where user
// and group are the starter's own. All plugins there are the site's: none hides.
const pluginMark = "POD_STARTER_PLUGIN_RUN"

// leftBehind finds the processes that a plugin started and that outlived it.
type leftBehind struct {
	proc     string
	uid, gid int    // gid < 0: the mark counts
	mark     string // "NAME=value"
}

// killTime bounds the killing of a plugin's processes one by one. A plugin that forks
// faster is ended by a signal to all processes of its user.
const killTime = 5 * time.Second

// kill kills all of them and returns when none is left.
func (r leftBehind) kill(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTime)
	defer cancel()
	pause := time.Millisecond
	for empty := 0; empty < 2; {
		list, err := r.list()
		if err != nil {
			return fmt.Errorf("look for what a plugin left: %w", err)
		}
		if len(list) == 0 {
			empty++
			continue
		}
		empty = 0
		for _, p := range list {
			if err := procfamily.SignalProcess(r.proc, p, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("kill what a plugin left: %w", err)
			}
		}
		select {
		case <-ctx.Done():
			return r.killUser(list)
		case <-time.After(pause):
			pause = min(2*pause, 50*time.Millisecond)
		}
	}
	return nil
}

func (r leftBehind) killUser(list []procfamily.Process) error {
	if r.gid < 0 {
		return fmt.Errorf("processes of a plugin cannot be killed: %s", procfamily.Describe(list))
	}
	killer, err := procfamily.NewKiller()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), killTime)
	defer cancel()
	return procfamily.OfUser(r.proc, r.uid).Kill(ctx, killer)
}

// list finds them. All have the plugin's user ID.
func (r leftBehind) list() ([]procfamily.Process, error) {
	all, err := procfamily.OfUser(r.proc, r.uid).Members()
	if err != nil {
		return nil, err
	}
	var mine []procfamily.Process
	for _, p := range all {
		if p.PID != os.Getpid() && r.has(p.PID) {
			mine = append(mine, p)
		}
	}
	return mine, nil
}

func (r leftBehind) has(pid int) bool {
	dir := r.proc + "/" + strconv.Itoa(pid)
	if r.gid < 0 {
		env, err := readSome(dir+"/environ", 1<<20)
		return err == nil && bytes.Contains(append([]byte{0}, env...), []byte("\x00"+r.mark+"\x00"))
	}
	status, err := readSome(dir+"/status", 4<<10)
	return err == nil && realGroup(status) == r.gid
}

func readSome(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

// realGroup reads the real group ID out of /proc/PID/status; -1 if it is not there.
// Before this line, a process can choose only its name, in which line feeds are
// escaped.
func realGroup(status []byte) int {
	for line := range bytes.Lines(status) {
		if rest, ok := bytes.CutPrefix(line, []byte("Gid:")); ok {
			if words := bytes.Fields(rest); len(words) > 0 {
				if n, err := strconv.Atoi(string(words[0])); err == nil && n >= 0 {
					return n
				}
			}
			return -1
		}
	}
	return -1
}
