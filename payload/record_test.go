package payload_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/payload"
)

// TestReadExitOfAPipe: where the directory belongs to the payload's user, a pipe in place of the record, whose other end somebody keeps open,
// keeps nobody waiting.
func TestReadExitOfAPipe(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, payload.ExitRecordName("job1"))
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	writer, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan error, 1)
	go func() {
		_, err := payload.ReadExit(dir, "job1")
		read <- err
	}()
	select {
	case err = <-read:
	case <-time.After(10 * time.Second):
		t.Error("it waits for what never comes")
		writer.Close() // ends the wait
		err = <-read
	}
	writer.Close()
	if err == nil {
		t.Error("a pipe passed for a record")
	}
}
