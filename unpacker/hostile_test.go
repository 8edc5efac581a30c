package main

import (
	"bytes"
	"io"
	"runtime"
	"strings"
	"testing"

	"podstarter/unpacker/fault"
	"podstarter/unpacker/squashfs"
	"podstarter/unpacker/squashfs/squashfstest"
	"podstarter/unpacker/tarstream"
)

// fake is an image, and what is to be said of it.
type fake struct {
	squashfstest.Image
	whole []byte // instead
	want  fault.Reason
}

func (f fake) image() []byte {
	if f.whole != nil {
		return f.whole
	}
	return f.Bytes()
}

// with is an image whose root, of 32 bytes of inode, lists entries, with more inodes behind it.
func with(want fault.Reason, list []byte, more ...[]byte) fake {
	return fake{Image: squashfstest.Image{Inodes: append(squashfstest.Dir(1, 0, len(list)), bytes.Join(more, nil)...), Listings: list, Count: uint32(1 + len(more))}, want: want}
}

// hostile are images that no program makes.
func hostile() map[string]fake {
	h := map[string]fake{
		"one file": with("", squashfstest.Listing(squashfstest.Entry(32, "a")), squashfstest.File(2, 0, squashfstest.None, 0, 4096, 0)),
		"loop":     with(fault.Malformed, squashfstest.Listing(squashfstest.Entry(0, "a"))),
		"directory with two names": with(fault.Malformed, squashfstest.Listing(squashfstest.Entry(32, "a"), squashfstest.Entry(32, "b")),
			squashfstest.Dir(2, 0, 0)),
		"..":                     with(fault.Malformed, squashfstest.Listing(squashfstest.Entry(32, "..")), squashfstest.File(2, 0, squashfstest.None, 0, 0)),
		".":                      with(fault.Malformed, squashfstest.Listing(squashfstest.Entry(32, ".")), squashfstest.File(2, 0, squashfstest.None, 0, 0)),
		"slash":                  with(fault.Malformed, squashfstest.Listing(squashfstest.Entry(32, "../etc/x")), squashfstest.File(2, 0, squashfstest.None, 0, 0)),
		"NUL":                    with(fault.Malformed, squashfstest.Listing(squashfstest.Entry(32, "a\x00b")), squashfstest.File(2, 0, squashfstest.None, 0, 0)),
		"long name":              with(fault.Malformed, squashfstest.Listing(squashfstest.Entry(32, strings.Repeat("n", 256))), squashfstest.File(2, 0, squashfstest.None, 0, 0)),
		"inode outside":          with(fault.Malformed, squashfstest.Listing(squashfstest.Entry(8000, "a"))),
		"inode cut off":          with(fault.Malformed, squashfstest.Listing(squashfstest.Entry(32, "a")), squashfstest.InodeHead(2, 2)),
		"type 0":                 with(fault.Malformed, squashfstest.Listing(squashfstest.Entry(32, "a")), squashfstest.InodeHead(0, 2)),
		"type 15":                with(fault.Malformed, squashfstest.Listing(squashfstest.Entry(32, "a")), squashfstest.InodeHead(15, 2)),
		"list behind the end":    with(fault.Malformed, squashfstest.Listing(squashfstest.Entry(32, "a")), squashfstest.Dir(2, 0, 9000)),
		"list begins outside":    with(fault.Malformed, squashfstest.Listing(squashfstest.Entry(32, "a")), squashfstest.Dir(2, 8000, 10)),
		"entry cut off":          {Image: squashfstest.Image{Inodes: squashfstest.Dir(1, 0, 22), Listings: squashfstest.Listing(squashfstest.Entry(32, "abc")), Count: 1}, want: fault.Malformed},
		"number 0":               with(fault.Malformed, squashfstest.Listing(squashfstest.Entry(32, "a")), squashfstest.Dir(0, 0, 0)),
		"number too high":        with(fault.Malformed, squashfstest.Listing(squashfstest.Entry(32, "a")), squashfstest.Dir(9, 0, 0)),
		"300 in a row":           with(fault.Malformed, append(squashfstest.Words(uint32(299), uint32(0), uint32(1)), bytes.Repeat(squashfstest.Entry(32, "a"), 300)...), squashfstest.File(2, 0, squashfstest.None, 0, 0)),
		"block outside":          with(fault.Malformed, squashfstest.Listing(squashfstest.Entry(32, "a")), squashfstest.File(2, 1<<31, squashfstest.None, 0, 10, 10|1<<24)),
		"block too long":         with(fault.Malformed, squashfstest.Listing(squashfstest.Entry(32, "a")), squashfstest.File(2, 96, squashfstest.None, 0, 10, 5000|1<<24)),
		"block of another size":  with(fault.Malformed, squashfstest.Listing(squashfstest.Entry(32, "a")), squashfstest.File(2, 96, squashfstest.None, 0, 10, 9|1<<24)),
		"blocks missing":         with(fault.Malformed, squashfstest.Listing(squashfstest.Entry(32, "a")), squashfstest.File(2, 0, squashfstest.None, 0, 1<<30, 0)),
		"no such fragment":       with(fault.Malformed, squashfstest.Listing(squashfstest.Entry(32, "a")), squashfstest.File(2, 0, 3, 0, 10)),
		"link without target":    with(fault.Malformed, squashfstest.Listing(squashfstest.Entry(32, "a")), append(squashfstest.InodeHead(3, 2), squashfstest.Words(uint32(1), uint32(0))...)),
		"NUL in a target":        with(fault.Malformed, squashfstest.Listing(squashfstest.Entry(32, "a")), append(squashfstest.InodeHead(3, 2), squashfstest.Words(uint32(1), uint32(3), "a\x00b")...)),
		"long target":            with(fault.TooLarge, squashfstest.Listing(squashfstest.Entry(32, "a")), append(squashfstest.InodeHead(3, 2), squashfstest.Words(uint32(1), uint32(4097), strings.Repeat("t", 4097))...)),
		"endless target":         with(fault.TooLarge, squashfstest.Listing(squashfstest.Entry(32, "a")), append(squashfstest.InodeHead(3, 2), squashfstest.Words(uint32(1), uint32(squashfstest.None))...)),
		"root is a file":         {Image: squashfstest.Image{Inodes: squashfstest.File(1, 0, squashfstest.None, 0, 0), Count: 1}, want: fault.Malformed},
		"root outside":           {Image: squashfstest.Image{Inodes: squashfstest.Dir(1, 0, 0), Count: 1, Root: 1 << 40}, want: fault.Malformed},
		"2^32 inodes":            {Image: squashfstest.Image{Inodes: squashfstest.Dir(1, 0, 0), Count: squashfstest.None}, want: fault.TooLarge},
		"fragments outside":      {Image: squashfstest.Image{Inodes: squashfstest.Dir(1, 0, 0), Count: 1, Fragments: 1, FragTable: 1 << 50}, want: fault.Malformed},
		"endless fragments":      {Image: squashfstest.Image{Inodes: squashfstest.Dir(1, 0, 0), Count: 1, Fragments: squashfstest.None, FragTable: 100}, want: fault.Malformed},
		"file of 8 EiB":          with(fault.TooLarge, squashfstest.Listing(squashfstest.Entry(32, "a")), append(squashfstest.InodeHead(9, 2), squashfstest.Words(uint64(0), uint64(1<<63-1), uint64(0), uint32(1), uint32(squashfstest.None), uint32(0), uint32(squashfstest.None))...)),
		"file of -1":             with(fault.TooLarge, squashfstest.Listing(squashfstest.Entry(32, "a")), append(squashfstest.InodeHead(9, 2), squashfstest.Words(uint64(0), uint64(1<<64-1), uint64(0), uint32(1), uint32(squashfstest.None), uint32(0), uint32(squashfstest.None))...)),
		"one file by many names": manyNames(),
		"deep tree":              {whole: squashfstest.Deep(300), want: fault.TooLarge},
		"extended directory": with("", squashfstest.Listing(squashfstest.Entry(32, "a")), append(append(squashfstest.InodeHead(8, 2), squashfstest.Words(uint32(2), uint32(12+9+3), uint32(0), uint32(1), uint16(0), uint16(21), uint32(squashfstest.None))...),
			squashfstest.File(3, 0, squashfstest.None, 0, 0)...)),
	}
	extended := h["extended directory"]
	extended.Listings = append(extended.Listings, squashfstest.Listing(squashfstest.Entry(32+40, "b"))...)
	extended.Count = 3
	h["extended directory"] = extended
	return h
}

// manyNames has the same file of 1 MiB of zeros under 1,100 names.
func manyNames() fake {
	var list []byte
	for i := range 1100 {
		list = append(list, squashfstest.Listing(squashfstest.Entry(32, "n"+strings.Repeat("x", i%20)))...)
	}
	return with(fault.TooLarge, list, squashfstest.File(2, 0, squashfstest.None, 0, 1<<20, make([]uint32, 256)...))
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
	zeros := with("", squashfstest.Listing(squashfstest.Entry(32, "a")), squashfstest.File(2, 0, squashfstest.None, 0, 1<<30, make([]uint32, 1<<18)...))
	var list []byte
	for range 16 { // a listing of a plain inode has less than 64 KiB
		var entries [][]byte
		for range 256 {
			entries = append(entries, squashfstest.Entry(32, "abc"))
		}
		list = append(list, squashfstest.Listing(entries...)...)
	}
	many := with("", list, squashfstest.File(2, 0, squashfstest.None, 0, 0))
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
