package squashfs

import (
	"encoding/binary"

	"podstarter/unpacker/fault"
)

// Types of inodes. The extended form of each is seven higher.
const (
	typeDirectory = 1
	typeFile      = 2
	typeSymlink   = 3
	typeBlock     = 4
	typeChar      = 5
	typeFIFO      = 6
	typeSocket    = 7
	extended      = 7
)

// noFragment is the index of the fragment of a file that ends with a block of its own.
const noFragment = 1<<32 - 1

// inode is what is needed of one.
type inode struct {
	kind   uint16 // the plain form
	mode   uint16
	mtime  uint32
	number uint32
	links  uint32
	size   uint64 // of a file, of a directory's listing, or of a link's target, in bytes
	// start is the first block of a file, by its byte in the file system, or the metadata block
	// of a directory's listing, by its byte in the table of directories.
	start uint64
	// fragment and offset are where the end of a file is; offset is also where a listing begins in its block.
	fragment, offset uint32
	// rest reads on: a file's list of blocks, or a link's target.
	rest cursor
}

// inode reads an inode.
func (m *Image) inode(ref reference) (inode, error) {
	c := cursor{meta: &m.meta, end: m.super.directories}
	pos := uint64(ref >> 16)
	if pos >= uint64(m.super.directories-m.super.inodeTable) {
		return inode{}, fault.New(fault.Malformed, "read an inode of the squashfs: it is said to be at byte %d of %d", pos, m.super.directories-m.super.inodeTable)
	}
	c.seek(m.super.inodeTable+int64(pos), int(ref&0xffff))
	var b [40]byte // the longest rest is that of an extended file
	if err := c.read(b[:16]); err != nil {
		return inode{}, err
	}
	u16 := binary.LittleEndian.Uint16
	u32 := binary.LittleEndian.Uint32
	n := inode{kind: u16(b[0:]), mode: u16(b[2:]), mtime: u32(b[8:]), number: u32(b[12:]), links: 1}
	long := n.kind > extended
	if long {
		n.kind -= extended
	}
	length := 0
	switch {
	case n.kind == typeFile && long:
		length = 40
	case n.kind == typeDirectory && long:
		length = 24
	case n.kind == typeFile, n.kind == typeDirectory:
		length = 16
	case n.kind == typeSymlink:
		length = 8
	case n.kind >= typeBlock && n.kind <= typeSocket:
		return n, nil
	default:
		return n, fault.New(fault.Malformed, "read an inode of the squashfs: its type %d does not exist", u16(b[0:]))
	}
	if err := c.read(b[:length]); err != nil {
		return n, err
	}
	switch {
	case n.kind == typeFile && long:
		n.start, n.size = binary.LittleEndian.Uint64(b[0:]), binary.LittleEndian.Uint64(b[8:])
		n.links, n.fragment, n.offset = u32(b[24:]), u32(b[28:]), u32(b[32:])
	case n.kind == typeFile:
		n.start, n.fragment, n.offset, n.size = uint64(u32(b[0:])), u32(b[4:]), u32(b[8:]), uint64(u32(b[12:]))
	case n.kind == typeDirectory && long:
		n.size, n.start, n.offset = uint64(u32(b[4:])), uint64(u32(b[8:])), uint32(u16(b[18:]))
	case n.kind == typeDirectory:
		n.start, n.size, n.offset = uint64(u32(b[0:])), uint64(u16(b[8:])), uint32(u16(b[10:]))
	case n.kind == typeSymlink:
		n.size = uint64(u32(b[4:]))
	}
	n.rest = c
	return n, nil
}
