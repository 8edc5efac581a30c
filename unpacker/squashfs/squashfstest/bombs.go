package squashfstest

import "fmt"

// Zeros is an image with one file of that many zeros, which take no room in it.
func Zeros(size int64) []byte {
	const block = 1 << 20
	const at = 32
	list := Listing(Entry(at, "zeros"))
	return Image{
		Inodes: append(Dir(1, 0, len(list)), LargeFile(2, uint64(size), make([]uint32, (size+block-1)/block)...)...), Listings: list, Count: 2, BlockSize: block,
	}.Bytes()
}

// Names is an image with that many empty files in one directory. They are one, under many names.
func Names(count int) []byte {
	const at = 40
	const run = 256
	var list []byte
	for i := 0; i < count; i += run {
		n := min(run, count-i)
		list = append(list, Words(uint32(n-1), uint32(0), uint32(1))...)
		for j := range n {
			list = append(list, Entry(at, fmt.Sprintf("%07x", i+j))...)
		}
	}
	return Image{Inodes: append(LargeDir(1, len(list)), File(2, 0, None, 0, 0)...), Listings: list, Count: 2}.Bytes()
}

// Deep is an image of directories in directories.
func Deep(levels int) []byte {
	i := Image{Count: uint32(levels)}
	const block = 8192
	const stored = block + 2 // with its head
	for level := range levels {
		at, next := len(i.Listings), (level+1)*32
		list := append(Words(uint32(0), uint32(next/block*stored), uint32(1)), Entry(uint16(next%block), "d")...)
		i.Inodes = append(i.Inodes, append(InodeHead(1, uint32(level+1)), Words(uint32(at/block*stored), uint32(2), uint16(len(list)+3), uint16(at%block), uint32(1))...)...)
		i.Listings = append(i.Listings, list...)
	}
	return i.Bytes()
}
