package beneath

import (
	"context"
	"errors"
	"io"

	"golang.org/x/sys/unix"
)

// List visits all that is below an open directory, in the order of the file system, each
// directory before what is in it. Names are paths from the directory. Links are not
// followed and no mount is crossed.
//
// A directory that cannot be read, or was removed meanwhile, is visited, and no more is
// known of it. The same holds for one whose path is longer than the kernel takes: it
// bounds the length of names. List stops at the first error of visit, and when ctx ends.
// It holds few descriptors and little memory, however wide and deep the tree is.
func List(ctx context.Context, dir int, visit func(name string, isDir bool) error) error {
	on, err := mount(dir)
	if err != nil {
		return err
	}
	top, err := openDir(dir, ".", mountOf{})
	if err != nil {
		return err
	}
	t := trail{open: []*Dir{top}}
	defer t.close()
	path, starts := []byte(nil), []int{0} // of the directory at hand; where the names of those above end
	for seen := 0; ; seen++ {
		if seen&1023 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		name, err := t.here().next()
		if err != nil {
			if t.depth() == 1 {
				if errors.Is(err, io.EOF) {
					err = nil
				}
				return err
			}
			if err := t.pop(); err != nil {
				return err
			}
			path, starts = path[:starts[len(starts)-1]], starts[:len(starts)-1]
			continue
		}
		var st unix.Stat_t
		if unix.Fstatat(t.here().fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
			continue // removed meanwhile
		}
		full := append(path[:len(path):len(path)], name...)
		isDir := st.Mode&unix.S_IFMT == unix.S_IFDIR
		if err := visit(string(full), isDir); err != nil {
			return err
		}
		if !isDir || len(full) >= unix.PathMax {
			continue
		}
		sub, err := openDir(t.here().fd, name, on)
		if err != nil {
			continue
		}
		if err := t.push(sub); err != nil {
			sub.Close()
			return err
		}
		starts = append(starts, len(path))
		path = append(full, '/')
	}
}
