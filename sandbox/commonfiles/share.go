package commonfiles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"podstarter/sandbox/beneath"
)

// Policy says what a site allows if the volume cannot share the blocks of files.
type Policy struct {
	Link bool // hard links to files that belong to the starter
	Copy bool // whole copies
}

// Method is how a job gets a file.
type Method string

// Methods, the best first.
const (
	Reflink  Method = "Reflink"
	Hardlink Method = "Hardlink"
	Copy     Method = "Copy"
)

// Job is the job that gets the files.
type Job struct {
	Root  *beneath.Root // its scratch directory
	Owner beneath.Owner // of what is in it
	// Own is the file that the job must own, since its mode will be changed; empty for none.
	Own string
}

// Shared is what a job got.
type Shared struct {
	Files map[Method]int // number of files by how
	Bytes int64          // sum of their lengths
}

// Share gives a job all files of a catalog, under the names that they have there. Its
// directories may exist already, but none of the files. After an error, what Share made at
// the top of the scratch directory is removed again.
func (c *Catalog) Share(ctx context.Context, j Job, p Policy, log *slog.Logger) (Shared, error) {
	s := &sharer{ctx: ctx, job: j, policy: p, log: log, whole: c.whole, shared: Shared{Files: map[Method]int{}}}
	if c.whole.digest != "" {
		s.digests, s.policy.Link = &digester{}, false // a link can be changed afterwards
	}
	// Another job may read the same directory, but not through this open file.
	dir, _, err := openDir(c.dir, ".")
	if err == nil {
		err = s.dir(dir, "", 0)
		dir.Close()
	}
	if s.seen.digest = s.digests.digest(); err == nil && s.seen != c.whole {
		if err = errors.New("it is being removed: not all of it is there any more"); c.whole.digest != "" {
			err = errChanged
		}
	}
	if err != nil {
		for _, name := range s.made {
			err = errors.Join(err, beneath.RemoveAll(context.WithoutCancel(ctx), j.Root.FD(), name))
		}
		return Shared{}, fmt.Errorf("give the job its common files: %w", err)
	}
	return s.shared, nil
}

// sharer shares one catalog with one job.
type sharer struct {
	ctx    context.Context
	job    Job
	policy Policy
	log    *slog.Logger
	shared Shared
	whole  content // what should be there
	seen   content
	made   []string // at the top of the job's scratch directory

	digests *digester // of what the job got; nil if the catalog has none

	noReflinks, noLinks bool // the volume knows none
}

func (s *sharer) dir(dir *os.File, prefix string, depth int) error {
	if depth > maxDepth {
		return &fs.PathError{Op: "share", Path: prefix, Err: errors.New("too deep")} // Keep lets none pass
	}
	return each(dir, func(name string) error {
		if err := context.Cause(s.ctx); err != nil {
			return err
		}
		to := path.Join(prefix, name)
		if s.seen.entries++; s.seen.entries > s.whole.entries {
			return errChanged
		}
		var st unix.Stat_t
		if err := unix.Fstatat(fd(dir), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return &fs.PathError{Op: "stat", Path: to, Err: err}
		}
		if st.Mode&unix.S_IFMT != unix.S_IFDIR {
			return s.file(dir, name, to)
		}
		if err := s.mkdir(to, depth); err != nil {
			return err
		}
		s.digests.add(aDir, to, nil)
		sub, _, err := openDir(dir, name)
		if err != nil {
			return err
		}
		defer sub.Close()
		return s.dir(sub, to, depth+1)
	})
}

func (s *sharer) mkdir(to string, depth int) error {
	made := false
	err := s.job.Owner.Do(func() error {
		err := s.job.Root.Mkdir(to, 0o700)
		made = err == nil
		if st, e := s.job.Root.Lstat(to); errors.Is(err, fs.ErrExist) && e == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
			return nil
		}
		return err
	})
	if made && depth == 0 {
		s.made = append(s.made, to)
	}
	return err
}

// file gives the job one file by the first method that works.
func (s *sharer) file(dir *os.File, name, to string) error {
	f, st, err := openFile(dir, name)
	if err != nil {
		return err
	}
	defer f.Close()
	if st.Size > s.whole.bytes-s.seen.bytes { // do not fill the disk with what will be refused
		return fmt.Errorf("common file %s: %w", to, errChanged)
	}
	how, err := s.put(dir, name, f, to, st.Size)
	if err != nil {
		return fmt.Errorf("common file %s: %w", to, err)
	}
	if path.Dir(to) == "." {
		s.made = append(s.made, to)
	}
	s.shared.Files[how]++
	s.shared.Bytes += st.Size
	s.seen.bytes += st.Size
	return nil
}

func (s *sharer) put(dir *os.File, name string, f *os.File, to string, size int64) (Method, error) {
	if !s.noReflinks {
		err := s.clone(f, to, size)
		if err == nil || errors.Is(err, fs.ErrExist) {
			return Reflink, err
		}
		s.log.Debug("The volume shares no blocks of common files", "error", err)
		s.noReflinks = true
	}
	if s.policy.Link && !s.noLinks && to != s.job.Own {
		err := s.job.Root.Link(dir, name, to)
		if err == nil || errors.Is(err, fs.ErrExist) {
			return Hardlink, err
		}
		s.log.Debug("No hard link to a common file", "error", err)
		s.noLinks = !errors.Is(err, unix.EMLINK) // that is about this file only
	}
	if !s.policy.Copy {
		return "", errors.New("the volume allows neither shared blocks nor hard links, and the site no copies; allow copies (POD_STARTER_COMMON_FILES, FORBID_COPY_MAPPING)")
	}
	return Copy, s.write(to, func(w *os.File) error {
		return s.digests.copyFile(s.ctx, w, f, to, size)
	})
}

// clone makes a file of the job's that shares the blocks of f.
func (s *sharer) clone(f *os.File, to string, size int64) error {
	return s.write(to, func(w *os.File) error {
		if err := unix.IoctlFileClone(fd(w), fd(f)); err != nil || s.digests == nil {
			return err
		}
		// What the job has counts, not what the catalog has by now. It may be longer than it was.
		own, err := reopen(w)
		if err != nil {
			return err
		}
		defer own.Close()
		return s.digests.copyFile(s.ctx, nil, own, to, size+1)
	})
}

// write makes a file of the job's. After an error there is none, unless it was there before.
func (s *sharer) write(to string, fill func(*os.File) error) error {
	var w *beneath.File
	err := s.job.Owner.Do(func() (err error) {
		w, err = s.job.Root.CreateNew(to)
		return err
	})
	if err != nil {
		return err
	}
	// Writing through the open file takes no right to its path.
	out := os.NewFile(uintptr(w.FD()), to)
	err = fill(out)
	if err == nil {
		err = out.Chmod(fileMode)
	}
	if e := out.Close(); err == nil {
		err = e
	}
	if err != nil {
		_ = s.job.Owner.Do(func() error { return s.job.Root.Remove(to) })
	}
	return err
}

// contextReader ends when its context does.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := context.Cause(c.ctx); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// IsLink reports whether a file in a job's sandbox is a hard link to a common file: it is
// root's, and nobody can write it. No job can make such a file.
func IsLink(st *unix.Stat_t) bool {
	return st.Mode&unix.S_IFMT == unix.S_IFREG && st.Uid == 0 && st.Mode&0o222 == 0
}

// Elsewhere reports whether a file's disk space is accounted for elsewhere: by a data slot. If
// that has ended while several jobs have the file, none of them accounts for it.
func Elsewhere(st *unix.Stat_t) bool { return IsLink(st) && st.Nlink > 1 }
