package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// ballast fills the free memory with the page cache of a file that is one long
// hole, so that whoever needs memory gets it at once. A virtual machine may return
// free memory to its host and then get it back page by page: writing a file costs
// five times as much there as in pages that the kernel takes from its cache, and
// that affects now one starter and now the other.
type ballast struct {
	file *os.File
	read int64
}

// spared is how much stays free: the kernel begins to look for more long before all
// is gone.
const spared = 1 << 30

// newBallast makes the file in the directory for temporary files. If that is in
// memory, there is no cache to fill, and no effect.
func newBallast() (*ballast, error) {
	f, err := os.CreateTemp("", "ballast-")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(f.Name())
	return &ballast{file: f}, nil
}

// fill continues to read: pages that are read a second time count as in use, and a
// kubelet that sees many of them evicts pods.
func (b *ballast) fill() error {
	free, err := freeMemory()
	if err != nil {
		return err
	}
	n := free - spared
	if n <= 0 {
		return nil
	}
	if err := b.file.Truncate(b.read + n); err != nil {
		return fmt.Errorf("making a hole of %d bytes: %w", b.read+n, err)
	}
	done, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, io.NewSectionReader(b.file, b.read, n), make([]byte, 1<<20))
	b.read += done
	return err
}

func (b *ballast) close() { _ = b.file.Close() }

// freeMemory is the unused memory, in bytes (proc_meminfo(5)).
func freeMemory() (int64, error) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "MemFree:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("no MemFree in /proc/meminfo")
}
