package sandbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"iter"
	"strings"

	"golang.org/x/sys/unix"

	"podstarter/sandbox/beneath"
)

// A checkpoint that goes to a checkpoint_destination leaves a list of its files
// at the access point: the shadow has them fetched by it at the job's next start,
// and has them removed by it when they are not needed any more. Each file is a
// line as of sha256sum(1), "<hash> *<name>"; the last line is the hash of the
// lines before it, with the manifest's own name (src/condor_utils/manifest.cpp).

const (
	manifestPrefix = "_condor_checkpoint_MANIFEST."

	// mostManifest bounds a manifest, in bytes: that of 200,000 files.
	mostManifest = 32 << 20
)

// manifestName is the name of the manifest of a checkpoint.
func manifestName(number int64) string { return fmt.Sprintf("%s%04d", manifestPrefix, number) }

// manifestNumber is the reverse of manifestName, as the shadow reads it; -1 for
// any other name (manifest.cpp:getNumberFromFileName).
func manifestNumber(name string) int64 {
	digits, ok := strings.CutPrefix(name, manifestPrefix)
	const most = 18 // digits that always fit
	if !ok || digits == "" || len(digits) > most {
		return -1
	}
	n := int64(0)
	for _, c := range []byte(digits) {
		if c < '0' || c > '9' {
			return -1
		}
		n = 10*n + int64(c-'0')
	}
	return n
}

// manifest is one that is being written.
type manifest struct{ text []byte }

// Why a file cannot be in a manifest.
var (
	errManifestName = errors.New("a manifest cannot hold a name with a line break, or with a blank at its end")
	errManifestSize = fmt.Errorf("the names of the checkpoint's files need more than %d bytes in its manifest", mostManifest)
)

// add lists a file. A name that no reader would find again is an error.
func (m *manifest) add(sum []byte, name string) error {
	if name != strings.TrimRight(name, blanks) || strings.ContainsAny(name, "\n\r\x00") {
		return errManifestName
	}
	if len(m.text)+hex.EncodedLen(len(sum))+len(name)+3 > mostManifest {
		return errManifestSize
	}
	m.text = hex.AppendEncode(m.text, sum)
	m.text = append(m.text, " *"...)
	m.text = append(m.text, name...)
	m.text = append(m.text, '\n')
	return nil
}

// blanks is what readers take away at the ends of a line (stl_string_utils.cpp:trim).
const blanks = " \t\r\n\v\f"

// seal returns the whole manifest.
func (m *manifest) seal(name string) []byte {
	sum := sha256.Sum256(m.text)
	return fmt.Appendf(m.text, "%x *%s\n", sum, name)
}

// listed is a file of a manifest.
type listed struct{ sum, name string }

// readManifest takes a manifest apart whose last line tells that it is whole
// (manifest.cpp:validateManifestFile). Names and hashes are as they are
// written; nothing is said about whether there are such files. They are read again
// for each use: a list of them would be many times the size of a text that only
// looks like a manifest.
func readManifest(name string, text []byte) (iter.Seq[listed], error) {
	last := bytes.LastIndexByte(bytes.TrimRight(text, "\n"), '\n') + 1
	if last == 0 {
		return nil, errors.New("it lists no files")
	}
	own := readListed(text[last:])
	if own.name != name {
		return nil, fmt.Errorf("its last line is for %.100q", own.name)
	}
	if sum := sha256.Sum256(text[:last]); own.sum != hex.EncodeToString(sum[:]) {
		return nil, errors.New("it has been changed, or is not all there: its own checksum is not that of its contents")
	}
	files := func(yield func(listed) bool) {
		for line := range bytes.Lines(text[:last]) {
			if !yield(readListed(line)) {
				return
			}
		}
	}
	n := 0
	for f := range files {
		if n++; f.name == "" {
			return nil, fmt.Errorf("line %d lists no file", n)
		}
	}
	return files, nil
}

func readListed(line []byte) listed {
	sum, name, _ := strings.Cut(strings.Trim(string(line), blanks), " ")
	return listed{sum, strings.TrimPrefix(name, "*")}
}

// CheckpointError says that the checkpoint that came with the job's input is not
// what was saved.
type CheckpointError struct {
	Number int64 // of the checkpoint, -1 if that is not known
	Text   string
}

func (e *CheckpointError) Error() string { return e.Text }

// VerifyCheckpoint looks whether the input brought a manifest, and if so whether
// all files that it lists have arrived as they were saved. Then it removes the
// manifest: it is no file of the job's. The errors that it finds are a
// *CheckpointError (src/condor_starter.V6.1/jic_shadow.cpp: transferInputStatus).
//
// Stock starters of 25.14 mean to do the same, but look for the manifest as a user
// who may not list the sandbox, and find none.
func (t *Transfer) VerifyCheckpoint(ctx context.Context) error {
	t.mu.Lock()
	c := t.config
	t.mu.Unlock()
	v := &verification{session: &session{Config: c, ctx: ctx}}
	return c.Sandbox.payload.Do(v.run)
}

// verification is the look at a checkpoint. Its methods act as the identity of
// the calling thread.
type verification struct{ *session }

func (v *verification) run() error {
	root := v.Sandbox.inside
	name := ""
	err := eachTop(root, func(entry string, st *unix.Stat_t) error {
		if manifestNumber(entry) < 0 || st.Mode&unix.S_IFMT != unix.S_IFREG {
			return nil
		}
		if name != "" {
			return &CheckpointError{Number: -1, Text: "Found more than one MANIFEST file, aborting."}
		}
		name = entry
		return nil
	})
	if err != nil || name == "" {
		return err
	}
	number := manifestNumber(name)
	text, err := readAll(root, name)
	if err != nil {
		return fmt.Errorf("read the manifest of the checkpoint: %w", err)
	}
	files, err := readManifest(name, text)
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
		sum, err := v.sum(look, f.name)
		switch {
		case v.ctx.Err() != nil:
			return context.Cause(v.ctx)
		case err != nil:
			return &CheckpointError{Number: number, Text: fmt.Sprintf(
				"Failed to open checkpoint file ('%s') to compute checksum: %s, aborting.", f.name, fileText(err))}
		case f.sum != hex.EncodeToString(sum):
			return &CheckpointError{Number: number, Text: fmt.Sprintf(
				"Checkpoint file '%s' did not have expected checksum (%x vs %s), aborting.", f.name, sum, f.sum)}
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
	if st.Size > mostManifest {
		return nil, errManifestSize
	}
	text := make([]byte, st.Size)
	n, err := io.ReadFull(f, text)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = nil // it has become shorter
	}
	return text[:n], err
}

// sum is the SHA-256 of a file.
func (x *session) sum(look view, name string) ([]byte, error) {
	f, st, err := look.openRead(name)
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
