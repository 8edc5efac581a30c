package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

// load is what a job brings in and sends back unchanged.
type load struct {
	name  string // of the file or directory, in sandbox and tables
	title string
	files int
	bytes int64 // of each file
	flat  bool  // one file, no directory
}

func (l load) total() int64 { return int64(l.files) * l.bytes }

// loads are those of the table; smaller divides them.
func loads(smaller int) []load {
	const kilo, mega = 1000, 1000 * 1000
	count := func(n int) string {
		if n >= kilo {
			return fmt.Sprintf("%d,%03d", n/kilo, n%kilo)
		}
		return strconv.Itoa(n)
	}
	large := int64(4 * kilo * mega / smaller)
	size := fmt.Sprintf("%d MB", large/mega)
	if large >= kilo*mega {
		size = fmt.Sprintf("%d GB", large/mega/kilo)
	}
	many, some := 50*kilo/smaller, 200/smaller
	return []load{
		{name: "trivial", title: "one file of 20 bytes", files: 1, bytes: 20, flat: true},
		{name: "large", title: "one file of " + size, files: 1, bytes: large, flat: true},
		{name: "some", title: count(some) + " files of 10 MB", files: some, bytes: 10 * mega},
		{name: "many", title: count(many) + " files of 1 KB in nested directories", files: many, bytes: kilo},
	}
}

// path is where a file lies below a directory.
func (l load) path(dir string, i int) string {
	path := filepath.Join(dir, l.name)
	switch {
	case l.flat:
		return path
	case l.files < 1000:
		return filepath.Join(path, strconv.Itoa(i))
	}
	return filepath.Join(path, strconv.Itoa(i%10), strconv.Itoa(i/10%50), "file-"+strconv.Itoa(i))
}

// block is a random megabyte, the same in each run.
var block = sync.OnceValue(func() []byte {
	b := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b)
	return b
})

// pieces are the contents of a file, one after another. They are random, so that no
// side can transfer less. Neighbouring files differ.
func (l load) pieces(file int, do func([]byte) error) error {
	block := block()
	for rest := l.bytes; rest > 0; {
		at := (rest + 61*int64(file)) % 4096 // another one for each megabyte
		piece := block[at:min(int64(len(block)), at+rest)]
		if err := do(piece); err != nil {
			return err
		}
		rest -= int64(len(piece))
	}
	return nil
}

// make writes the files below a directory.
func (l load) make(dir string) error {
	for i := range l.files {
		path := l.path(dir, i)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
		if err != nil {
			return err
		}
		err = l.pieces(i, func(b []byte) error { _, err := f.Write(b); return err })
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// check verifies that all of it is below a directory, unchanged.
func (l load) check(dir string) error {
	files, size := 0, int64(0)
	err := filepath.WalkDir(filepath.Join(dir, l.name), func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			files++
			size += info.Size()
		}
		return err
	})
	if err != nil {
		return err
	}
	if files != l.files || size != l.total() {
		return fmt.Errorf("of %d files with %d bytes, %d with %d came back", l.files, l.total(), files, size)
	}
	for i := range l.files {
		if err := l.compare(l.path(dir, i), i); err != nil {
			return err
		}
	}
	return nil
}

// compare reads a file.
func (l load) compare(path string, file int) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	buffer := make([]byte, min(l.bytes, 1<<20))
	return l.pieces(file, func(want []byte) error {
		got := buffer[:len(want)]
		if _, err := io.ReadFull(f, got); err != nil {
			return fmt.Errorf("reading %s: %w", path, err)
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("the contents of %s are not what they were", path)
		}
		return nil
	})
}
