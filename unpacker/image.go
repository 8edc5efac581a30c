package main

import (
	"errors"
	"io"
	"math"
	"os"

	"podstarter/unpacker/fault"
	"podstarter/unpacker/layers"
	"podstarter/unpacker/sif"
	"podstarter/unpacker/squashfs"
	"podstarter/unpacker/tarstream"
	"podstarter/unpacker/tree"
)

// stream writes all entries of the image, and says on stderr how far it is.
func stream(o options, size int64, out, stderr io.Writer) error {
	w := tarstream.New(out, o.bounds)
	var of int64
	var walk func() error
	switch {
	case o.tree:
		walk = func() error { return tree.Walk(o.fd, w) }
	case o.layers > 0:
		walk = func() error {
			return layers.Walk(os.NewFile(uintptr(o.fd), "layers"), o.layers, work(o.bounds), w)
		}
	default:
		image, _, err := open(os.NewFile(uintptr(o.fd), "image"), size, o)
		if err != nil {
			return err
		}
		of = int64(image.Describe().Inodes)
		walk = func() error { return image.Walk(w) }
	}
	defer tell(w, of, o.progress, stderr)()
	if err := walk(); err != nil {
		return err
	}
	return w.Close()
}

// headSize is enough of a file to tell what it is.
const headSize = 64

// open finds the squashfs in a file.
func open(r io.ReaderAt, size int64, o options) (*squashfs.Image, sif.Partition, error) {
	head := make([]byte, headSize)
	n, err := r.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, sif.Partition{}, fault.New(fault.Read, "read the beginning of the image: %w", err)
	}
	p := sif.Partition{Size: size}
	switch head = head[:n]; {
	case sif.Is(head):
		if p, err = sif.Find(r, size); err != nil {
			return nil, p, err
		}
		if o.arch != "" && p.Architecture != "" && p.Architecture != o.arch {
			return nil, p, fault.New(fault.Architecture, "read the SIF's header: the image is for %s, and this machine is %s", p.Architecture, o.arch)
		}
	case !squashfs.Is(head):
		return nil, p, fault.New(fault.NoImage, "read the beginning of the image: it is neither a SIF nor a squashfs")
	}
	image, err := squashfs.Open(io.NewSectionReader(r, p.Offset, p.Size), p.Size, work(o.bounds))
	return image, p, err
}

// work is how many bytes may be unpacked from an image within bounds: its files, and for each entry
// a part of the metadata; twice, because caches are small. It keeps a small image from taking days.
func work(b tarstream.Bounds) int64 {
	const least, perEntry = 1 << 30, 1 << 10
	if b.Bytes > math.MaxInt64/8 || b.Entries > math.MaxInt64/8/perEntry {
		return math.MaxInt64
	}
	return least + 2*(b.Bytes+b.Entries*perEntry)
}

// description is what -describe prints.
type description struct {
	// Format is sif or squashfs.
	Format string `json:"format"`
	// Architecture is Go's name of it; empty if the image does not say.
	Architecture string `json:"architecture,omitempty"`
	// Compression is the kernel's name of the method.
	Compression string `json:"compression"`
	// PartitionBytes is the size of the file system, compressed.
	PartitionBytes int64 `json:"partition_bytes"`
	// Inodes is the number of files and directories that the image says it has.
	Inodes uint32 `json:"inodes"`
}

// describe reads only the headers. What the files have unpacked is nowhere in them.
func describe(o options, size int64) (description, error) {
	if o.tree {
		return description{}, fault.New(fault.NoImage, "describe the image: it is a directory; only a SIF or a squashfs can be described")
	}
	image, p, err := open(os.NewFile(uintptr(o.fd), "image"), size, o)
	if err != nil {
		return description{}, err
	}
	d := image.Describe()
	format := "squashfs"
	if p.Offset > 0 {
		format = "sif"
	}
	return description{format, p.Architecture, d.Compression, d.Bytes, d.Inodes}, nil
}
