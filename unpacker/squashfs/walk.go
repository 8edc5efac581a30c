package squashfs

import (
	"encoding/binary"

	"podstarter/unpacker/fault"
	"podstarter/unpacker/tarstream"
)

const (
	// maxRun is how many entries follow one directory header.
	maxRun = 256
	// overhead is what the size of a listing has more than the listing, for "." and "..".
	overhead = 3
)

// Walk adds all entries below the root to a stream, each directory before what is in it, in the
// order in which the file system lists them, which is that of their names.
func (m *Image) Walk(w *tarstream.Writer) error {
	root, err := m.inode(m.super.root)
	if err != nil {
		return err
	}
	if root.kind != typeDirectory {
		return fault.New(fault.Malformed, "read the root of the squashfs: it is not a directory")
	}
	m.met = make([]uint64, int(m.super.inodes)/64+1)
	return m.directory(w, "", root)
}

// directory adds the entries of a directory. Its depth is bounded by the paths that [tarstream.Writer.Join]
// allows.
func (m *Image) directory(w *tarstream.Writer, path string, dir inode) error {
	if err := m.meet(path, dir); err != nil {
		return err
	}
	if dir.size <= overhead {
		return nil
	}
	if dir.start >= uint64(m.super.bytesUsed-m.super.directories) {
		return fault.New(fault.Malformed, "read directory %.200q of the squashfs: its list is said to be at byte %d of %d", "/"+path, dir.start, m.super.bytesUsed-m.super.directories)
	}
	c := cursor{meta: &m.meta, end: m.super.bytesUsed}
	c.seek(m.super.directories+int64(dir.start), int(dir.offset))
	left := int64(dir.size) - overhead
	for left > 0 {
		var head [12]byte
		if err := take(&c, head[:], &left, path); err != nil {
			return err
		}
		count, block := binary.LittleEndian.Uint32(head[:]), binary.LittleEndian.Uint32(head[4:])
		if count >= maxRun {
			return fault.New(fault.Malformed, "read directory %.200q of the squashfs: %d entries in a row; %d are possible", "/"+path, uint64(count)+1, maxRun)
		}
		for range count + 1 {
			if err := m.entry(w, &c, &left, path, block); err != nil {
				return err
			}
		}
	}
	return nil
}

// take reads a part of a listing.
func take(c *cursor, p []byte, left *int64, path string) error {
	if *left -= int64(len(p)); *left < 0 {
		return fault.New(fault.Malformed, "read directory %.200q of the squashfs: its list ends inside an entry", "/"+path)
	}
	return c.read(p)
}

// meet notes a directory, which has one name only. This ends loops, and trees of which a
// part hangs at many places.
func (m *Image) meet(path string, dir inode) error {
	if dir.number == 0 || dir.number > m.super.inodes {
		return fault.New(fault.Malformed, "read directory %.200q of the squashfs: its inode has number %d of %d", "/"+path, dir.number, m.super.inodes)
	}
	word, bit := dir.number/64, uint64(1)<<(dir.number%64)
	if m.met[word]&bit != 0 {
		return fault.New(fault.Malformed, "read directory %.200q of the squashfs: it is there under another name, too", "/"+path)
	}
	m.met[word] |= bit
	return nil
}

// entry reads an entry of a listing and adds it, with all below it.
func (m *Image) entry(w *tarstream.Writer, c *cursor, left *int64, dir string, block uint32) error {
	var b [8 + tarstream.MaxName + 1]byte
	if err := take(c, b[:8], left, dir); err != nil {
		return err
	}
	length := int(binary.LittleEndian.Uint16(b[6:])) + 1
	if length > tarstream.MaxName {
		return fault.New(fault.Malformed, "read directory %.200q of the squashfs: the name of an entry has %d bytes; %d are possible", "/"+dir, length, tarstream.MaxName)
	}
	offset := binary.LittleEndian.Uint16(b[:])
	name := b[8 : 8+length]
	if err := take(c, name, left, dir); err != nil {
		return err
	}
	path, err := w.Join(dir, string(name))
	if err != nil {
		return err
	}
	if err := w.Count(); err != nil {
		return err
	}
	ref := reference(block)<<16 | reference(offset)
	n, err := m.inode(ref)
	if err != nil {
		return fault.New(fault.Of(err), "unpack %.200q: %w", "/"+path, err)
	}
	if err := m.add(w, path, ref, n); err != nil || n.kind != typeDirectory {
		return err
	}
	return m.directory(w, path, n)
}
