// Package manifest writes and reads the list of a checkpoint's files.
//
// A checkpoint that goes to a checkpoint_destination leaves such a list at the access
// point: the shadow uses it to have the files fetched at the job's next start, and
// removed when they are not needed any more. Each file is a line as sha256sum(1) writes
// it, "<hash> *<name>"; the last line is the hash of the lines before it, with the
// manifest's own name (src/condor_utils/manifest.cpp).
package manifest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"strings"
)

const (
	prefix = "_condor_checkpoint_MANIFEST."

	// MaxSize bounds a manifest, in bytes: that of 200,000 files.
	MaxSize = 32 << 20
)

// Name is the name of the manifest of a checkpoint.
func Name(number int64) string { return fmt.Sprintf("%s%04d", prefix, number) }

// Number is the reverse of Name, as the shadow reads it; -1 for
// any other name (manifest.cpp:getNumberFromFileName).
func Number(name string) int64 {
	digits, ok := strings.CutPrefix(name, prefix)
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

// Manifest is a manifest that is being written.
type Manifest struct{ text []byte }

// Why a file cannot be in a manifest.
var (
	ErrName = errors.New("a manifest cannot hold a name with a line break, or with a blank at its end")
	ErrSize = fmt.Errorf("the names of the checkpoint's files need more than %d bytes in its manifest", MaxSize)
)

// Add lists a file. A name that a reader could not read back is an error.
func (m *Manifest) Add(sum []byte, name string) error {
	if name != strings.TrimRight(name, blanks) || strings.ContainsAny(name, "\n\r\x00") {
		return ErrName
	}
	if len(m.text)+hex.EncodedLen(len(sum))+len(name)+3 > MaxSize {
		return ErrSize
	}
	m.text = hex.AppendEncode(m.text, sum)
	m.text = append(m.text, " *"...)
	m.text = append(m.text, name...)
	m.text = append(m.text, '\n')
	return nil
}

// blanks are what readers trim at the ends of a line (stl_string_utils.cpp:trim).
const blanks = " \t\r\n\v\f"

// Empty reports whether no file has been added.
func (m *Manifest) Empty() bool { return len(m.text) == 0 }

// Seal returns the whole manifest.
func (m *Manifest) Seal(name string) []byte {
	sum := sha256.Sum256(m.text)
	return fmt.Appendf(m.text, "%x *%s\n", sum, name)
}

// File is a file of a manifest.
type File struct {
	Sum  string // SHA-256 in hexadecimal digits, as it is written
	Name string // relative to the sandbox, as it is written
}

// Read parses a manifest whose last line shows that it is complete
// (manifest.cpp:validateManifestFile). Names and hashes are as written; Read does not
// check whether such files exist. Each use of the sequence parses the text again: a
// list would be many times the size of a text that only looks like a manifest.
func Read(name string, text []byte) (iter.Seq[File], error) {
	last := bytes.LastIndexByte(bytes.TrimRight(text, "\n"), '\n') + 1
	if last == 0 {
		return nil, errors.New("it lists no files")
	}
	own := readFile(text[last:])
	if own.Name != name {
		return nil, fmt.Errorf("its last line is for %.100q", own.Name)
	}
	if sum := sha256.Sum256(text[:last]); own.Sum != hex.EncodeToString(sum[:]) {
		return nil, errors.New("it was changed or is incomplete: its own checksum is not that of its contents")
	}
	files := func(yield func(File) bool) {
		for line := range bytes.Lines(text[:last]) {
			if !yield(readFile(line)) {
				return
			}
		}
	}
	n := 0
	for f := range files {
		if n++; f.Name == "" {
			return nil, fmt.Errorf("line %d lists no file", n)
		}
	}
	return files, nil
}

func readFile(line []byte) File {
	sum, name, _ := strings.Cut(strings.Trim(string(line), blanks), " ")
	return File{sum, strings.TrimPrefix(name, "*")}
}
