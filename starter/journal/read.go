package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"podstarter/internal/filewatch"
)

// Position is how far a reader has come. The zero value is the beginning.
type Position struct {
	File   uint64 `json:"file"`   // its inode number
	Offset int64  `json:"offset"` // in bytes
}

// startNew is from which size on a reader that has read everything begins a new file.
const startNew = 64 << 10

// Reader follows the journal. There is one for each pod.
type Reader struct {
	journal Journal
	dir     *os.Root
	changes *filewatch.Watcher
}

// Follow begins to follow the journal.
func (j Journal) Follow() (*Reader, error) {
	dir, err := j.open()
	if err != nil {
		return nil, fmt.Errorf("follow the journal in %s: %w", j.StateDir, err)
	}
	r := &Reader{journal: j, dir: dir}
	if r.changes, err = filewatch.New(); err == nil {
		err = r.changes.Add(filepath.Join(j.StateDir, subdirectory), filewatch.Written)
	}
	if err != nil {
		r.Close()
		return nil, fmt.Errorf("follow the journal in %s: %w", j.StateDir, err)
	}
	return r, nil
}

// Close ends the reader.
func (r *Reader) Close() {
	if r.changes != nil {
		r.changes.Close()
	}
	_ = r.dir.Close()
}

// Changed gets a value when there may be more to read.
func (r *Reader) Changed() <-chan struct{} { return r.changes.Events() }

// Read gives the events after a position, and the position after them. Lines that are no
// events are passed over.
func (r *Reader) Read(from Position) ([]Event, Position, error) {
	events, at, err := r.read(from)
	if err != nil {
		return nil, from, fmt.Errorf("read the journal in %s: %w", r.journal.StateDir, err)
	}
	return events, at, nil
}

func (r *Reader) read(from Position) ([]Event, Position, error) {
	rest, end, err := r.readFile(oldFile, from)
	if err != nil || end.File != from.File { // that one was read to its end before
		rest, end = nil, from
	}
	events, at, err := r.readFile(eventsFile, from)
	if errors.Is(err, fs.ErrNotExist) {
		return rest, end, nil
	}
	return append(rest, events...), at, err
}

// readFile reads a file, from the beginning if the position is in another one.
func (r *Reader) readFile(name string, from Position) ([]Event, Position, error) {
	f, err := r.dir.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, from, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, from, err
	}
	at := Position{File: inode(info)}
	if from.File == at.File && from.Offset <= info.Size() {
		at.Offset = from.Offset
	}
	data, err := io.ReadAll(io.NewSectionReader(f, at.Offset, maxFile))
	if err != nil {
		return nil, from, err
	}
	whole := data[:bytes.LastIndexByte(data, '\n')+1]
	at.Offset += int64(len(whole))
	return decode(whole), at, nil
}

// decode believes what is within bounds.
func decode(data []byte) []Event {
	var events []Event
	for line := range bytes.Lines(data) {
		var e Event
		if len(line) <= maxLine && json.Unmarshal(line, &e) == nil {
			events = append(events, e.clean())
		}
	}
	return events
}

func inode(info os.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Ino
	}
	return 0
}

// Renew lets writers begin a new file if the one that was read up to the position has become
// long. What was written to it since is read next; the position stays good.
func (r *Reader) Renew(read Position) error {
	if read.Offset < startNew {
		return nil
	}
	unlock, err := lock(r.dir)
	if err == nil {
		defer unlock()
		var info fs.FileInfo
		if info, err = r.dir.Stat(eventsFile); err == nil && inode(info) == read.File {
			err = r.dir.Rename(eventsFile, oldFile)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("begin a new journal in %s: %w", r.journal.StateDir, err)
	}
	return nil
}
