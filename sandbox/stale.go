package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/go-multierror"
	"golang.org/x/sys/unix"

	"podstarter/sandbox/beneath"
)

// RemoveStale removes the sandboxes of earlier activations whose payload had the same
// user, and returns their names. Usually there are none: the startd removes the sandbox
// of a starter that died. But the startd may do that late, and meanwhile another slot's
// job may get the payload's user and could read the old sandbox. Call RemoveStale when
// the user is leased and no process of an earlier payload runs any more. It does
// nothing for an owner that is the process itself, since then all jobs have one user.
func (s *Sandbox) RemoveStale(ctx context.Context) ([]string, error) {
	if !s.payload.Switches() {
		return nil, nil
	}
	fd, err := unix.Openat(s.execute, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("look for sandboxes of earlier jobs: %w", err)
	}
	dir := os.NewFile(uintptr(fd), "execute")
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("look for sandboxes of earlier jobs: %w", err)
	}
	var removed []string
	var failed *multierror.Error
	for _, name := range names {
		if name == filepath.Base(s.dir) || !strings.HasPrefix(name, "dir_") || !s.isPayloads(name) {
			continue
		}
		if err := beneath.RemoveAll(ctx, s.execute, name); err != nil && s.isPayloads(name) {
			failed = multierror.Append(failed, err)
			continue
		}
		removed = append(removed, name)
	}
	if failed != nil {
		return removed, fmt.Errorf("remove what an earlier job of user %d left: %w", s.payload.UID, failed)
	}
	return removed, nil
}

// isPayloads says whether a directory in EXECUTE is a sandbox of the payload's user, in
// either layout.
func (s *Sandbox) isPayloads(name string) bool {
	for _, path := range []string{name, name + "/scratch"} {
		var st unix.Stat_t
		// Only HTCondor and root can put a link in place of the directories above
		// scratch.
		err := unix.Fstatat(s.execute, path, &st, unix.AT_SYMLINK_NOFOLLOW)
		if err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR && int(st.Uid) == s.payload.UID {
			return true
		}
	}
	return false
}
