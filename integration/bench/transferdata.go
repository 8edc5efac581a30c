package main

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
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

// make writes the files below a directory. The contents are random: nothing
// gets away with less than all of it.
func (l load) make(dir string) error {
	block := make([]byte, 1<<20)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(block)
	for i := range l.files {
		path := filepath.Join(dir, l.name)
		if !l.flat {
			path = filepath.Join(path, strconv.Itoa(i%10), strconv.Itoa(i/10%50), "file-"+strconv.Itoa(i))
			if l.files < 1000 {
				path = filepath.Join(dir, l.name, strconv.Itoa(i))
			}
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
		}
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
		if err != nil {
			return err
		}
		for rest := l.bytes; rest > 0; {
			at := int(rest % 4096) // another one for each file and block
			n, err := f.Write(block[at:min(int64(len(block)), int64(at)+rest)])
			if err != nil {
				f.Close()
				return err
			}
			rest -= int64(n)
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}

// check looks whether all of it is below a directory.
func (l load) check(dir string) error {
	files, bytes := 0, int64(0)
	err := filepath.WalkDir(filepath.Join(dir, l.name), func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			files++
			bytes += info.Size()
		}
		return err
	})
	if err == nil && (files != l.files || bytes != l.total()) {
		err = fmt.Errorf("of %d files with %d bytes, %d with %d came back", l.files, l.total(), files, bytes)
	}
	return err
}
