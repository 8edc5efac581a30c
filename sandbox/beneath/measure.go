package beneath

import (
	"context"
	"errors"
	"io"

	"golang.org/x/sys/unix"
)

// Usage is the size of a tree.
type Usage struct {
	Bytes int64 // sum of the lengths of what is not a directory
	Files int64 // entries: files, directories, links, anything else
}

// ErrIncomplete is found (errors.Is) in the error of Measure when the numbers
// are a lower bound.
var ErrIncomplete = errors.New("the tree was not measured to its end")

// Measure adds up what is below an open directory, as HTCondor does for
// DiskUsage and ScratchDirFileCount (src/condor_utils/directory.cpp:
// GetDirectorySize): lengths as stat(2) gives them, links counted but not
// followed, hard links counted each time, the directory itself not counted. skip, which may
// be nil, says of what is not a directory that its length belongs elsewhere.
//
// It looks at no more than limit entries (0: no limit), holds few descriptors and
// little memory however wide and deep the tree is, crosses no mount, and stops when ctx
// ends. If it did not see everything, the numbers are a lower bound and the error wraps
// [ErrIncomplete]. A directory that cannot be read, or was removed meanwhile, counts as
// one entry.
func Measure(ctx context.Context, dir int, limit int64, skip func(*unix.Stat_t) bool) (Usage, error) {
	var u Usage
	on, err := mount(dir)
	if err != nil {
		return u, err
	}
	top, err := openDir(dir, ".", mountOf{})
	if err != nil {
		return u, err
	}
	t := trail{open: []*Dir{top}}
	defer t.close()
	for {
		name, err := t.here().next()
		if err != nil {
			if !errors.Is(err, io.EOF) && t.depth() == 1 {
				return u, errors.Join(ErrIncomplete, err)
			}
			if t.depth() == 1 {
				return u, nil
			}
			if err := t.pop(); err != nil {
				return u, errors.Join(ErrIncomplete, err)
			}
			continue
		}
		if limit > 0 && u.Files >= limit {
			return u, ErrIncomplete
		}
		if u.Files&1023 == 0 && ctx.Err() != nil {
			return u, errors.Join(ErrIncomplete, context.Cause(ctx))
		}
		var st unix.Stat_t
		if unix.Fstatat(t.here().fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
			continue // removed meanwhile
		}
		u.Files++
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFDIR:
			sub, err := openDir(t.here().fd, name, on)
			if err != nil {
				continue
			}
			if err := t.push(sub); err != nil {
				sub.Close()
				return u, errors.Join(ErrIncomplete, err)
			}
		case unix.S_IFLNK:
		default:
			if skip == nil || !skip(&st) {
				u.Bytes += st.Size
			}
		}
	}
}
