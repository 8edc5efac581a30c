package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// ballast takes the memory that is free, in a way that gives it back to whoever
// needs it: as page cache of a file that is one long hole. A virtual machine may
// hand free memory back to its host, and then gets it anew page by page: writing a
// file costs five times as much there as in pages that the kernel takes from its
// cache, now to one starter and now to the other.
type ballast struct {
	file *os.File
	read int64
}

// spared is what is left free: the kernel begins to look for more long before all
// is gone.
const spared = 1 << 30

// newBallast makes the file, where temporary files are. If those are in memory
// there is no cache to fill, and nothing is won or lost.
func newBallast() (*ballast, error) {
	f, err := os.CreateTemp("", "ballast-")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(f.Name())
	return &ballast{file: f}, nil
}

// fill reads on: pages that are read a second time count as such that are in use,
// and a kubelet that sees many of them evicts pods.
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

// freeMemory is what nobody uses, in bytes (proc_meminfo(5)).
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
