package filetransfer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"

	"golang.org/x/sys/unix"

	"podstarter/sandbox/beneath"
	"podstarter/sandbox/jobfiles"
	"podstarter/sandbox/manifest"
)

// CheckpointError says that the checkpoint in the job's input differs from the saved
// one.
type CheckpointError struct {
	Number int64 // of the checkpoint, -1 if that is not known
	Text   string
}

func (e *CheckpointError) Error() string { return e.Text }

// VerifyCheckpoint checks whether the input contains a manifest, and if so whether all
// files that it lists have arrived as they were saved. Then it removes the manifest,
// which is not a file of the job. A fault of the checkpoint is a *CheckpointError
// (src/condor_starter.V6.1/jic_shadow.cpp: transferInputStatus).
//
// Stock starters of 25.14 try to do the same, but look for the manifest as a user who
// may not list the sandbox, and find none.
func (t *Transfer) VerifyCheckpoint(ctx context.Context) error {
	t.mu.Lock()
	c := t.config
	t.mu.Unlock()
	v := &verification{session: &session{Config: c, ctx: ctx}}
	return c.Sandbox.Payload().Do(v.run)
}

// verification checks a checkpoint. Its methods act as the identity of the calling
// thread.
type verification struct{ *session }

func (v *verification) run() error {
	root := v.Sandbox.Root()
	name := ""
	err := jobfiles.EachTop(root, func(entry string, st *unix.Stat_t) error {
		if manifest.Number(entry) < 0 || st.Mode&unix.S_IFMT != unix.S_IFREG {
			return nil
		}
		if name != "" {
			return &CheckpointError{Number: -1, Text: "Found more than one MANIFEST file, aborting."}
		}
		name = entry
		return nil
	}, nil)
	if err != nil || name == "" {
		return err
	}
	number := manifest.Number(name)
	text, err := readAll(root, name)
	if err != nil {
		return fmt.Errorf("read the manifest of the checkpoint: %w", err)
	}
	files, err := manifest.Read(name, text)
	if err != nil {
		return &CheckpointError{Number: number, Text: fmt.Sprintf("Invalid MANIFEST file, aborting: %s: %v", name, err)}
	}
	look, done, err := v.view()
	if err != nil {
		return err
	}
	defer done()
	count := 0
	for f := range files {
		count++
		sum, err := v.sum(look, f.Name)
		switch {
		case v.ctx.Err() != nil:
			return context.Cause(v.ctx)
		case err != nil:
			return &CheckpointError{Number: number, Text: fmt.Sprintf(
				"Failed to open checkpoint file ('%s') to compute checksum: %s, aborting.", f.Name, fileText(err))}
		case f.Sum != hex.EncodeToString(sum):
			return &CheckpointError{Number: number, Text: fmt.Sprintf(
				"Checkpoint file '%s' did not have expected checksum (%x vs %s), aborting.", f.Name, sum, f.Sum)}
		}
	}
	v.Log.Info("The checkpoint has arrived as it was saved", "number", number, "files", count)
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the manifest of the checkpoint: %w", err)
	}
	return nil
}

func readAll(root *beneath.Root, name string) ([]byte, error) {
	f, st, err := root.OpenRead(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if st.Size > manifest.MaxSize {
		return nil, manifest.ErrSize
	}
	text := make([]byte, st.Size)
	n, err := io.ReadFull(f, text)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = nil // the file has become shorter
	}
	return text[:n], err
}

// sum is the SHA-256 of a file.
func (x *session) sum(look jobfiles.View, name string) ([]byte, error) {
	f, st, err := look.OpenRead(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if st.Size > 1<<20 {
		f.Sequential()
	}
	h := sha256.New()
	if err := x.bulk(st.Size, func() error { return sumAll(x.ctx, h, f) }); err != nil {
		return nil, err
	}
	return h.Sum(nil), nil
}

func sumAll(ctx context.Context, h hash.Hash, r io.Reader) error {
	piece := make([]byte, 256<<10)
	for {
		n, err := r.Read(piece)
		h.Write(piece[:n])
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
	}
}
