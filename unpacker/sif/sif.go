// Package sif finds the file system in a Singularity Image Format file.
//
// It does not use github.com/sylabs/sif: that allocates as many descriptors as the file's header
// claims to have, so 8 bytes of a hostile file end the program or take all memory. What is needed
// here is a fixed header and a table of fixed entries.
package sif

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"podstarter/unpacker/fault"
)

// Layout of version 01, all little-endian and without padding between fields. The file begins with
// 32 bytes of a launch script, then come magic (10), version (3), architecture (3), ID (16),
// and eight 64-bit numbers: times of creation and change, free descriptors, all descriptors,
// offset and size of their table, offset and size of the data.
const (
	magic          = "SIF_MAGIC\x00"
	magicAt        = 32
	versionAt      = 42
	version        = "01\x00"
	archAt         = 45
	totalAt        = 88
	tableAt        = 96
	headerSize     = 128
	descriptorSize = 585
	// maxDescriptors bounds the table. Tools that write SIF make 48.
	maxDescriptors = 4096
)

// Layout of a descriptor: type (4), used (1), ID, group, link (4 each), offset, size (8 each),
// size with padding, times, owner, name; at extraAt, if it is a partition, are file system (4),
// kind (4) and architecture (3).
const (
	usedAt      = 4
	offsetAt    = 17
	sizeAt      = 25
	extraAt     = 201
	isPartition = 0x4004
	primary     = 2
)

// File systems of a partition.
const (
	squashfs          = 1
	ext3              = 2
	encryptedSquashfs = 5
)

// architectures are Go's names of the codes in the header.
var architectures = map[string]string{
	"01": "386", "02": "amd64", "03": "arm", "04": "arm64", "05": "ppc64", "06": "ppc64le", "07": "mips", "08": "mipsle",
	"09": "mips64", "10": "mips64le", "11": "s390x", "12": "riscv64",
}

// Partition is the primary system partition: a squashfs.
type Partition struct {
	// Offset and Size are in bytes; they lie within the file.
	Offset, Size int64
	// Architecture is Go's name of it, such as amd64; empty if the SIF does not say.
	Architecture string
}

// Is reports whether the beginning of a file is that of a SIF.
func Is(head []byte) bool {
	return len(head) >= versionAt && bytes.Equal(head[magicAt:versionAt], []byte(magic))
}

// Find finds the primary system partition in a file of size bytes.
func Find(r io.ReaderAt, size int64) (Partition, error) {
	var header [headerSize]byte
	if err := read(r, header[:], 0, "header"); err != nil {
		return Partition{}, err
	}
	if !Is(header[:]) {
		return Partition{}, fault.New(fault.NoImage, "read the SIF's header: its magic is missing")
	}
	if got := string(header[versionAt:archAt]); got != version {
		return Partition{}, fault.New(fault.Malformed, "read the SIF's header: its version is %q; only 01 is supported", got)
	}
	total := int64(binary.LittleEndian.Uint64(header[totalAt:]))
	table := int64(binary.LittleEndian.Uint64(header[tableAt:]))
	if total < 0 || total > maxDescriptors {
		return Partition{}, fault.New(fault.Malformed, "read the SIF's header: it says that there are %d descriptors; at most %d are supported", total, maxDescriptors)
	}
	if table < headerSize {
		return Partition{}, fault.New(fault.Malformed, "read the SIF's header: its descriptors begin at byte %d, inside the header", table)
	}
	if table > size-total*descriptorSize {
		return Partition{}, fault.New(fault.Truncated, "read the SIF's %d descriptors from byte %d on: the file has only %d bytes", total, table, size)
	}
	for i := range total {
		var d [descriptorSize]byte
		if err := read(r, d[:], table+i*descriptorSize, "descriptors"); err != nil {
			return Partition{}, err
		}
		if d[usedAt] == 0 || number(d[:]) != isPartition || number(d[extraAt+4:]) != primary {
			continue
		}
		return partition(d[:], header[archAt:archAt+3], size)
	}
	return Partition{}, fault.New(fault.NoImage, "look for the primary system partition in the SIF: none of its %d descriptors is one", total)
}

// partition reads the descriptor of the primary system partition.
func partition(d, arch []byte, size int64) (Partition, error) {
	switch kind := number(d[extraAt:]); kind {
	case squashfs:
	case encryptedSquashfs:
		return Partition{}, fault.New(fault.Encrypted, "read the SIF's primary system partition: it is encrypted")
	case ext3:
		return Partition{}, fault.New(fault.Ext3, "read the SIF's primary system partition: it is ext3, not squashfs")
	default:
		return Partition{}, fault.New(fault.Ext3, "read the SIF's primary system partition: its file system is of type %d, not squashfs", kind)
	}
	p := Partition{Offset: int64(binary.LittleEndian.Uint64(d[offsetAt:])), Size: int64(binary.LittleEndian.Uint64(d[sizeAt:]))}
	if p.Offset < headerSize || p.Size < 0 {
		return Partition{}, fault.New(fault.Malformed, "read the SIF's primary system partition: it has %d bytes from byte %d on", p.Size, p.Offset)
	}
	if p.Offset > size || p.Size > size-p.Offset {
		return Partition{}, fault.New(fault.Truncated, "read the SIF's primary system partition of %d bytes from byte %d on: the file has only %d bytes", p.Size, p.Offset, size)
	}
	// The partition is what runs; the header repeats what it says.
	for _, code := range [][]byte{d[extraAt+8 : extraAt+11], arch} {
		if name, ok := architectures[string(bytes.TrimRight(code, "\x00"))]; ok && p.Architecture == "" {
			p.Architecture = name
		}
	}
	return p, nil
}

func number(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }

func read(r io.ReaderAt, b []byte, at int64, what string) error {
	_, err := r.ReadAt(b, at)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF):
		return fault.New(fault.Truncated, "read the SIF's %s: the file ends", what)
	}
	return fault.New(fault.Read, "read the SIF's %s: %w", what, err)
}
