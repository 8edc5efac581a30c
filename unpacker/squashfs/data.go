package squashfs

import (
	"encoding/binary"
	"io"

	"podstarter/unpacker/fault"
)

const (
	// blockAsIs marks, in the size of a block, one that is not compressed.
	blockAsIs = 1 << 24
	// fragmentsInBlock is how many entries of 16 bytes a metadata block of the fragment table has.
	fragmentsInBlock = metadataSize / 16
	// keptFragments bounds the cache of fragment blocks, each of up to 1 MiB.
	keptFragments = 8
)

// zeros are what a block that is not stored has.
var zeros [64 << 10]byte

// content writes a file.
func (m *Image) content(n inode, w io.Writer) error {
	size := uint64(m.super.blockSize)
	at, left := int64(n.start), n.size
	blocks := left / size
	if n.fragment == noFragment && left%size > 0 {
		blocks++
	}
	for ; blocks > 0; blocks-- {
		var word [4]byte
		if err := n.rest.read(word[:]); err != nil {
			return err
		}
		want := min(left, size)
		stored, err := m.dataBlock(w, binary.LittleEndian.Uint32(word[:]), at, want)
		if err != nil {
			return err
		}
		at += stored
		left -= want
	}
	if left == 0 {
		return nil
	}
	frag, err := m.fragment(n.fragment)
	if err != nil {
		return err
	}
	if uint64(n.offset)+left > uint64(len(frag)) {
		return fault.New(fault.Malformed, "read the end of a file in the squashfs: bytes %d to %d of a fragment block that has %d", n.offset, uint64(n.offset)+left, len(frag))
	}
	_, err = w.Write(frag[n.offset : uint64(n.offset)+left])
	return err
}

// dataBlock writes one block, which must have want bytes, and returns how many are stored of it.
func (m *Image) dataBlock(w io.Writer, word uint32, at int64, want uint64) (int64, error) {
	stored := int64(word &^ blockAsIs)
	if stored == 0 {
		for want > 0 {
			n, err := w.Write(zeros[:min(want, uint64(len(zeros)))])
			if err != nil {
				return 0, err
			}
			want -= uint64(n)
		}
		return 0, nil
	}
	data, err := m.stored(m.out, word, at, "a block of a file")
	if err != nil {
		return 0, err
	}
	if uint64(len(data)) != want {
		return 0, fault.New(fault.Malformed, "read a block of a file in the squashfs: it has %d bytes; it must have %d", len(data), want)
	}
	_, err = w.Write(data)
	return stored, err
}

// stored reads a data or fragment block; what it returns may be in out or in m.in.
func (m *Image) stored(out []byte, word uint32, at int64, what string) ([]byte, error) {
	data, err := m.readStored(m.in, at, int64(word&^blockAsIs), what)
	if err != nil || word&blockAsIs != 0 {
		return data, err
	}
	return m.data.block(out, data, what)
}

// fragments keeps the fragment blocks that were used last: the ends of files that lie side by side
// are in the same block.
type fragments struct {
	table cursor
	kept  []fragment // the one used last is first
}

type fragment struct {
	index uint32
	data  []byte
	room  []byte
}

// fragment is the contents of a fragment block, valid until the next call.
func (m *Image) fragment(index uint32) ([]byte, error) {
	f := &m.frags
	for i, k := range f.kept {
		if k.index == index {
			copy(f.kept[1:i+1], f.kept[:i])
			f.kept[0] = k
			return k.data, nil
		}
	}
	if m.super.fragTable < 0 || index >= m.super.fragments {
		return nil, fault.New(fault.Malformed, "read the end of a file in the squashfs: fragment %d of %d is referred to", index, m.super.fragments)
	}
	var b [16]byte
	place, err := m.readStored(b[:8], m.super.fragTable+int64(index/fragmentsInBlock)*8, 8, "the table of fragments")
	if err != nil {
		return nil, err
	}
	pos := binary.LittleEndian.Uint64(place)
	if pos >= uint64(m.super.bytesUsed) {
		return nil, fault.New(fault.Malformed, "read the table of fragments of the squashfs: a part of it is said to be at byte %d of %d", pos, m.super.bytesUsed)
	}
	f.table.end = m.super.bytesUsed
	f.table.seek(int64(pos), int(index%fragmentsInBlock)*16)
	if err := f.table.read(b[:]); err != nil {
		return nil, err
	}
	next := fragment{index: index}
	if len(f.kept) == keptFragments {
		next.room = f.kept[keptFragments-1].room
		f.kept = f.kept[:keptFragments-1]
	} else {
		next.room = make([]byte, m.super.blockSize)
	}
	data, err := m.stored(next.room, binary.LittleEndian.Uint32(b[8:]), int64(binary.LittleEndian.Uint64(b[:])), "a fragment block")
	if err != nil {
		return nil, err
	}
	next.data = next.room[:copy(next.room, data)]
	f.kept = append([]fragment{next}, f.kept...)
	return next.data, nil
}
