package filetransfer

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"golang.org/x/sys/unix"

	"podstarter/internal/cedar"
	"podstarter/sandbox/beneath"
	"podstarter/sandbox/jobfiles"
)

// Modes with a meaning (src/condor_includes/condor_fs_mode.h).
const (
	modeUnset   = 0       // keep what the file was created with
	modeMissing = 1 << 24 // the sender has no such file: create nothing
)

// file receives a file. If it cannot be written, file discards the contents and records
// a failure; the error is about the stream.
func (d *download) file(command int64, target string) error {
	mode, err := d.s.GetInt()
	if err == nil {
		err = d.s.EndOfMessage()
	}
	if err != nil {
		return err
	}
	src, err := d.s.OpenFile(-1)
	if err != nil {
		return err
	}
	w := &writer{progress: d.dog.stroke}
	if target != "" && mode != modeMissing {
		w.file, w.err = d.Sandbox.Root().Create(target, d.wanted(target, mode))
		w.err = barred(w.err)
	}
	err = d.bulk(src.Size(), func() error { return w.take(src) })
	if w.file != nil {
		if err == nil && w.err == nil {
			w.err = w.file.Chmod(d.wanted(target, mode))
		}
		if e := w.file.Close(); w.err == nil {
			w.err = e
		}
		if err != nil || w.err != nil {
			_ = d.Sandbox.Root().Remove(target)
		}
	}
	if err == nil {
		err = d.s.EndOfMessage()
	}
	if err != nil {
		return err
	}
	d.contents = src.Size()
	if w.err != nil {
		d.unwritten = true
		d.fail(&Error{Code: CodeDownload, Subcode: int(errno(w.err)), Err: w.err,
			Text: fmt.Sprintf("STARTER at %s - |Error: writing to file %s: %s", d.local(), d.shown(target), fileText(w.err))})
		return nil
	}
	d.stats.bytes += src.Size()
	if command == cmdFile {
		d.stats.cedar++
	}
	return nil
}

// wanted returns the permission bits of a received file: the sender's, if it gives any.
// It always lets the job's executable be executed.
func (d *download) wanted(target string, mode int64) uint32 {
	switch mode &= 0o777; {
	case target == d.job.Executable:
		return 0o755
	case mode == modeUnset:
		return 0o600
	}
	return uint32(mode)
}

// writer writes the contents of a file; after an error it discards them.
type writer struct {
	file     *beneath.File
	err      error
	progress func() // called for each piece
}

// take reads a whole file from the stream. The error is the stream's.
func (w *writer) take(src *cedar.File) error {
	for {
		b, err := src.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		w.progress()
		if w.file != nil && w.err == nil {
			_, w.err = w.file.Write(b)
		}
	}
}

// mkdir makes a directory. It does not change one that exists, and removes anything
// else of that name.
func (d *download) mkdir(target string) error {
	mode, err := d.s.GetInt()
	if err == nil {
		err = d.s.EndOfMessage()
	}
	if err != nil || target == "" {
		return err
	}
	if mode &= 0o777; mode == modeUnset {
		mode = 0o700
	}
	root := d.Sandbox.Root()
	err = root.Mkdir(target, uint32(mode))
	if errors.Is(err, unix.ENOENT) {
		if err = root.MkdirAll(jobfiles.DirName(target), 0o700); err == nil {
			err = root.Mkdir(target, uint32(mode))
		}
	}
	if errors.Is(err, fs.ErrExist) {
		if st, e := root.Stat(target); e == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
			return nil
		}
		if e := root.Remove(target); e == nil {
			err = root.Mkdir(target, uint32(mode))
		}
	}
	if err = barred(err); err != nil {
		n := errno(err)
		d.fail(&Error{Code: CodeDownload, Subcode: int(n), Err: err,
			Text: fmt.Sprintf("STARTER at %s failed to create directory %s: %s (errno %d)", d.local(), d.shown(target), strerror(n), int(n))})
	}
	return nil
}
