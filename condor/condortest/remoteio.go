package condortest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"podstarter/internal/cedar"
)

// path is where something of the submit side is: relative names are in the submit
// directory, and so is what is below the job's Iwd. There is nothing else on this submit
// side.
func (s *Shadow) path(name string) (string, error) {
	if filepath.IsAbs(name) {
		rest, inside := strings.CutPrefix(filepath.Clean(name), s.iwd)
		if !inside {
			return "", syscall.ENOENT
		}
		name = strings.TrimPrefix(rest, "/")
	}
	if name == "" {
		name = "."
	}
	if !filepath.IsLocal(name) {
		return "", syscall.ENOENT
	}
	return filepath.Join(s.dir, name), nil
}

// Bounds of a shadow (NTreceivers.cpp).
const (
	firstFD  = 4 // as a shadow gives them
	statRoom = 1024
	maxIO    = 64 << 20
)

// errnoOf is why a call on a file failed.
func errnoOf(err error) syscall.Errno {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return syscall.EIO
}

// remoteIO carries out a call on a file of the submit side.
func (s *Shadow) remoteIO(st *cedar.Stream, h Heard) error {
	n, more, err := s.do(h)
	if err != nil {
		return refuse(st, errnoOf(err))
	}
	st.PutInt(n)
	switch h.Call {
	case "fstat", "fstatfs", "stat", "lstat", "statfs":
		room := make([]byte, statRoom)
		copy(room, more)
		st.PutBytes(room)
	case "getdir", "getlongdir", "get_file_info_new":
		st.PutString(more)
	default:
		st.PutBytes([]byte(more))
	}
	return st.EndMessage()
}

// do gives the result of a call and what goes with it.
func (s *Shadow) do(h Heard) (n int64, more string, err error) {
	switch h.Call {
	case "whoami":
		return octets("CONDOR")
	case "whoareyou":
		return octets("UNKNOWN")
	case "get_file_info_new":
		name := h.Texts[0]
		if !filepath.IsAbs(name) {
			name = filepath.Join(s.iwd, name)
		}
		return 0, "remote:" + name, nil
	case "open", "close", "read", "write", "pread", "pwrite", "sread", "swrite", "lseek", "fsync", "fstat", "fstatfs", "ftruncate", "fchmod", "fchown":
		return s.doOpen(h)
	}
	paths := make([]string, len(h.Texts))
	for i, name := range h.Texts {
		if h.Call == "symlink" && i == 0 {
			paths[i] = name
		} else if paths[i], err = s.path(name); err != nil {
			return 0, "", err
		}
	}
	return doPath(h, paths)
}

func octets(text string) (int64, string, error) { return int64(len(text)), text, nil }

// doPath does what names a file. The directory is the test's own.
func doPath(h Heard, paths []string) (n int64, more string, err error) {
	p := paths[0]
	switch h.Call {
	case "access":
		err = syscall.Access(p, uint32(h.Ints[0]))
	case "chmod":
		err = syscall.Chmod(p, uint32(h.Ints[0]))
	case "chown", "lchown":
		err = syscall.Lchown(p, int(h.Ints[0]), int(h.Ints[1]))
	case "link":
		err = os.Link(p, paths[1])
	case "symlink":
		err = os.Symlink(p, paths[1])
	case "rename":
		err = syscall.Rename(p, paths[1])
	case "mkdir":
		err = syscall.Mkdir(p, uint32(h.Ints[0]))
	case "rmdir", "rmall":
		err = syscall.Rmdir(p)
	case "unlink":
		err = syscall.Unlink(p)
	case "truncate":
		err = os.Truncate(p, h.Ints[0])
	case "utime":
		err = os.Chtimes(p, time.Unix(h.Ints[0], 0), time.Unix(h.Ints[1], 0))
	case "readlink":
		if more, err = os.Readlink(p); err == nil {
			return octets(more[:min(int64(len(more)), h.Ints[0])])
		}
	case "getfile":
		var b []byte
		if b, err = os.ReadFile(p); err == nil {
			return octets(string(b))
		}
	case "getdir", "getlongdir":
		return list(p, h.Call == "getlongdir")
	case "stat", "lstat":
		var st syscall.Stat_t
		if err = syscall.Lstat(p, &st); h.Call == "stat" {
			err = syscall.Stat(p, &st)
		}
		more = statText(&st)
	case "statfs":
		var st syscall.Statfs_t
		err = syscall.Statfs(p, &st)
		more = statfsText(&st)
	default:
		err = syscall.ENOSYS
	}
	return 0, more, err
}

// list is the answer of getdir: a name on each line, and an empty line.
func list(dir string, long bool) (int64, string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, "", err
	}
	var b strings.Builder
	for _, e := range entries {
		b.WriteString(e.Name() + "\n")
		var st syscall.Stat_t
		if long {
			if err := syscall.Lstat(filepath.Join(dir, e.Name()), &st); err != nil {
				return 0, "", err
			}
			b.WriteString(statText(&st))
		}
	}
	b.WriteString("\n")
	return octets(b.String())
}

func statText(st *syscall.Stat_t) string {
	return fmt.Sprintf("%d %d %d %d %d %d %d %d %d %d %d %d %d\n", st.Dev, st.Ino, st.Mode, st.Nlink, st.Uid, st.Gid, st.Rdev,
		st.Size, st.Blksize, st.Blocks, st.Atim.Sec, st.Mtim.Sec, st.Ctim.Sec)
}

func statfsText(st *syscall.Statfs_t) string {
	return fmt.Sprintf("%d %d %d %d %d %d %d\n", st.Type, st.Bsize, st.Blocks, st.Bfree, st.Bavail, st.Files, st.Ffree)
}

// doOpen does what is about an open file, or opens one.
func (s *Shadow) doOpen(h Heard) (int64, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.Call == "open" {
		return s.openFile(h)
	}
	fd, arg := h.Ints[0], append(h.Ints[1:], 0, 0)
	f := s.open[fd]
	if f == nil {
		return 0, "", syscall.EBADF
	}
	if strings.HasSuffix(h.Call, "read") && (arg[0] < 0 || arg[0] > maxIO) {
		return 0, "", syscall.EINVAL
	}
	switch h.Call {
	case "close":
		delete(s.open, fd)
		return 0, "", f.Close()
	case "read":
		b := make([]byte, arg[0])
		n, err := f.Read(b)
		return taken(b[:max(n, 0)], err)
	case "pread":
		b := make([]byte, arg[0])
		n, err := f.ReadAt(b, arg[1])
		return taken(b[:n], err)
	case "sread":
		return strided(f, arg)
	case "write":
		n, err := f.WriteString(h.Body)
		return int64(n), "", err
	case "pwrite":
		n, err := f.WriteAt([]byte(h.Body), arg[1])
		return int64(n), "", err
	case "swrite":
		return stridedWrite(f, h.Body, arg)
	case "lseek":
		n, err := f.Seek(arg[0], int(arg[1]))
		return n, "", err
	case "fsync":
		return 0, "", f.Sync()
	case "ftruncate":
		return 0, "", f.Truncate(arg[0])
	case "fchmod":
		return 0, "", f.Chmod(os.FileMode(arg[0]) & 0o777)
	case "fchown":
		return 0, "", f.Chown(int(arg[0]), int(arg[1]))
	case "fstat":
		var st syscall.Stat_t
		err := syscall.Fstat(int(f.Fd()), &st)
		return 0, statText(&st), err
	default: // fstatfs
		var st syscall.Statfs_t
		err := syscall.Fstatfs(int(f.Fd()), &st)
		return 0, statfsText(&st), err
	}
}

// openFile opens a file under the lowest number that is free; the caller has mu.
func (s *Shadow) openFile(h Heard) (int64, string, error) {
	path, err := s.path(h.Texts[0])
	if err != nil {
		return 0, "", err
	}
	f, err := os.OpenFile(path, cedar.DecodeOpenFlags(h.Ints[0])|syscall.O_CLOEXEC, os.FileMode(h.Ints[1])&0o777) //nolint:forbidigo // in a directory of the test
	if err != nil {
		return 0, "", err
	}
	fd := int64(firstFD)
	for s.open[fd] != nil {
		fd++
	}
	s.open[fd] = f
	return fd, "", nil
}

// taken is the answer of a read; the end of a file is an answer of nothing.
func taken(b []byte, err error) (int64, string, error) {
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, "", err
	}
	return octets(string(b))
}

// strided reads pieces of arg[2] bytes, one every arg[3], from arg[1] on, arg[0] in all.
func strided(f *os.File, arg []int64) (int64, string, error) {
	if arg[2] <= 0 || arg[3] < 0 {
		return 0, "", syscall.EINVAL
	}
	var all []byte
	for at := arg[1]; int64(len(all)) < arg[0]; at += arg[3] {
		b := make([]byte, min(arg[2], arg[0]-int64(len(all))))
		n, err := f.ReadAt(b, at)
		if all = append(all, b[:n]...); err != nil {
			return taken(all, err)
		}
	}
	return octets(string(all))
}

// stridedWrite writes as strided reads.
func stridedWrite(f *os.File, body string, arg []int64) (int64, string, error) {
	if arg[2] <= 0 || arg[3] < 0 {
		return 0, "", syscall.EINVAL
	}
	total := int64(len(body))
	for at := arg[1]; body != ""; at += arg[3] {
		piece := body[:min(arg[2], int64(len(body)))]
		if _, err := f.WriteAt([]byte(piece), at); err != nil {
			return 0, "", err
		}
		body = body[len(piece):]
	}
	return total, "", nil
}
