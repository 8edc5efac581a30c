package squashfs

import (
	"bytes"
	"testing"
)

// TestCacheIsBounded: more metadata blocks than the cache has room for leave it full, and can be
// read again.
func TestCacheIsBounded(t *testing.T) {
	const blocks = 3*maxCached + 5
	stored := bytes.Repeat([]byte{1, 0x80, 'x'}, blocks)
	m := metadata{image: &Image{r: bytes.NewReader(stored), super: superblock{bytesUsed: int64(len(stored))}}, cache: map[int64]*block{}}
	for range 2 {
		for i := range int64(blocks) {
			b, err := m.at(i * 3)
			if err != nil || string(b.data) != "x" || b.next != (i+1)*3 {
				t.Fatalf("block %d: %v, %v", i, b, err)
			}
		}
	}
	if len(m.cache) != maxCached {
		t.Errorf("%d blocks are kept, want %d", len(m.cache), maxCached)
	}
}
