package main

import (
	"errors"
	"testing"

	"podstarter/unpacker/fault"
	"podstarter/unpacker/tarstream"
)

// small are bounds within which an image of the fuzzer ends soon.
var small = options{arch: "amd64", bounds: tarstream.Bounds{Bytes: 1 << 20, Entries: 500, Depth: 20, Target: 4096}}

// checkFuzzed: an image ends with a reason, and its stream is within the bounds.
func checkFuzzed(t *testing.T, image []byte) {
	var n counter
	err := unpackBytes(image, small, &n)
	if _, ok := errors.AsType[*fault.Error](err); err != nil && !ok {
		t.Errorf("no reason: %v", err)
	}
	// Each entry has a header, and perhaps another two of PAX with a path and a target.
	if n > 1<<20+500*(16<<10) {
		t.Errorf("%d bytes were written", n)
	}
}

func FuzzSIF(f *testing.F) {
	image := fixture(f, "indexed")
	s := newSIF(image)
	f.Add(s.bytes()[:2048])
	s.total = 1 << 40
	f.Add(s.bytes()[:2048])
	f.Fuzz(func(t *testing.T, head []byte) {
		// What the fuzzer makes is the beginning; the partition follows where it should be.
		b := make([]byte, partitionAt<<3)
		copy(b, head)
		checkFuzzed(t, append(b, image...))
	})
}

func FuzzSquashfs(f *testing.F) {
	for _, name := range []string{"gzip", "xz", "lz4", "zstd", "plain", "indexed", "nofragments"} {
		f.Add(fixture(f, name))
	}
	for _, tree := range hostile() {
		f.Add(tree.image())
	}
	f.Fuzz(checkFuzzed)
}
