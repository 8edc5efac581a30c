package squashfs

import (
	"io"
	"math"

	"podstarter/unpacker/fault"
	"podstarter/unpacker/tarstream"
)

// maxTarget bounds what is allocated for a symbolic link's target, in bytes; the kernel's bound is 4095.
const maxTarget = 64 << 10

// add adds one inode under one of its names.
func (m *Image) add(w *tarstream.Writer, path string, ref reference, n inode) error {
	e := tarstream.Entry{Path: path, Mode: uint32(n.mode), Modified: int64(n.mtime), Kind: tarstream.Skipped}
	switch n.kind {
	case typeDirectory:
		e.Kind = tarstream.Directory
	case typeFIFO:
		e.Kind = tarstream.FIFO
	case typeSymlink:
		e.Kind = tarstream.Symlink
		if n.size > maxTarget {
			return fault.New(fault.TooLarge, "unpack symbolic link %.200q: its target has %d bytes; at most %d are supported", "/"+path, n.size, maxTarget)
		}
		target := make([]byte, n.size)
		if err := n.rest.read(target); err != nil {
			return fault.New(fault.Of(err), "unpack symbolic link %.200q: %w", "/"+path, err)
		}
		e.Target = string(target)
	case typeFile:
		if n.size > math.MaxInt64 || n.start > math.MaxInt64 {
			return fault.New(fault.TooLarge, "unpack %.200q: it has %d bytes", "/"+path, n.size)
		}
		e.Kind, e.Size, e.Names = tarstream.File, int64(n.size), n.links
		// Names of one file refer to the same inode; its number is only what the image says.
		e.Identity = tarstream.Identity{Number: uint64(ref)}
		e.Content = func(out io.Writer) error { return m.content(n, out) }
	}
	return w.Add(e)
}
