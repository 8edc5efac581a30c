package imagetree

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// maxPath and maxName are the kernel's own bounds (PATH_MAX, NAME_MAX), in bytes.
	maxPath = 4095
	maxName = 255
	// chunk is how much is read and written at a time. A chunk of zeros is not written: it
	// becomes a hole.
	chunk = 256 << 10
)

// rights are the mode bits that files of an image keep: all but set-user-ID and set-group-ID.
const rights = 0o1777

// failure is an error with the word for it, if the kernel has none.
type failure struct {
	reason Reason
	err    error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func malformed(format string, args ...any) error {
	return &failure{Malformed, fmt.Errorf(format, args...)}
}

// errMounted says that an entry's place is in a mount, and not in the container's own file system.
var errMounted = errors.New("something is mounted there")

// Write writes a tar stream's files below the directory root, which it does not leave. All belong to
// whoever calls it. The calling process's umask is 0.
func Write(root int, stream io.Reader, o Order) Report {
	w := writer{dirs: places{root: root, layers: o.Layers}, limits: o.Limits, buffer: make([]byte, chunk)}
	if o.Layers {
		w.dirs.count = w.count
	}
	defer w.dirs.close()
	whole := &endless{stream: stream}
	archive := tar.NewReader(whole)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) && !whole.ended {
			return w.report
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return w.ended("", &failure{Malformed, fmt.Errorf("read the next entry of the stream: %w", err)})
		}
		if err := w.entry(header, archive); err != nil {
			return w.ended(header.Name, err)
		}
	}
}

// endless notes that a stream ended. An archive is read to the two blocks at its end, and not
// further (tar(5)); but to archive/tar, one that breaks off between two entries is as good.
type endless struct {
	stream io.Reader
	ended  bool
}

func (e *endless) Read(p []byte) (int, error) {
	n, err := e.stream.Read(p)
	e.ended = e.ended || n == 0 && errors.Is(err, io.EOF)
	return n, err
}

// writer is a stream that is being written.
type writer struct {
	dirs   places
	limits Limits
	report Report
	seen   int64 // entries, also those that were left out
	buffer []byte
}

func (w *writer) ended(at string, err error) Report { return w.report.because(at, err) }

// count counts what may be written.
func (w *writer) count() error {
	if w.seen++; w.seen > w.limits.Entries {
		return &failure{TooLarge, fmt.Errorf("the image has more than %d files", w.limits.Entries)}
	}
	return nil
}

// entry writes one entry.
func (w *writer) entry(h *tar.Header, contents io.Reader) error {
	if err := w.count(); err != nil {
		return err
	}
	name, err := nameOf(h.Name)
	if err != nil {
		return err
	}
	if name == "." && h.PAXRecords[Record] == "" {
		if h.Typeflag != tar.TypeDir {
			return malformed("the root of the image is no directory")
		}
		return nil // the container's own remains
	}
	if h.Typeflag == tar.TypeChar || h.Typeflag == tar.TypeBlock {
		w.report.Skipped++
		return nil
	}
	if what := h.PAXRecords[Record]; w.dirs.layers && what != "" {
		err = w.remove(name, what)
	} else {
		err = w.write(name, h, contents)
	}
	if errors.Is(err, errMounted) {
		if w.report.MountedCount++; len(w.report.Mounted) < maxMounted {
			w.report.Mounted = append(w.report.Mounted, printable(name))
		}
		return nil
	}
	if err == nil {
		w.report.Entries++
	}
	return err
}

// Record is the name of a PAX record (pax(1), "pax Extended Header Keywords"), by which a layer's entry says that what is there goes.
const Record = "PODSTARTER.remove"

// Values of a [Record].
const (
	RecordGone    = "itself"
	RecordEmptied = "contents"
)

func (w *writer) remove(name, what string) error {
	switch {
	case what == RecordEmptied:
		return w.dirs.remove(name, true)
	case what == RecordGone && name != ".":
		return w.dirs.remove(name, false)
	}
	return malformed("an entry says that %.80q is to be removed", what)
}

func (w *writer) write(name string, h *tar.Header, contents io.Reader) error {
	dir, err := w.dirs.open(path.Dir(name))
	if err != nil {
		return err
	}
	return w.make(dir, name, h, contents)
}

// nameOf is a stream's name as a path below the root. A directory's ends in a slash (tar(5)).
func nameOf(raw string) (string, error) {
	name := strings.TrimSuffix(raw, "/")
	if name == "." {
		return name, nil
	}
	if name = strings.TrimPrefix(name, "./"); len(name) > maxPath {
		return "", malformed("a name has %d bytes, and may have %d", len(name), maxPath)
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." || len(part) > maxName || strings.IndexByte(part, 0) >= 0 {
			return "", malformed("%.80q cannot be part of a name", part)
		}
	}
	return name, nil
}

// make makes the entry in its directory.
func (w *writer) make(dir int, name string, h *tar.Header, contents io.Reader) error {
	base, mode := path.Base(name), uint32(h.Mode)&rights
	switch h.Typeflag {
	case tar.TypeReg:
		return w.file(dir, base, mode, h, contents)
	case tar.TypeDir:
		return w.dirs.make(dir, name, mode)
	case tar.TypeSymlink:
		if h.Linkname == "" || len(h.Linkname) > maxPath || strings.IndexByte(h.Linkname, 0) >= 0 {
			return malformed("a symbolic link has a target of %d bytes, or with a NUL byte", len(h.Linkname))
		}
		// Where it leads does not matter: nothing here follows it.
		return replacing(dir, base, func() error { return unix.Symlinkat(h.Linkname, dir, base) })
	case tar.TypeLink:
		return w.hardLink(dir, base, h.Linkname)
	case tar.TypeFifo:
		return replacing(dir, base, func() error { return unix.Mknodat(dir, base, unix.S_IFIFO|mode&0o777, 0) })
	}
	return malformed("an entry has the type %q, which an image's file cannot have", h.Typeflag)
}

// hardLink makes another name for a file that was written before.
func (w *writer) hardLink(dir int, base, target string) error {
	name, err := nameOf(target)
	if err != nil {
		return err
	}
	var there places // w.dirs keeps the directory of the entry open
	there.root, there.layers = w.dirs.root, w.dirs.layers
	defer there.close()
	from, err := there.open(path.Dir(name))
	if err != nil {
		return err
	}
	err = replacing(dir, base, func() error { return unix.Linkat(from, path.Base(name), dir, base, 0) })
	switch {
	case errors.Is(err, unix.EXDEV):
		return errMounted // its target is a mount
	case errors.Is(err, unix.ENOENT):
		return malformed("a hard link's target %.200q is not in the stream before it", target)
	}
	return err
}

// file writes a regular file.
func (w *writer) file(dir int, base string, mode uint32, h *tar.Header, contents io.Reader) (err error) {
	if h.Size > w.limits.Bytes-w.report.Bytes {
		return &failure{TooLarge, fmt.Errorf("the image's files have more than %d bytes", w.limits.Bytes)}
	}
	var fd int
	if err := replacing(dir, base, func() (err error) {
		fd, err = unix.Openat(dir, base, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode&0o777)
		return err
	}); err != nil {
		return err
	}
	defer func() {
		// A network file system may report a full disk only here.
		if closed := unix.Close(fd); err == nil {
			err = closed
		}
	}()
	if err := w.fill(fd, h.Size, contents); err != nil {
		return err
	}
	w.report.Bytes += h.Size
	if h.ModTime.IsZero() || h.ModTime.Unix() < 0 {
		return nil
	}
	// Python compares it with the time in its compiled files. Not a reason to fail.
	at := unix.NsecToTimespec(h.ModTime.UnixNano())
	_ = unix.UtimesNanoAt(dir, base, []unix.Timespec{at, at}, unix.AT_SYMLINK_NOFOLLOW)
	return nil
}

// fill writes a file's contents. Chunks of zeros become holes.
func (w *writer) fill(fd int, size int64, contents io.Reader) error {
	hole := false
	for left := size; left > 0; {
		n, err := io.ReadFull(contents, w.buffer[:min(left, chunk)])
		if err != nil {
			return &failure{Malformed, fmt.Errorf("read a file of %d bytes from the stream: %w", size, err)}
		}
		left -= int64(n)
		if hole = isZero(w.buffer[:n]); hole {
			if _, err := unix.Seek(fd, int64(n), unix.SEEK_CUR); err != nil {
				return err
			}
			continue
		}
		for data := w.buffer[:n]; len(data) > 0; {
			n, err := unix.Write(fd, data)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if err != nil {
				return err
			}
			data = data[n:]
		}
	}
	if hole {
		return unix.Ftruncate(fd, size)
	}
	return nil
}

func isZero(data []byte) bool {
	for len(data) >= 8 {
		if data[0]|data[1]|data[2]|data[3]|data[4]|data[5]|data[6]|data[7] != 0 {
			return false
		}
		data = data[8:]
	}
	for _, b := range data {
		if b != 0 {
			return false
		}
	}
	return true
}
