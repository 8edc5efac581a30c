// Package squashfstest writes squashfs images by hand, for tests: without compression, and with anything in them, also what
// no program makes.
package squashfstest

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

var le = binary.LittleEndian

// None is the number of a fragment, or of attributes, that are not there.
const None = 1<<32 - 1

// Image is what a squashfs consists of. Its metadata may have several blocks; inodes and listings are
// byte strings.
type Image struct {
	Inodes, Listings []byte
	Count            uint32 // of inodes
	Data             []byte
	Fragments        uint32
	FragTable        uint64 // none if zero
	Root             uint64 // reference of the root's inode
	BlockSize        uint32 // a power of two; 4096 if zero
}

// Bytes is the image.
func (i Image) Bytes() []byte {
	inodes, listings := blocks(i.Inodes), blocks(i.Listings)
	start := uint64(96 + len(i.Data))
	end := start + uint64(len(inodes)+len(listings))
	frag, block := i.FragTable, i.BlockSize
	if frag == 0 {
		frag = 1<<64 - 1
	}
	if block == 0 {
		block = 4096
	}
	head := Words("hsqs", i.Count, uint32(1700000000), block, i.Fragments, uint16(1), uint16(bits.TrailingZeros32(block)), uint16(0), uint16(1), uint16(4), uint16(0),
		i.Root, end, uint64(0), uint64(1<<64-1), start, start+uint64(len(inodes)), frag, uint64(1<<64-1))
	return bytes.Join([][]byte{head, i.Data, inodes, listings}, nil)
}

// Words joins numbers, little end first, and strings.
func Words(values ...any) []byte {
	var b []byte
	for _, v := range values {
		switch v := v.(type) {
		case uint16:
			b = le.AppendUint16(b, v)
		case uint32:
			b = le.AppendUint32(b, v)
		case uint64:
			b = le.AppendUint64(b, v)
		case string:
			b = append(b, v...)
		}
	}
	return b
}

// blocks cuts a table into metadata blocks.
func blocks(b []byte) (out []byte) {
	for len(b) > 0 {
		n := min(len(b), 8192)
		out = append(le.AppendUint16(out, uint16(n)|1<<15), b[:n]...)
		b = b[n:]
	}
	return out
}

// InodeHead is what inodes of all kinds begin with.
func InodeHead(kind uint16, number uint32) []byte {
	return Words(kind, uint16(0o755), uint16(0), uint16(0), uint32(1700000000), number)
}

// Dir is the inode of a directory, of 32 bytes, whose listing has size bytes.
func Dir(number uint32, at, size int) []byte {
	return append(InodeHead(1, number), Words(uint32(0), uint32(2), uint16(size+3), uint16(at), uint32(1))...)
}

// LargeDir is the same for a listing at the beginning of the table, of up to 4 GiB. The inode has 40 bytes.
func LargeDir(number uint32, size int) []byte {
	return append(InodeHead(8, number), Words(uint32(2), uint32(size+3), uint32(0), uint32(1), uint16(0), uint16(0), uint32(None))...)
}

// File is the inode of a file, of 32 bytes and its list of blocks.
func File(number, start, fragment, offset, size uint32, list ...uint32) []byte {
	b := append(InodeHead(2, number), Words(start, fragment, offset, size)...)
	for _, w := range list {
		b = le.AppendUint32(b, w)
	}
	return b
}

// LargeFile is the inode of a file of any size.
func LargeFile(number uint32, size uint64, list ...uint32) []byte {
	b := append(InodeHead(9, number), Words(uint64(0), size, uint64(0), uint32(1), uint32(None), uint32(0), uint32(None))...)
	for _, w := range list {
		b = le.AppendUint32(b, w)
	}
	return b
}

// Listing is a run of entries, of which there may be 256.
func Listing(entries ...[]byte) []byte {
	return append(Words(uint32(len(entries)-1), uint32(0), uint32(1)), bytes.Join(entries, nil)...)
}

// Entry is one of a listing: a name, and where its inode is in the table.
func Entry(offset uint16, text string) []byte {
	return Words(offset, uint16(0), uint16(1), uint16(len(text)-1), text)
}
