package squashfs

import (
	"encoding/binary"

	"podstarter/unpacker/fault"
)

const (
	// metadataSize is the most that a metadata block has, unpacked.
	metadataSize = 8 << 10
	// storedAsIs marks a metadata block that is not compressed.
	storedAsIs = 1 << 15
	// maxCached bounds the cache of metadata blocks, to 2 MiB.
	maxCached = 256
)

// block is an unpacked metadata block. It does not change.
type block struct {
	data []byte
	next int64 // where the following block begins
}

// metadata reads metadata blocks and keeps the last.
type metadata struct {
	image *Image
	cache map[int64]*block
	order [maxCached]int64 // of the blocks in the cache, by age
	turn  int
	in    [metadataSize]byte
	out   [metadataSize]byte
}

// at is the block that begins at a byte of the file system.
func (m *metadata) at(pos int64) (*block, error) {
	if b := m.cache[pos]; b != nil {
		return b, nil
	}
	head, err := m.image.readStored(m.in[:2], pos, 2, "the head of a metadata block")
	if err != nil {
		return nil, err
	}
	head16 := binary.LittleEndian.Uint16(head)
	n := int64(head16 &^ storedAsIs)
	data, err := m.image.readStored(m.in[:], pos+2, n, "a metadata block")
	if err == nil && head16&storedAsIs == 0 {
		data, err = m.image.data.block(m.out[:], data, "a metadata block")
	}
	if err != nil {
		return nil, err
	}
	if len(data) == 0 {
		return nil, fault.New(fault.Malformed, "read a metadata block of the squashfs at byte %d: it is empty", pos)
	}
	b := &block{data: append([]byte(nil), data...), next: pos + 2 + n}
	if len(m.cache) == maxCached {
		delete(m.cache, m.order[m.turn])
	}
	m.cache[pos], m.order[m.turn] = b, pos
	m.turn = (m.turn + 1) % maxCached
	return b, nil
}

// cursor reads on from a place in the metadata. A copy of it reads on from the same place.
type cursor struct {
	meta *metadata
	end  int64 // no block begins here or later
	pos  int64 // of the block, if it is not read yet
	skip int   // bytes of it that are left out then
	b    *block
	rest []byte
}

// seek places the cursor at a byte of an unpacked block.
func (c *cursor) seek(pos int64, skip int) { c.pos, c.skip, c.b, c.rest = pos, skip, nil, nil }

// read fills p.
func (c *cursor) read(p []byte) error {
	for len(p) > 0 {
		if len(c.rest) == 0 {
			if err := c.advance(); err != nil {
				return err
			}
		}
		n := copy(p, c.rest)
		p, c.rest = p[n:], c.rest[n:]
	}
	return nil
}

func (c *cursor) advance() error {
	if c.b != nil {
		c.pos = c.b.next
	}
	if c.pos >= c.end {
		return fault.New(fault.Malformed, "read metadata of the squashfs: a list goes on behind the end of its table, byte %d", c.end)
	}
	b, err := c.meta.at(c.pos)
	if err != nil {
		return err
	}
	if c.skip >= len(b.data) {
		return fault.New(fault.Malformed, "read metadata of the squashfs: byte %d of a block with only %d bytes is referred to", c.skip, len(b.data))
	}
	c.b, c.rest, c.skip = b, b.data[c.skip:], 0
	return nil
}
