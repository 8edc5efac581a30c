// Package squashfs walks a squashfs 4.0 file system of which every byte may be hostile, and hands its
// entries to a tar stream. It reads in the order in which mksquashfs writes, with memory that does
// not depend on the image.
//
// It does not use github.com/diskfs/go-diskfs: that reads whole directories and lists of blocks
// into memory by sizes that the image claims, and does not tell which names are one file.
//
// The layout is that of the kernel's fs/squashfs/squashfs_fs.h and Documentation/filesystems/squashfs.rst.
// All numbers are little-endian.
package squashfs

import (
	"encoding/binary"
	"errors"
	"io"

	"podstarter/unpacker/fault"
)

const (
	magic          = "hsqs"
	superblockSize = 96
	minBlockLog    = 12 // 4 KiB
	maxBlockLog    = 20 // 1 MiB
	// absent is the place of a table that the file system does not have.
	absent = 1<<64 - 1
	// maxInodes bounds the bitmap of directories that were met, to 64 MiB.
	maxInodes = 1 << 29
)

// superblock is what is needed of the first 96 bytes.
type superblock struct {
	inodes      uint32
	blockSize   uint32
	fragments   uint32
	compression uint16
	root        reference
	bytesUsed   int64
	inodeTable  int64
	directories int64
	fragTable   int64 // negative if there is none
}

// reference is where an inode is: bytes from the beginning of the inode table to its metadata block,
// shifted by 16, and bytes from the beginning of the uncompressed block.
type reference uint64

// Is reports whether the beginning of a file is that of a squashfs.
func Is(head []byte) bool { return len(head) >= len(magic) && string(head[:len(magic)]) == magic }

// Description is what a file system says of itself.
type Description struct {
	// Compression is the kernel's name of the method, such as gzip.
	Compression string
	// Inodes is the number of files and directories; files with several names count once.
	Inodes uint32
	// Bytes is the size of the file system, compressed.
	Bytes int64
}

// Image is a squashfs that is being read. It is for one goroutine.
type Image struct {
	r     io.ReaderAt
	super superblock
	data  unpacker
	meta  metadata
	frags fragments
	met   []uint64 // bitmap of the directories that were met, by inode number
	in    []byte   // a stored block
	out   []byte   // an unpacked block
}

// Open reads the superblock of a file system in a file of size bytes. maxWork is how many bytes may
// be unpacked; it ends images that have the same block unpacked again and again.
func Open(r io.ReaderAt, size, maxWork int64) (*Image, error) {
	var b [superblockSize]byte
	if err := readFull(r, b[:], 0, "superblock"); err != nil {
		return nil, err
	}
	if !Is(b[:]) {
		return nil, fault.New(fault.NoImage, "read the squashfs: its magic is missing")
	}
	s, err := parse(b[:], size)
	if err != nil {
		return nil, err
	}
	m := &Image{r: r, super: s, in: make([]byte, s.blockSize), out: make([]byte, s.blockSize)}
	m.data = unpacker{method: s.compression, left: maxWork}
	m.meta = metadata{image: m, cache: map[int64]*block{}}
	m.frags = fragments{table: cursor{meta: &m.meta}}
	return m, nil
}

func parse(b []byte, size int64) (superblock, error) {
	u16 := binary.LittleEndian.Uint16
	u32 := binary.LittleEndian.Uint32
	u64 := binary.LittleEndian.Uint64
	s := superblock{inodes: u32(b[4:]), blockSize: u32(b[12:]), fragments: u32(b[16:]), compression: u16(b[20:]), root: reference(u64(b[32:]))}
	if major, minor := u16(b[28:]), u16(b[30:]); major != 4 || minor != 0 {
		return s, fault.New(fault.Malformed, "read the squashfs's superblock: its version is %d.%d; only 4.0 is supported", major, minor)
	}
	if log := u16(b[22:]); log < minBlockLog || log > maxBlockLog || s.blockSize != 1<<log {
		return s, fault.New(fault.Malformed, "read the squashfs's superblock: its blocks have %d bytes, of which the logarithm would be %d; 4 KiB to 1 MiB are possible", s.blockSize, log)
	}
	if s.inodes > maxInodes {
		return s, fault.New(fault.TooLarge, "read the squashfs's superblock: it has %d inodes; at most %d are supported", s.inodes, maxInodes)
	}
	if used := u64(b[40:]); used > uint64(size) {
		return s, fault.New(fault.Truncated, "read the squashfs: it has %d bytes, but only %d are there", used, size)
	}
	s.bytesUsed = int64(u64(b[40:]))
	inodes, directories, frags := u64(b[64:]), u64(b[72:]), u64(b[80:])
	if inodes < superblockSize || inodes > directories || directories > uint64(s.bytesUsed) {
		return s, fault.New(fault.Malformed, "read the squashfs's superblock: its inodes are at byte %d and its directories at byte %d of %d", inodes, directories, s.bytesUsed)
	}
	s.inodeTable, s.directories, s.fragTable = int64(inodes), int64(directories), -1
	if s.fragments > 0 && frags != absent {
		// One 64-bit place for each metadata block of 512 fragments.
		need := (uint64(s.fragments) + fragmentsInBlock - 1) / fragmentsInBlock * 8
		if frags < superblockSize || frags > uint64(s.bytesUsed) || need > uint64(s.bytesUsed)-frags {
			return s, fault.New(fault.Malformed, "read the squashfs's superblock: the table of its %d fragments is at byte %d of %d", s.fragments, frags, s.bytesUsed)
		}
		s.fragTable = int64(frags)
	}
	return s, nil
}

// Describe says what the superblock says.
func (m *Image) Describe() Description {
	return Description{Compression: methodName(m.super.compression), Inodes: m.super.inodes, Bytes: m.super.bytesUsed}
}

// readStored reads n bytes of the file system into a buffer that has room for them.
func (m *Image) readStored(buf []byte, at, n int64, what string) ([]byte, error) {
	if n < 0 || n > int64(len(buf)) {
		return nil, fault.New(fault.Malformed, "read %s of the squashfs: it has %d bytes; %d are possible", what, n, len(buf))
	}
	if at < 0 || at > m.super.bytesUsed-n {
		return nil, fault.New(fault.Malformed, "read %s of the squashfs: its %d bytes begin at byte %d of %d", what, n, at, m.super.bytesUsed)
	}
	return buf[:n], readFull(m.r, buf[:n], at, what)
}

func readFull(r io.ReaderAt, b []byte, at int64, what string) error {
	n, err := r.ReadAt(b, at)
	switch {
	case n == len(b):
		return nil
	case errors.Is(err, io.EOF):
		return fault.New(fault.Truncated, "read %s of the squashfs at byte %d: the file ends", what, at)
	}
	return fault.New(fault.Read, "read %s of the squashfs at byte %d: %w", what, at, err)
}
