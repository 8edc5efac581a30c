package memcg

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// MaxFiles bounds the files of a group that go from wrapper to starter.
const MaxFiles = 8

// Open opens the files of a group in dir, for reading; those that the kernel lacks are left
// out. peak, which may be nil, is used in place of memory.peak; the caller keeps it.
func Open(version int, dir string, peak *os.File) (names []string, files []*os.File) {
	for _, name := range Names(version) {
		f, err := (*os.File)(nil), error(nil)
		if name == Peak2 && peak != nil {
			f, err = again(peak)
		} else {
			f, err = os.Open(filepath.Join(dir, name))
		}
		if err == nil {
			names, files = append(names, name), append(files, f)
		}
	}
	return names, files
}

// again duplicates an open file; both share what a write to memory.peak has begun.
func again(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// Files are the open files of a group. Its methods may be called from several goroutines;
// those of a nil *Files find nothing.
type Files struct {
	version int
	above   int64 // the least limit of the groups above, as the wrapper sees it; -1 without
	byName  map[string]*os.File

	mu     sync.Mutex
	base   Figures // when the present run began
	closed bool
}

// ErrFiles means that open files are not those of a memory control group.
var ErrFiles = errors.New("these are not the files of a memory control group")

// NewFiles takes files that a wrapper has sent. above is the least limit of the groups above
// in bytes, as the wrapper sees it, or -1. check, which is [OfCgroup] except in tests, refuses
// foreign files. All are closed if one is refused.
func NewFiles(version int, above int64, names []string, files []*os.File, check func(*os.File) error) (*Files, error) {
	f := &Files{version: version, above: above, byName: make(map[string]*os.File), base: None()}
	err := error(nil)
	if version != 1 && version != 2 || len(names) != len(files) || len(names) == 0 {
		err = fmt.Errorf("%w: version %d, %d names, %d files", ErrFiles, version, len(names), len(files))
	}
	for i, file := range files {
		switch {
		case err != nil:
		case !slices.Contains(Names(version), names[i]) || f.byName[names[i]] != nil:
			err = fmt.Errorf("%w: %.40q", ErrFiles, names[i])
		default:
			err = check(file)
			f.byName[names[i]] = file
		}
	}
	if err != nil {
		for _, file := range files {
			file.Close()
		}
		return nil, err
	}
	f.Begin() // the first run may have been started without them
	return f, nil
}

// OfCgroup refuses every file but a regular one of a cgroup file system: reading another
// might not end.
func OfCgroup(f *os.File) error {
	var at unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &at); err != nil {
		return fmt.Errorf("look at a file of a memory control group: %w", err)
	}
	var is unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &is); err != nil {
		return fmt.Errorf("look at a file of a memory control group: %w", err)
	}
	if at.Type != unix.CGROUP2_SUPER_MAGIC && at.Type != unix.CGROUP_SUPER_MAGIC || is.Mode&unix.S_IFMT != unix.S_IFREG {
		return fmt.Errorf("%w: file system %#x, mode %#o", ErrFiles, at.Type, is.Mode)
	}
	return nil
}

// maxFile bounds what is read of a file, in bytes; memory.stat has a few thousand.
const maxFile = 64 << 10

// read gives a file's present content; nil if it has none. A removed group has none.
func (f *Files) read(name string) []byte {
	file := f.byName[name]
	if file == nil {
		return nil
	}
	data, err := io.ReadAll(io.NewSectionReader(file, 0, maxFile))
	if err != nil {
		return nil
	}
	return data
}

// Figures reads all files. known is false if the group is gone.
func (f *Files) Figures() (now Figures, known bool) {
	if f == nil {
		return None(), false
	}
	now = Read(f.version, f.read)
	now.Limit = Least(now.Limit, f.above)
	return now, now.Current >= 0
}

// charged reads only how much is charged to the group, with one system call; -1 if it is gone.
func (f *Files) charged() int64 {
	file := f.byName[current2]
	if f.version == 1 {
		file = f.byName[current1]
	}
	if file == nil {
		return -1
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return -1
	}
	var text [24]byte
	n := 0
	_ = raw.Read(func(fd uintptr) bool {
		n, _ = unix.Pread(int(fd), text[:], 0)
		return true
	})
	return Number(text[:max(n, 0)])
}

// events is the file on which the kernel reports what happens at the limits, opened for the
// caller to close; nil in version 1, where another file must be written to for that.
func (f *Files) events() *os.File {
	file := f.byName[events2]
	if file == nil {
		return nil
	}
	own, err := again(file)
	if err != nil {
		return nil
	}
	return own
}

// Begin notes the figures before a run: what happened earlier is not that run's.
func (f *Files) Begin() {
	now, known := f.Figures()
	if !known {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.base = now
}

func (f *Files) began() Figures {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.base
}

// Close closes the files. A second call does nothing.
func (f *Files) Close() {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	f.closed = true
	for _, file := range f.byName {
		file.Close()
	}
}
