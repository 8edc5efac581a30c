// Package tarstream writes the entries of an image as a tar stream, within bounds and with the
// rights that a job's container needs: owned by root, readable by everybody who could be the job's user.
package tarstream

import (
	"archive/tar"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"podstarter/unpacker/fault"
)

// Bounds of what is written. Zero allows nothing.
type Bounds struct {
	// Bytes is the sum of the sizes of all files that are written.
	Bytes int64
	// Entries is the number of entries, those that are left out included.
	Entries int64
	// Depth is the number of names in a path.
	Depth int
	// Target is the length of a symbolic link's target, in bytes.
	Target int
}

const (
	// MaxName is the longest name, in bytes (NAME_MAX).
	MaxName = 255
	// MaxPath is the longest path, in bytes (PATH_MAX).
	MaxPath = 4096
)

// The bounds of the memory of hard links: files of which not all names have been seen, and the
// bytes of their paths.
const (
	maxLinked      = 400_000
	maxLinkedBytes = 64 << 20
)

// Kind is what an entry is.
type Kind int

// The kinds.
const (
	Directory Kind = iota
	File
	Symlink
	FIFO
	// Skipped is a device or socket, which is not written.
	Skipped
	// Link is another name of the file Target, which was written before.
	Link
	// Gone says that what an earlier entry has written there, if anything, is no part of the image; Emptied says so of
	// all that is in a directory. [Record] in the header tells them from files.
	Gone
	Emptied
)

// Record is the name of a PAX record (pax(1), "pax Extended Header Keywords") with which a header of size 0 says that something is to be removed.
const Record = "PODSTARTER.remove"

// Values of a [Record].
const (
	RecordGone    = "itself"
	RecordEmptied = "contents"
)

// Identity tells a file from all others of the image.
type Identity struct{ Device, Number uint64 }

// Entry is one name in an image.
type Entry struct {
	// Path is relative to the image's root, by [Join].
	Path string
	Kind Kind
	// Mode has the permission bits as in st_mode.
	Mode uint32
	// Modified is in seconds since 1970.
	Modified int64
	// Size of a file in bytes.
	Size int64
	// Target of a symbolic link, or the path of a link's file.
	Target string
	// Names is the number of names that a file has (st_nlink).
	Names uint32
	// Identity of a file that has several.
	Identity Identity
	// Content writes exactly Size bytes. It is called at most once, before Add returns.
	Content func(io.Writer) error
}

// Writer writes entries. It is for one goroutine, but for [Writer.Progress].
type Writer struct {
	tar     *tar.Writer
	out     *output
	bounds  Bounds
	bytes   int64
	entries atomic.Int64
	linked  map[Identity]*names
	kept    int
}

// names are those of a file with several.
type names struct {
	first string
	left  uint32
}

// New makes a Writer. The caller must call Close.
func New(w io.Writer, bounds Bounds) *Writer {
	out := &output{w: w}
	return &Writer{tar: tar.NewWriter(out), out: out, bounds: bounds, linked: map[Identity]*names{}}
}

// output remembers that the stream could not be written, to tell that from a content that could
// not be read.
type output struct {
	w     io.Writer
	bytes atomic.Int64
	err   error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	o.bytes.Add(int64(n))
	if err != nil {
		o.err = err
	}
	return n, err
}

// Join makes the path of a name in a directory, "" for the root. Names come from the image and are not
// trusted.
func (w *Writer) Join(dir, name string) (string, error) {
	switch {
	case name == "", name == ".", name == "..", strings.ContainsAny(name, "/\x00"):
		return "", fault.New(fault.Malformed, "unpack directory %.200q: an entry has the name %.200q, which no file can have", "/"+dir, name)
	case len(name) > MaxName:
		return "", fault.New(fault.Malformed, "unpack directory %.200q: the name of an entry has %d bytes; %d are possible", "/"+dir, len(name), MaxName)
	}
	path := name
	if dir != "" {
		path = dir + "/" + name
	}
	if len(path) > MaxPath {
		return "", fault.New(fault.TooLarge, "unpack directory %.200q: a path has %d bytes; at most %d are allowed", "/"+dir, len(path), MaxPath)
	}
	if depth := 1 + strings.Count(path, "/"); depth > w.bounds.Depth {
		return "", fault.New(fault.TooLarge, "unpack directory %.200q: its entries are %d levels deep; at most %d are allowed", "/"+dir, depth, w.bounds.Depth)
	}
	return path, nil
}

// Count counts an entry that will be added. A caller that must remember entries before it adds
// them counts them first.
func (w *Writer) Count() error {
	if w.entries.Add(1) > w.bounds.Entries {
		return fault.New(fault.TooLarge, "unpack the image: it has more than %d files and directories, the most that are allowed", w.bounds.Entries)
	}
	return nil
}

// Progress is how many entries were counted, and how many bytes of the stream written. Any goroutine may ask.
func (w *Writer) Progress() (entries, bytes int64) { return w.entries.Load(), w.out.bytes.Load() }

// Add writes an entry that was counted.
func (w *Writer) Add(e Entry) error {
	h := tar.Header{Name: e.Path, Mode: mode(e), ModTime: time.Unix(e.Modified, 0)}
	switch e.Kind {
	case Skipped:
		return nil
	case Directory:
		h.Typeflag = tar.TypeDir
		h.Name += "/"
	case FIFO:
		h.Typeflag = tar.TypeFifo
	case Symlink:
		if e.Target == "" || strings.Contains(e.Target, "\x00") {
			return fault.New(fault.Malformed, "unpack symbolic link %.200q: its target is %.200q", "/"+e.Path, e.Target)
		}
		if len(e.Target) > w.bounds.Target {
			return fault.New(fault.TooLarge, "unpack symbolic link %.200q: its target has %d bytes; at most %d are allowed", "/"+e.Path, len(e.Target), w.bounds.Target)
		}
		h.Typeflag, h.Linkname = tar.TypeSymlink, e.Target
	case Link:
		h.Typeflag, h.Linkname = tar.TypeLink, e.Target
	case Gone:
		h.PAXRecords = map[string]string{Record: RecordGone}
	case Emptied:
		h.PAXRecords = map[string]string{Record: RecordEmptied}
	case File:
		first, err := w.firstName(e)
		if err != nil {
			return err
		}
		h.Typeflag, h.Size = tar.TypeReg, e.Size
		if first != "" {
			h.Typeflag, h.Size, h.Linkname = tar.TypeLink, 0, first
		}
	}
	if e.Size < 0 || h.Size > w.bounds.Bytes-w.bytes {
		return fault.New(fault.TooLarge, "unpack %.200q: with its %d bytes, the image's files have more than %d, the most that are allowed", "/"+e.Path, e.Size, w.bounds.Bytes)
	}
	w.bytes += h.Size
	if err := w.tar.WriteHeader(&h); err != nil {
		return w.failed(e, err)
	}
	if h.Typeflag == tar.TypeReg && h.Size > 0 {
		if err := e.Content(w.tar); err != nil {
			return w.failed(e, err)
		}
	}
	return nil
}

// firstName is the name under which a file was written before; empty if it was not.
func (w *Writer) firstName(e Entry) (string, error) {
	if e.Names < 2 {
		return "", nil
	}
	if n := w.linked[e.Identity]; n != nil {
		if n.left--; n.left == 0 {
			delete(w.linked, e.Identity)
			w.kept -= len(n.first)
		}
		return n.first, nil
	}
	w.kept += len(e.Path)
	if len(w.linked) >= maxLinked || w.kept > maxLinkedBytes {
		return "", fault.New(fault.TooLarge, "unpack %.200q: more than %d files have several names, or these names more than %d bytes", "/"+e.Path, maxLinked, maxLinkedBytes)
	}
	w.linked[e.Identity] = &names{first: e.Path, left: e.Names - 1}
	return "", nil
}

// failed says which side of a copy failed.
func (w *Writer) failed(e Entry, err error) error {
	if w.out.err != nil {
		return fault.New(fault.Write, "write %.200q to the tar stream: %w", "/"+e.Path, w.out.err)
	}
	return fault.New(fault.Of(err), "unpack %.200q: %w", "/"+e.Path, err)
}

// mode gives the group and others what the owner may read and execute, because the job's user is
// not the owner. Bits that give rights are dropped.
func mode(e Entry) int64 {
	const sticky, all, owner = 0o1000, 0o777, 0o500
	bits := e.Mode & owner
	m := e.Mode&(sticky|all) | bits>>3 | bits>>6
	if e.Kind == Directory {
		m |= 0o755
	}
	return int64(m)
}

// Close writes the end of the stream. Without it the stream is incomplete.
func (w *Writer) Close() error {
	if err := w.tar.Close(); err != nil {
		return fault.New(fault.Write, "write the end of the tar stream: %w", err)
	}
	return nil
}
