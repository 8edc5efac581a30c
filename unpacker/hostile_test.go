package main

import (
	"bytes"
	"io"
	"runtime"
	"strings"
	"testing"

	"podstarter/unpacker/fault"
	"podstarter/unpacker/squashfs"
	"podstarter/unpacker/tarstream"
)

// fake is a squashfs that is written by hand, without compression, so that it can say
// anything. Its metadata may have several blocks; inodes and listings are byte strings.
type fake struct {
	inodes, listings []byte
	count            uint32
	data             []byte
	fragments        uint32
	fragTable        uint64
	root             uint64
	want             fault.Reason
}

func words(values ...any) []byte {
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

func (f fake) image() []byte {
	inodes, listings := blocks(f.inodes), blocks(f.listings)
	start := uint64(96 + len(f.data))
	end := start + uint64(len(inodes)+len(listings))
	frag := f.fragTable
	if frag == 0 {
		frag = 1<<64 - 1
	}
	head := words("hsqs", f.count, uint32(1700000000), uint32(4096), f.fragments, uint16(1), uint16(12), uint16(0), uint16(1), uint16(4), uint16(0),
		f.root, end, uint64(0), uint64(1<<64-1), start, start+uint64(len(inodes)), frag, uint64(1<<64-1))
	return bytes.Join([][]byte{head, f.data, inodes, listings}, nil)
}

func inodeHead(kind uint16, number uint32) []byte {
	return words(kind, uint16(0o755), uint16(0), uint16(0), uint32(1700000000), number)
}

// dirInode is a directory whose listing has these bytes.
func dirInode(number uint32, at, size int) []byte {
	return append(inodeHead(1, number), words(uint32(0), uint32(2), uint16(size+3), uint16(at), uint32(1))...)
}

// fileInode is a file of 32 bytes of inode, and its list of blocks.
func fileInode(number, start, fragment, offset, size uint32, list ...uint32) []byte {
	b := append(inodeHead(2, number), words(start, fragment, offset, size)...)
	for _, w := range list {
		b = le.AppendUint32(b, w)
	}
	return b
}

func listing(entries ...[]byte) []byte {
	return append(words(uint32(len(entries)-1), uint32(0), uint32(1)), bytes.Join(entries, nil)...)
}

func name(offset uint16, text string) []byte {
	return words(offset, uint16(0), uint16(1), uint16(len(text)-1), text)
}

// with is an image whose root, of 32 bytes of inode, lists entries, with more inodes behind it.
func with(want fault.Reason, list []byte, more ...[]byte) fake {
	return fake{inodes: append(dirInode(1, 0, len(list)), bytes.Join(more, nil)...), listings: list, count: uint32(1 + len(more)), want: want}
}

const none = 1<<32 - 1

// hostile are images that no program makes.
func hostile() map[string]fake {
	h := map[string]fake{
		"one file": with("", listing(name(32, "a")), fileInode(2, 0, none, 0, 4096, 0)),
		"loop":     with(fault.Malformed, listing(name(0, "a"))),
		"directory with two names": with(fault.Malformed, listing(name(32, "a"), name(32, "b")),
			dirInode(2, 0, 0)),
		"..":                     with(fault.Malformed, listing(name(32, "..")), fileInode(2, 0, none, 0, 0)),
		".":                      with(fault.Malformed, listing(name(32, ".")), fileInode(2, 0, none, 0, 0)),
		"slash":                  with(fault.Malformed, listing(name(32, "../etc/x")), fileInode(2, 0, none, 0, 0)),
		"NUL":                    with(fault.Malformed, listing(name(32, "a\x00b")), fileInode(2, 0, none, 0, 0)),
		"long name":              with(fault.Malformed, listing(name(32, strings.Repeat("n", 256))), fileInode(2, 0, none, 0, 0)),
		"inode outside":          with(fault.Malformed, listing(name(8000, "a"))),
		"inode cut off":          with(fault.Malformed, listing(name(32, "a")), inodeHead(2, 2)),
		"type 0":                 with(fault.Malformed, listing(name(32, "a")), inodeHead(0, 2)),
		"type 15":                with(fault.Malformed, listing(name(32, "a")), inodeHead(15, 2)),
		"list behind the end":    with(fault.Malformed, listing(name(32, "a")), dirInode(2, 0, 9000)),
		"list begins outside":    with(fault.Malformed, listing(name(32, "a")), dirInode(2, 8000, 10)),
		"entry cut off":          {inodes: dirInode(1, 0, 22), listings: listing(name(32, "abc")), count: 1, want: fault.Malformed},
		"number 0":               with(fault.Malformed, listing(name(32, "a")), dirInode(0, 0, 0)),
		"number too high":        with(fault.Malformed, listing(name(32, "a")), dirInode(9, 0, 0)),
		"300 in a row":           with(fault.Malformed, append(words(uint32(299), uint32(0), uint32(1)), bytes.Repeat(name(32, "a"), 300)...), fileInode(2, 0, none, 0, 0)),
		"block outside":          with(fault.Malformed, listing(name(32, "a")), fileInode(2, 1<<31, none, 0, 10, 10|1<<24)),
		"block too long":         with(fault.Malformed, listing(name(32, "a")), fileInode(2, 96, none, 0, 10, 5000|1<<24)),
		"block of another size":  with(fault.Malformed, listing(name(32, "a")), fileInode(2, 96, none, 0, 10, 9|1<<24)),
		"blocks missing":         with(fault.Malformed, listing(name(32, "a")), fileInode(2, 0, none, 0, 1<<30, 0)),
		"no such fragment":       with(fault.Malformed, listing(name(32, "a")), fileInode(2, 0, 3, 0, 10)),
		"link without target":    with(fault.Malformed, listing(name(32, "a")), append(inodeHead(3, 2), words(uint32(1), uint32(0))...)),
		"NUL in a target":        with(fault.Malformed, listing(name(32, "a")), append(inodeHead(3, 2), words(uint32(1), uint32(3), "a\x00b")...)),
		"long target":            with(fault.TooLarge, listing(name(32, "a")), append(inodeHead(3, 2), words(uint32(1), uint32(4097), strings.Repeat("t", 4097))...)),
		"endless target":         with(fault.TooLarge, listing(name(32, "a")), append(inodeHead(3, 2), words(uint32(1), uint32(none))...)),
		"root is a file":         {inodes: fileInode(1, 0, none, 0, 0), count: 1, want: fault.Malformed},
		"root outside":           {inodes: dirInode(1, 0, 0), count: 1, root: 1 << 40, want: fault.Malformed},
		"2^32 inodes":            {inodes: dirInode(1, 0, 0), count: none, want: fault.TooLarge},
		"fragments outside":      {inodes: dirInode(1, 0, 0), count: 1, fragments: 1, fragTable: 1 << 50, want: fault.Malformed},
		"endless fragments":      {inodes: dirInode(1, 0, 0), count: 1, fragments: none, fragTable: 100, want: fault.Malformed},
		"file of 8 EiB":          with(fault.TooLarge, listing(name(32, "a")), append(inodeHead(9, 2), words(uint64(0), uint64(1<<63-1), uint64(0), uint32(1), uint32(none), uint32(0), uint32(none))...)),
		"file of -1":             with(fault.TooLarge, listing(name(32, "a")), append(inodeHead(9, 2), words(uint64(0), uint64(1<<64-1), uint64(0), uint32(1), uint32(none), uint32(0), uint32(none))...)),
		"one file by many names": manyNames(),
		"deep tree":              deep(300),
		"extended directory": with("", listing(name(32, "a")), append(append(inodeHead(8, 2), words(uint32(2), uint32(12+9+3), uint32(0), uint32(1), uint16(0), uint16(21), uint32(none))...),
			fileInode(3, 0, none, 0, 0)...)),
	}
	extended := h["extended directory"]
	extended.listings = append(extended.listings, listing(name(32+40, "b"))...)
	extended.count = 3
	h["extended directory"] = extended
	return h
}

// manyNames has the same file of 1 MiB of zeros under 1,100 names.
func manyNames() fake {
	var list []byte
	for i := range 1100 {
		list = append(list, listing(name(32, "n"+strings.Repeat("x", i%20)))...)
	}
	return with(fault.TooLarge, list, fileInode(2, 0, none, 0, 1<<20, make([]uint32, 256)...))
}

// deep has directories in directories.
func deep(levels int) fake {
	f := fake{count: uint32(levels), want: fault.TooLarge}
	for i := range levels {
		at := len(f.listings)
		next := (i + 1) * 32
		list := append(words(uint32(0), uint32(next/8192*8194), uint32(1)), name(uint16(next%8192), "d")...)
		f.inodes = append(f.inodes, append(inodeHead(1, uint32(i+1)), words(uint32(at/8192*8194), uint32(2), uint16(len(list)+3), uint16(at%8192), uint32(1))...)...)
		f.listings = append(f.listings, list...)
	}
	return f
}

func TestHostile(t *testing.T) {
	for name, tt := range hostile() {
		t.Run(name, func(t *testing.T) {
			err := unpackBytes(tt.image(), usual, io.Discard)
			if got := reason(err); got != tt.want {
				t.Errorf("%q, want %q: %v", got, tt.want, err)
			}
		})
	}
}

// TestBombMemory: 1 GiB of zeros, and 4,096 entries, take no memory that grows with them.
func TestBombMemory(t *testing.T) {
	zeros := with("", listing(name(32, "a")), fileInode(2, 0, none, 0, 1<<30, make([]uint32, 1<<18)...))
	var list []byte
	for range 16 { // a listing of a plain inode has less than 64 KiB
		var entries [][]byte
		for range 256 {
			entries = append(entries, name(32, "abc"))
		}
		list = append(list, listing(entries...)...)
	}
	many := with("", list, fileInode(2, 0, none, 0, 0))
	for what, f := range map[string]fake{"zeros": zeros, "entries": many} {
		var before, after runtime.MemStats
		image := f.image()
		runtime.GC()
		runtime.ReadMemStats(&before)
		o := usual
		o.bounds = tarstream.Bounds{Bytes: 8 << 30, Entries: 10_000_000, Depth: 10, Target: 100}
		if err := unpackBytes(image, o, io.Discard); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 16<<20 {
			t.Errorf("%s: %d bytes of memory are held", what, grown)
		}
	}
}

// TestWork: what is unpacked is bounded, too, not only what is written.
func TestWork(t *testing.T) {
	image := fixture(t, "gzip")
	for work, want := range map[int64]fault.Reason{100: fault.TooLarge, 1 << 20: ""} {
		m, err := squashfs.Open(bytes.NewReader(image), int64(len(image)), work)
		if err != nil {
			t.Fatal(err)
		}
		if got := reason(m.Walk(tarstream.New(io.Discard, usual.bounds))); got != want {
			t.Errorf("%d bytes: %q, want %q", work, got, want)
		}
	}
}
