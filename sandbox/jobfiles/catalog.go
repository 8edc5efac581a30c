package jobfiles

import (
	"context"
	"errors"
	"hash/maphash"
	"io"

	"golang.org/x/sys/unix"

	"podstarter/sandbox/beneath"
	"podstarter/sandbox/commonfiles"
)

// Catalog remembers what the files at the top of a sandbox looked like when the job had
// not touched them yet (BuildFileCatalog). It does not contain directories. HTCondor
// compares size and whole seconds of the modification time, and so has to let a second
// pass before the job may start. A catalog compares nanoseconds, the time of the
// inode's last change and the inode's number: it needs no such pause, and notices
// changes whose times were set back.
//
// It keeps names and fingerprints as bits of a keyed hash, for which nobody outside can
// construct collisions: a job with a million input files must not cost the starter a
// hundred megabytes while it runs.
type Catalog map[uint64]fingerprint

// fingerprint shows whether a file may have other contents than before.
type fingerprint struct {
	contents uint64 // hash of size, time of modification, and inode
	ctime    uint32 // hash of the time of the inode's last change
	other    uint32 // mode and number of names: what else moves that time
}

var catalogSeed = maphash.MakeSeed()

func (c Catalog) add(name string, st *unix.Stat_t) {
	c[maphash.String(catalogSeed, name)] = fingerprintOf(st)
}

// look says whether a name is known, and whether its contents are unchanged.
func (c Catalog) look(name string, st *unix.Stat_t) (known, same bool) {
	old, known := c[maphash.String(catalogSeed, name)]
	return known, known && fingerprintOf(st).same(old)
}

// same reports whether a file still has the contents that it had at fingerprint old. A
// new mode, or a new name for the same file, also changes the time of the inode's last
// change, and explains it: "chmod +x" of an input must not send the input back over
// changes that its owner made meanwhile.
func (f fingerprint) same(old fingerprint) bool {
	return f.contents == old.contents && (f.ctime == old.ctime || f.other != old.other)
}

// Other jobs that get or remove a hard link to the same common file also change that
// time, of a file that none of them can write.
func fingerprintOf(st *unix.Stat_t) fingerprint {
	type contents struct {
		size, ino int64
		mtime     unix.Timespec
	}
	changed := st.Ctim
	if commonfiles.IsLink(st) {
		changed = unix.Timespec{}
	}
	return fingerprint{
		contents: maphash.Comparable(catalogSeed, contents{size: st.Size, ino: int64(st.Ino), mtime: st.Mtim}),
		ctime:    uint32(maphash.Comparable(catalogSeed, changed)),
		other:    st.Mode<<16 | uint32(st.Nlink)&0xffff,
	}
}

// maxCatalog bounds the memory of a catalog, about 25 MiB. Files beyond it count as new,
// which at worst returns input that did not change.
const maxCatalog = 600_000

// TakeCatalog reads the top of the sandbox, as the identity of the calling thread. It
// returns when every later change is sure to be noticed; see settle.
func TakeCatalog(ctx context.Context, root *beneath.Root) (Catalog, error) {
	c := Catalog{}
	var newest unix.Timespec
	err := EachTop(root, func(name string, st *unix.Stat_t) error {
		if st.Mode&unix.S_IFMT != unix.S_IFREG || len(c) >= maxCatalog {
			return nil
		}
		c.add(name, st)
		if after(st.Ctim, newest) {
			newest = st.Ctim
		}
		return ctx.Err()
	}, nil)
	if err != nil {
		return nil, err
	}
	return c, settle(ctx, newest, root.Now)
}

// EachTop visits what is at the top of the sandbox. It follows links, and leaves out
// those that lead nowhere, as HTCondor does (src/condor_utils/directory.cpp:Next), or out
// of the sandbox. skipped, which may be nil, hears of what exists and cannot be examined.
func EachTop(root *beneath.Root, visit func(name string, st *unix.Stat_t) error, skipped func(name string, err error)) error {
	dir, err := root.ReadDir(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	for {
		name, err := dir.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		st, err := dir.Lstat(name)
		if err == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK {
			st, err = root.Stat(name)
		}
		if err != nil {
			if errors.Is(err, unix.EIO) {
				return err
			}
			if skipped != nil && !nothing(err) {
				skipped(name, err)
			}
			continue
		}
		if err := visit(name, &st); err != nil {
			return err
		}
	}
}

func after(a, b unix.Timespec) bool {
	return a.Sec > b.Sec || (a.Sec == b.Sec && a.Nsec > b.Nsec)
}
