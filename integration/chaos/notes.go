//go:build pool

package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/integration/harness"
)

// privateDir is the directory of the pilot in which starters note what they know of
// containers (POD_STARTER_PRIVATE_DIR).
const privateDir = "/run/podstarter/private"

// note is a part of what is noted of a container (k8sexec.slot).
type note struct {
	Nonce, Spec string
	Fresh       bool
	InUse       bool `json:"in_use"`
}

// notes are those of a pool's pod.
type notes struct {
	dir        string // of this machine
	containers []string
}

func openNotes(pool *harness.Pool, containers []string) (notes, error) {
	inside := pool.Inside(harness.Ours)
	master, err := harness.One("master of the execution point", func(p harness.Process) bool { return inside(p) && p.Comm == "condor_master" })
	if err != nil {
		return notes{}, err
	}
	return notes{fmt.Sprintf("/proc/%d/root%s", master.PID, privateDir), containers}, nil
}

// read is nothing for a container that has had no job.
func (n notes) read(container string) (known note, err error) {
	text, err := os.ReadFile(filepath.Join(n.dir, "slot."+container+".json"))
	if errors.Is(err, fs.ErrNotExist) {
		return note{}, nil
	}
	if err != nil {
		return note{}, err
	}
	if err := json.Unmarshal(text, &known); err != nil {
		return note{}, fmt.Errorf("what is noted of container %s: %w\n%s", container, err, text)
	}
	return known, nil
}

// isLeased says whether somebody has the container's lock. It must not be asked while
// starters are about: they would find the container taken.
func (n notes) isLeased(container string) (bool, error) {
	f, err := os.Open(filepath.Join(n.dir, "lease."+container))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}

// wrong says what is noted of containers and is not so, given jobs' processes that ran
// before: a container in which a job runs is in use, and not fresh. It looks again
// whether these still run, since starters may have written in between.
func (n notes) wrong(base int, running []harness.Process) ([]string, error) {
	var wrong []string
	for _, p := range running {
		container := n.containers[p.UID-base]
		known, err := n.read(container)
		if err != nil {
			return wrong, err
		}
		if !known.Fresh && known.InUse {
			continue
		}
		if now, err := harness.ReadProcess(p.PID); err != nil || now.UID != p.UID || jobOf(now.Args) != jobOf(p.Args) {
			continue // it has ended
		}
		wrong = append(wrong, fmt.Sprintf("container %s at %s: fresh: %t, in use: %t, while job %s ran in it", container, time.Now().UTC().Format(stamp), known.Fresh, known.InUse, jobOf(p.Args)))
	}
	return wrong, nil
}

// slots are the notes of all containers and what is so, when all starters have ended.
// Wrappers that were killed just before get the time to come back.
func (n notes) slots(ctx context.Context, pool *harness.Pool) ([]Slot, error) {
	var all []Slot
	for _, name := range n.containers {
		known, err := n.read(name)
		if err != nil {
			return all, err
		}
		leased, err := n.isLeased(name)
		if err != nil {
			return all, err
		}
		nonce, err := pool.Kubectl(ctx, nil, "-n", harness.Namespace, "get", "pod", "glidein", "-o", `jsonpath={.metadata.annotations.podstarter/nonce-`+name+`}`)
		if err != nil {
			return all, err
		}
		all = append(all, Slot{Container: name, InUse: known.InUse, Fresh: known.Fresh, Nonce: known.Nonce, PodNonce: nonce, Spec: known.Spec, Leased: leased})
	}
	wait, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err := harness.Poll(wait, "a wrapper in each container, and nothing else", func() (bool, error) {
		done := true
		inside := pool.InPod(harness.Ours)
		found, err := harness.Processes(inside)
		for i := range all {
			s := &all[i]
			s.Wrappers, s.Strange = 0, 0
			group := ""
			for _, p := range found {
				if isWrapperOf(p, s.Container) {
					s.Wrappers++
					group = groupOf(p)
				}
			}
			for _, p := range found {
				if group != "" && groupOf(p) == group && !isWrapperOf(p, s.Container) {
					s.Strange++
				}
			}
			done = done && s.Wrappers == 1 && s.Strange == 0
		}
		return done, err
	})
	if wait.Err() != nil {
		err = nil // the checker says which
	}
	return all, err
}

// isWrapperOf tells the wrapper of a container by its control directory.
func isWrapperOf(p harness.Process, container string) bool {
	if p.Comm != harness.WrapperComm || p.UID != 0 {
		return false
	}
	for _, arg := range p.Args {
		if strings.HasSuffix(arg, "/"+container) {
			return true
		}
	}
	return false
}

// groupOf is the control group of a process, which is its container's.
func groupOf(p harness.Process) string {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.PID), "cgroup"))
	if err != nil {
		return ""
	}
	return filepath.Base(strings.TrimSpace(string(text)))
}
