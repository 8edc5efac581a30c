package hostprog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/go-multierror"
	"golang.org/x/sys/unix"

	"podstarter/condor/job"
	"podstarter/sandbox/beneath"
)

// Plugins and hooks run in the pilot container, which outlives the job, as a user who
// is the next job's too. A file that one owner's plugin leaves where all may write would
// be used by the plugin of another owner: X.509 proxies are found by name in /tmp.

// sharedDirs are where everybody may write in a pilot container, and on a machine.
var sharedDirs = []string{"/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue"}

// temporary gives a plugin a directory of its own for temporary files, in the sandbox:
// with is env with its path. tidy removes it.
func (j Job) temporary(ctx context.Context, env []string) (with []string, tidy func(), err error) {
	name := ".plugin_tmp." + strconv.FormatUint(rand.Uint64(), 36)
	if err := j.Sandbox.Mkdir(name, 0o700); err != nil {
		return nil, nil, fmt.Errorf("make a plugin's directory for temporary files: %w", err)
	}
	path := filepath.Join(j.Sandbox.Scratch(), name)
	for _, entry := range env {
		if variable, _, _ := strings.Cut(entry, "="); !slices.Contains(job.TemporaryVariables, variable) {
			with = append(with, entry)
		}
	}
	for _, variable := range job.TemporaryVariables {
		with = append(with, variable+"="+path)
	}
	return with, func() {
		if err := j.Sandbox.RemoveTree(context.WithoutCancel(ctx), name); err != nil {
			j.Log.Warn("A plugin's temporary files stay in the sandbox", "error", err)
		}
	}, nil
}

// RemoveTemporary removes what programs that ran for jobs of this user have left in the
// pilot container, or on the machine. No process of the user may be alive there. Where users are not
// separate, it is the pilot's user, and nobody can tell programs' files from those of
// daemons; but programs could leave files only in shared memory.
func (h *Host) RemoveTemporary(ctx context.Context, uid int, log *slog.Logger) error {
	if !h.separate {
		return removeOwned(ctx, []string{"/dev/shm"}, os.Getuid(), log)
	}
	return removeOwned(ctx, sharedDirs, uid, log)
}

// removeOwned removes what a user owns directly in directories, with all that is
// below. It reads them piece by piece and follows nothing. A directory that does not
// exist, or is not open to this process, is skipped. If a directory of the user's cannot
// be emptied because of others, root closes it instead.
func removeOwned(ctx context.Context, dirs []string, uid int, log *slog.Logger) error {
	var problems *multierror.Error
	for _, path := range dirs {
		dir, err := beneath.OpenRoot(path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			continue
		}
		if err == nil {
			err = emptyOf(ctx, dir, uid, log)
			dir.Close()
		}
		if err != nil {
			problems = multierror.Append(problems, fmt.Errorf("remove what user %d left in %s: %w", uid, path, err))
		}
	}
	return problems.ErrorOrNil()
}

// emptyOf removes what a user owns in a directory. Some file systems skip names while
// others are removed, so it reads until there is nothing to remove.
func emptyOf(ctx context.Context, dir *beneath.Root, uid int, log *slog.Logger) error {
	for {
		removed, err := removePass(ctx, dir, uid, log)
		if err != nil || removed == 0 {
			return err
		}
	}
}

func removePass(ctx context.Context, dir *beneath.Root, uid int, log *slog.Logger) (removed int, err error) {
	list, err := dir.ReadDir(".")
	if errors.Is(err, fs.ErrPermission) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer list.Close()
	for ctx.Err() == nil {
		name, err := list.Next()
		if errors.Is(err, io.EOF) {
			return removed, nil
		}
		if err != nil {
			return removed, err
		}
		if st, err := list.Lstat(name); err != nil || int(st.Uid) != uid {
			continue // gone, or somebody else's
		}
		if err := beneath.RemoveAll(ctx, dir.FD(), name); err != nil {
			if ctx.Err() != nil || closeDir(dir.FD(), name) != nil {
				return removed, err
			}
			log.Warn("A directory of an earlier job cannot be removed; only root may use it now", "in", dir.Path(), "name", name, "error", err)
		}
		removed++
	}
	return removed, context.Cause(ctx)
}

// closeDir gives a directory to root and takes all rights from it. Only root can.
func closeDir(at int, name string) error {
	fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return errors.Join(unix.Fchmod(fd, 0), unix.Fchown(fd, 0, 0))
}
