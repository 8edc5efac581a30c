package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"podstarter/payload/imagetree"
	"podstarter/unpacker/tarstream"
)

// TestRecordsMeet: what one end writes of removals is what the other end reads.
func TestRecordsMeet(t *testing.T) {
	got := []string{tarstream.Record, tarstream.RecordGone, tarstream.RecordEmptied}
	if diff := cmp.Diff([]string{imagetree.Record, imagetree.RecordGone, imagetree.RecordEmptied}, got); diff != "" {
		t.Errorf("(-read +written):\n%s", diff)
	}
}

// TestStreamIsWritten: what reads the stream inside a container takes all of it, and everybody can read what it writes.
func TestStreamIsWritten(t *testing.T) {
	for _, name := range []string{"gzip", "plain", "indexed"} {
		t.Run(name, func(t *testing.T) {
			image, dir := fixture(t, name), t.TempDir()
			root, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(root)
			in, out := io.Pipe()
			ended := make(chan error, 1)
			go func() {
				err := unpackBytes(image, usual, out)
				out.CloseWithError(err)
				ended <- err
			}()
			defer unix.Umask(unix.Umask(0))
			report := imagetree.Write(root, in, imagetree.Order{Limits: imagetree.Limits{Bytes: 1 << 20, Entries: 1000}})
			in.Close()
			if err := <-ended; err != nil || report.Err() != nil || report.Entries < 318 {
				t.Fatalf("%v; %+v", err, report)
			}
			if name == "indexed" {
				return
			}
			got := make(map[string]string)
			for _, name := range []string{"blocks", "hard", "small", "sparse", "link", "fifo", "empty", "modes/4755", "modes/0400", "modes/closed"} {
				info, err := os.Lstat(filepath.Join(dir, name))
				if err != nil {
					t.Fatal(err)
				}
				got[name] = info.Mode().String()
				if info.Mode()&fs.ModeType == 0 {
					got[name] += fmt.Sprintf(" %d", info.Size())
				}
			}
			want := map[string]string{"blocks": "-rw-r--r-- 13893", "hard": "-rw-r--r-- 13893", "small": "-rw-r--r-- 6", "sparse": "-rw-r--r-- 40001", "link": "Lrwxrwxrwx",
				"fifo": "prw-r--r--", "empty": "dtrwxrwxrwx", "modes/4755": "-rwxr-xr-x 5", "modes/0400": "-r--r--r-- 5", "modes/closed": "drwxr-xr-x"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
