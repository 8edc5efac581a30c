package commonfiles

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Name is the name of a catalog that was kept: its key, and what is in it.
type Name string

// ParseName reads the name of a catalog with this key and a digest.
func ParseName(text string, key Key) (Name, error) {
	suffix, ok := strings.CutPrefix(text, string(key))
	if c, known := parseContent(suffix); !ok || !known || c.digest == "" {
		const most = 200
		return "", fmt.Errorf("%.*q does not say what is in the common files: the catalog may have been kept by another starter", most, text)
	}
	return Name(text), nil
}

// content is what is in a catalog.
type content struct {
	entries int // files and directories, without itself
	bytes   int64
	digest  string // see digester; empty where nobody but the starter can change the catalog
}

// suffix is what follows the key in a catalog's name.
func (c content) suffix() string {
	s := fmt.Sprintf(".%d.%d", c.entries, c.bytes)
	if c.digest != "" {
		s += "." + c.digest
	}
	return s
}

// parseContent reads a suffix, in exactly the form that suffix writes.
func parseContent(suffix string) (c content, ok bool) {
	parts := strings.Split(suffix, ".")
	if len(parts) != 3 && len(parts) != 4 {
		return content{}, false
	}
	var err, e error
	c.entries, err = strconv.Atoi(parts[1])
	c.bytes, e = strconv.ParseInt(parts[2], 10, 64)
	if len(parts) == 4 {
		c.digest = parts[3]
		if sum, e := hex.DecodeString(c.digest); e != nil || len(sum) != sha256.Size {
			return content{}, false
		}
	}
	if err != nil || e != nil || c.entries < 0 || c.bytes < 0 || c.suffix() != suffix {
		return content{}, false
	}
	return c, true
}

// digester makes the digest of a tree: of all paths, and of the contents of all files. The
// order in which they come has no effect. A nil digester does nothing.
type digester struct{ entries [][sha256.Size]byte }

// Kinds of entries.
const (
	aDir  = 'd'
	aFile = 'f'
)

func (d *digester) add(kind byte, path string, sum []byte) {
	if d != nil {
		// A path has no NUL, and a sum's length depends on the kind.
		d.entries = append(d.entries, sha256.Sum256(slices.Concat([]byte{kind}, []byte(path), []byte{0}, sum)))
	}
}

// copyFile copies what is left of f, at most limit bytes, to w and adds the file. w may be nil.
func (d *digester) copyFile(ctx context.Context, w io.Writer, f *os.File, path string, limit int64) error {
	r := io.LimitReader(contextReader{ctx, f}, limit)
	if d == nil {
		_, err := io.Copy(w, r)
		return err
	}
	sum := sha256.New()
	if w == nil {
		w = sum
	} else {
		w = io.MultiWriter(w, sum)
	}
	buffer := make([]byte, 256<<10)
	if _, err := io.CopyBuffer(w, r, buffer); err != nil {
		return err
	}
	d.add(aFile, path, sum.Sum(nil))
	return nil
}

// digest is that of all that was added; empty for a nil digester.
func (d *digester) digest() string {
	if d == nil {
		return ""
	}
	slices.SortFunc(d.entries, func(a, b [sha256.Size]byte) int { return bytes.Compare(a[:], b[:]) })
	sum := sha256.New()
	for _, e := range d.entries {
		sum.Write(e[:])
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// reopen opens a file that is open for writing once more, to read it from its start, whatever
// has its name by now.
func reopen(f *os.File) (*os.File, error) {
	n, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd(f)), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("read %s back: %w", f.Name(), err)
	}
	return os.NewFile(uintptr(n), f.Name()), nil
}

var errChanged = errors.New("it is not what was kept: a process of the pilot's user has changed it, or it is being removed")
