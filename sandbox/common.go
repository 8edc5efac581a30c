package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	"golang.org/x/sys/unix"

	"podstarter/sandbox/beneath"
	"podstarter/sandbox/commonfiles"
)

// stagingName is the directory, in the scratch directory, that common files come into.
const stagingName = "staging"

// Staging is the directory that common files come into, as files of the payload's user. It
// is closed by Keep or Discard.
type Staging struct {
	box  *Sandbox
	root *beneath.Root
}

// Stage makes an empty directory for common files to come into. There is one at a time.
func (s *Sandbox) Stage(ctx context.Context) (*Staging, error) {
	if !s.keeps {
		return nil, errors.New("make a directory for common files: this is not the sandbox of a data slot")
	}
	if err := s.RemoveTree(ctx, stagingName); err != nil {
		return nil, fmt.Errorf("make a directory for common files: %w", err)
	}
	var root *beneath.Root
	err := s.payload.Do(func() error {
		if err := s.inside.Mkdir(stagingName, 0o700); err != nil {
			return err
		}
		made, err := s.inside.Lstat(stagingName)
		if err != nil {
			return err
		}
		if root, err = beneath.OpenRoot(s.scratch + "/" + stagingName); err != nil {
			return err
		}
		var opened unix.Stat_t
		if err = unix.Fstat(root.FD(), &opened); err == nil && (made.Dev != opened.Dev || made.Ino != opened.Ino) {
			err = errors.New("something else has taken the place of the new directory")
		}
		if err != nil {
			root.Close()
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("make a directory for common files: %w", err)
	}
	return &Staging{box: s, root: root}, nil
}

// Scratch is the path of the directory.
func (d *Staging) Scratch() string { return d.root.Path() }

// Root is the directory, to reach files in it as [Staging.Payload].
func (d *Staging) Root() *beneath.Root { return d.root }

// Payload is the owner of the files in it.
func (d *Staging) Payload() Owner { return d.box.payload }

// Keep makes a catalog of what has come; see [commonfiles.Keep]. After an error nothing is
// left of it.
func (d *Staging) Keep(ctx context.Context, key commonfiles.Key, digest bool) (commonfiles.Name, error) {
	name, err := d.keep(ctx, key, digest)
	if err != nil {
		return "", errors.Join(err, d.Discard(ctx))
	}
	d.root.Close()
	return name, nil
}

func (d *Staging) keep(ctx context.Context, key commonfiles.Key, digest bool) (commonfiles.Name, error) {
	top, err := unix.FcntlInt(uintptr(d.box.top), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return "", &fs.PathError{Op: "open directory", Path: d.box.dir, Err: err}
	}
	f := os.NewFile(uintptr(top), d.box.dir)
	defer f.Close()
	return commonfiles.Keep(ctx, f, d.box.inside, stagingName, key, digest)
}

// Discard removes what has come.
func (d *Staging) Discard(ctx context.Context) error {
	d.root.Close()
	return d.box.RemoveTree(context.WithoutCancel(ctx), stagingName)
}

// Share gives this job the files of a catalog. own is the file whose mode the job's start
// will change; see [commonfiles.Job].
func (s *Sandbox) Share(ctx context.Context, c *commonfiles.Catalog, own string, p commonfiles.Policy, log *slog.Logger) (commonfiles.Shared, error) {
	return c.Share(ctx, commonfiles.Job{Root: s.inside, Owner: s.payload, Own: own}, p, log)
}
