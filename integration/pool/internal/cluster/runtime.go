package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/go-multierror"
	"golang.org/x/sys/unix"
)

// RemoveContainers ends and removes every container of this pool's containerd.
func (n Node) RemoveContainers(ctx context.Context) error {
	for _, kind := range []struct {
		name   string
		remove []string
	}{{"tasks", []string{"rm", "-f"}}, {"containers", []string{"rm"}}} {
		if err := n.removeAll(ctx, kind.name, kind.remove); err != nil {
			return fmt.Errorf("removing %s: %w", kind.name, err)
		}
	}
	return nil
}

// removeAll removes until nothing is listed: containerd's own clean-up runs at the same time, so a listed item may be
// gone when its turn comes, and the client complains.
func (n Node) removeAll(ctx context.Context, kind string, remove []string) error {
	var last error
	for range 5 {
		ids, err := n.Ctr(ctx, kind, "ls", "-q")
		if err != nil || ids == "" {
			return err
		}
		_, last = n.Ctr(ctx, slices.Concat([]string{kind}, remove, strings.Fields(ids))...)
	}
	return last
}

// KillLeftovers ends processes that outlived their containerd: the shims that were told this pool's socket, and the
// processes in this pool's cgroups. Both sets contain only our processes.
func (n Node) KillLeftovers(ctx context.Context) error {
	var errs *multierror.Error
	for range 20 {
		pids := append(shims(n.ContainerdSocket()), n.Cgroups.Processes()...)
		if len(pids) == 0 {
			return nil
		}
		errs = nil
		for _, pid := range pids {
			if err := kill(ctx, pid); err != nil {
				errs = multierror.Append(errs, fmt.Errorf("ending the process %d: %w", pid, err))
			}
		}
	}
	return errs.ErrorOrNil()
}

func kill(ctx context.Context, pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for range 20 {
		if n, err := unix.Poll(fds, 100); n > 0 && err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return errors.New("it does not end within two seconds")
}

// shims returns the processes that are containerd's shims and serve the containerd at socket.
func shims(socket string) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		text, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err != nil {
			continue
		}
		args := bytes.Split(text, []byte{0})
		if !strings.HasPrefix(filepath.Base(string(args[0])), "containerd-shim") {
			continue
		}
		for i := range args[:len(args)-1] {
			if string(args[i]) == "-address" && string(args[i+1]) == socket {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// DropImages removes the images pulled from below prefix, a registry's address, unless they are in keep.
func (n Node) DropImages(ctx context.Context, prefix string, keep []string) error {
	out, err := n.Ctr(ctx, "images", "ls")
	if err != nil {
		return fmt.Errorf("listing images: %w", err)
	}
	refs := outdated(out, prefix, keep)
	if len(refs) == 0 {
		return nil
	}
	if _, err := n.Ctr(ctx, append([]string{"images", "rm"}, refs...)...); err != nil {
		return fmt.Errorf("removing old images: %w", err)
	}
	return nil
}

// outdated picks references from the table that `ctr images ls` prints: reference, type, digest and more. An image has
// several: the one it was pulled by, one with its digest, and its id.
func outdated(table, prefix string, keep []string) []string {
	byDigest := map[string][]string{}
	var ours []string
	kept := map[string]bool{}
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) < 3 || !strings.HasPrefix(f[2], "sha256:") {
			continue
		}
		ref, digest := f[0], f[2]
		if strings.HasPrefix(ref, prefix) && !slices.Contains(ours, digest) {
			ours = append(ours, digest)
		}
		byDigest[digest] = append(byDigest[digest], ref)
		kept[digest] = kept[digest] || slices.Contains(keep, ref)
	}
	var refs []string
	for _, digest := range ours {
		if !kept[digest] {
			refs = append(refs, byDigest[digest]...)
		}
	}
	return refs
}
