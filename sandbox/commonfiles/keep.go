package commonfiles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"podstarter/sandbox/beneath"
)

// storeDir is where catalogs are, in the top directory of a data slot's sandbox.
const storeDir = "catalogs"

// Modes of what is in a catalog, which are the stock starter's.
const (
	fileMode = 0o444
	dirMode  = 0o500
)

// Bounds of a catalog. More is an error of its owner's, who may pack files into an archive.
const (
	maxDepth   = 64
	maxEntries = 100_000
)

// unfinished ends the name of a catalog that is not sealed yet.
const unfinished = ".new"

// Keep makes a catalog of what is below the name from in a directory that its owner may have
// changed until now. top is the top directory of the data slot's sandbox, which belongs to
// HTCondor. No process of the owner may be alive: Keep refuses a file that one has open for
// writing, where the file system can tell.
//
// The catalog's name says how much is in it, so that a job gets either all of it or an error:
// a data slot's sandbox may be removed while somebody reads it. A catalog that was kept under
// this key before is replaced. After an error there is none.
//
// Where jobs have this process's own user, they may change a catalog afterwards. With digest,
// its name also tells what is in the files, so that nobody takes them for what they were.
func Keep(ctx context.Context, top *os.File, in *beneath.Root, from string, key Key, digest bool) (Name, error) {
	store, err := makeStore(top)
	if err != nil {
		return "", fmt.Errorf("keep common files in %s: %w", top.Name(), err)
	}
	defer store.Close()
	name := string(key)
	err = each(store, func(old string) error {
		if !strings.HasPrefix(old, name) {
			return nil
		}
		return beneath.RemoveAll(context.WithoutCancel(ctx), fd(store), old)
	})
	if err != nil {
		return "", fmt.Errorf("remove common files that were kept before: %w", err)
	}
	// Whatever has the name by now is moved, and nothing is followed.
	if err := unix.Renameat(in.FD(), from, fd(store), name+unfinished); err != nil {
		return "", fmt.Errorf("take the common files over: %w", &fs.PathError{Op: "rename", Path: from, Err: err})
	}
	whole, err := seal(ctx, store, name+unfinished, digest)
	if err == nil {
		err = unix.Renameat(fd(store), name+unfinished, fd(store), name+whole.suffix())
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("take the common files over: %w", err), beneath.RemoveAll(context.WithoutCancel(ctx), fd(store), name+unfinished))
	}
	return Name(name + whole.suffix()), nil
}

// makeStore opens the directory of catalogs, and makes it if it does not exist.
func makeStore(top *os.File) (*os.File, error) {
	if err := unix.Mkdirat(fd(top), storeDir, 0o700); err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, &fs.PathError{Op: "make directory", Path: storeDir, Err: err}
	}
	return openStore(top)
}

// openStore opens the directory of catalogs in the top directory of a sandbox.
func openStore(top *os.File) (*os.File, error) {
	store, st, err := openDir(top, storeDir)
	if err != nil {
		return nil, err
	}
	if int(st.Uid) != os.Geteuid() || st.Mode&0o077 != 0 {
		store.Close()
		return nil, &fs.PathError{Op: "open directory", Path: storeDir, Err: errNotOurs}
	}
	return store, nil
}

var errNotOurs = errors.New("it does not belong to the starter, or others may enter it")

// openDir opens a directory for reading; a link is an error.
func openDir(at *os.File, name string) (*os.File, unix.Stat_t, error) {
	var st unix.Stat_t
	d, err := unix.Openat(fd(at), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, st, &fs.PathError{Op: "open directory", Path: name, Err: err}
	}
	if err := unix.Fstat(d, &st); err != nil {
		_ = unix.Close(d)
		return nil, st, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	return os.NewFile(uintptr(d), name), st, nil
}

// seal makes a tree this process's own, and leaves nobody a right to write.
func seal(ctx context.Context, at *os.File, name string, digest bool) (content, error) {
	s := &sealer{ctx: ctx, uid: os.Geteuid(), gid: os.Getegid()}
	if digest {
		s.digests = &digester{}
	}
	err := s.dir(at, name, "", 0)
	s.sealed.digest = s.digests.digest()
	return s.sealed, err
}

// sealer seals one tree.
type sealer struct {
	ctx      context.Context
	uid, gid int
	sealed   content
	digests  *digester
}

// dir seals a directory, which has a path in the catalog.
func (s *sealer) dir(at *os.File, name, where string, depth int) error {
	if depth > maxDepth {
		return &fs.PathError{Op: "seal", Path: name, Err: fmt.Errorf("it is more than %d directories deep; pack the files into an archive", maxDepth)}
	}
	dir, _, err := openDir(at, name)
	if err != nil {
		return err
	}
	defer dir.Close()
	// First this one, so that its owner cannot put anything into it any more.
	if err := s.take(dir, dirMode); err != nil {
		return err
	}
	return each(dir, func(entry string) error {
		if err := context.Cause(s.ctx); err != nil {
			return err
		}
		if s.sealed.entries++; s.sealed.entries > maxEntries {
			return fmt.Errorf("there are more than %d files and directories; pack them into an archive", maxEntries)
		}
		to := path.Join(where, entry)
		var st unix.Stat_t
		if err := unix.Fstatat(fd(dir), entry, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return &fs.PathError{Op: "stat", Path: entry, Err: err}
		}
		if st.Mode&unix.S_IFMT == unix.S_IFDIR {
			s.digests.add(aDir, to, nil)
			return s.dir(dir, entry, to, depth+1)
		}
		return s.file(dir, entry, to)
	})
}

// file seals a file. A file with another name is refused: that name may be anybody's.
func (s *sealer) file(dir *os.File, name, to string) error {
	f, st, err := openFile(dir, name)
	if err != nil {
		return err
	}
	defer f.Close()
	if st.Nlink != 1 {
		return &fs.PathError{Op: "seal", Path: name, Err: fmt.Errorf("it has %d names", st.Nlink)}
	}
	if err := s.take(f, fileMode); err != nil {
		return err
	}
	s.sealed.bytes += st.Size
	// A read lease is given only if nobody has the file open for writing (fcntl(2)).
	switch _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK); {
	case err == nil:
		_, _ = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
	case errors.Is(err, unix.EAGAIN):
		return &fs.PathError{Op: "seal", Path: name, Err: errors.New("a process has it open for writing")}
	}
	if s.digests == nil {
		return nil
	}
	if err := s.digests.copyFile(s.ctx, nil, f, to, st.Size); err != nil {
		return fmt.Errorf("read the common file %s: %w", to, err)
	}
	return nil
}

// take takes an open file or directory from its owner.
func (s *sealer) take(f *os.File, mode uint32) error {
	if err := unix.Fchown(fd(f), s.uid, s.gid); err != nil {
		return &fs.PathError{Op: "change the owner", Path: f.Name(), Err: err}
	}
	if err := unix.Fchmod(fd(f), mode); err != nil {
		return &fs.PathError{Op: "change the mode", Path: f.Name(), Err: err}
	}
	return nil
}

// openFile opens a regular file for reading; anything else is an error, and nothing blocks.
func openFile(dir *os.File, name string) (*os.File, unix.Stat_t, error) {
	var st unix.Stat_t
	n, err := unix.Openat(fd(dir), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err == nil {
		if err = unix.Fstat(n, &st); err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
			err = beneath.ErrNotRegular
		}
		if err != nil {
			_ = unix.Close(n)
		}
	}
	if err != nil {
		return nil, st, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(n), name), st, nil
}

// each visits the names in an open directory.
func each(dir *os.File, visit func(name string) error) error {
	const batch = 512
	for {
		names, err := dir.Readdirnames(batch)
		for _, name := range names {
			if err := visit(name); err != nil {
				return err
			}
		}
		if len(names) == 0 {
			if err != nil && !errors.Is(err, io.EOF) {
				return err
			}
			return nil
		}
	}
}

// fd is the descriptor of an open file, as system calls take it.
func fd(f *os.File) int { return int(f.Fd()) }
