// Package layers turns the layers of an image of a registry into the entries of one image, as a container runtime
// applies them (OCI image specification, layer.md): what a later layer says of a path counts.
//
// A layer that empties a directory after it has written something into it is refused. Runtimes keep what it has
// written, for which they remember all names; layers are made the other way round.
package layers

import (
	"archive/tar"
	"bufio"
	"bytes"
	"errors"
	"io"
	"path"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"podstarter/unpacker/fault"
	"podstarter/unpacker/tarstream"
)

// Names by which a layer says what it removes (layer.md, "Whiteouts"). Others that begin with meta belong to AUFS.
const (
	whiteout = ".wh."
	meta     = whiteout + whiteout
	opaque   = meta + ".opq"
)

const (
	// maxWindow is how far back a zstd stream may refer, in bytes: more than its strongest levels do (zstd(1), --ultra).
	maxWindow = 128 << 20
	// maxDirs bounds the memory of a layer's directories, by their names in bytes with dirCost for each.
	maxDirs = 64 << 20
	dirCost = 64
	// buffer is what is read at a time.
	buffer = 128 << 10
)

// Walk adds the entries of count layers to a stream. They come as a tar archive of files, the lowest layer first. All
// layers together may have work bytes, unpacked.
func Walk(r io.Reader, count int, work int64, w *tarstream.Writer) error {
	in := bufio.NewReaderSize(r, buffer)
	archive := tar.NewReader(in)
	all := walk{w: w, left: work, buf: make([]byte, buffer)}
	for n := 1; n <= count; n++ {
		header, err := archive.Next()
		if err != nil {
			return fault.New(fault.Truncated, "read layer %d of %d: %w", n, count, err)
		}
		if header.Typeflag != tar.TypeReg {
			return fault.New(fault.Malformed, "read layer %d of %d: it is no file", n, count)
		}
		if err := all.layer(archive); err != nil {
			return fault.New(fault.Of(err), "layer %d of %d: %w", n, count, err)
		}
	}
	// Whoever sends the last layer must be able to send all of it, to know that it is what it should be.
	switch _, err := archive.Next(); {
	case err == nil:
		return fault.New(fault.Malformed, "read %d layers: there are more", count)
	case !errors.Is(err, io.EOF):
		return fault.New(fault.Truncated, "read the end of %d layers: %w", count, err)
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return fault.New(fault.Read, "read the end of %d layers: %w", count, err)
	}
	return nil
}

type walk struct {
	w    *tarstream.Writer
	left int64 // bytes that may still be unpacked
	buf  []byte
	// dirs are the directories in which the layer has written something; held is what their names cost.
	dirs map[string]struct{}
	held int
}

// layer adds the entries of one layer.
func (a *walk) layer(r io.Reader) error {
	plain, done, err := decompress(r)
	if err != nil {
		return err
	}
	defer done()
	a.dirs, a.held = map[string]struct{}{}, 0
	entries := tar.NewReader(&limited{from: plain, left: &a.left})
	for {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return unreadable("read its next entry", err)
		}
		if err := a.entry(header, entries); err != nil {
			return err
		}
	}
}

// decompress gives the tar archive of a layer. Its first bytes tell more than the registry does: there are layers whose
// media type is wrong, and container runtimes look at the bytes, too.
func decompress(r io.Reader) (plain io.Reader, done func(), err error) {
	head := bufio.NewReaderSize(r, buffer)
	first, err := head.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, fault.New(fault.Read, "read its first bytes: %w", err)
	}
	switch {
	case bytes.HasPrefix(first, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(head)
		if err != nil {
			return nil, nil, unreadable("decompress it by gzip", err)
		}
		return z, func() { _ = z.Close() }, nil
	case bytes.Equal(first, []byte{0x28, 0xb5, 0x2f, 0xfd}), len(first) == 4 && first[0]>>4 == 5 && bytes.Equal(first[1:], []byte{0x2a, 0x4d, 0x18}):
		z, err := zstd.NewReader(head, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, nil, unreadable("decompress it by zstd", err)
		}
		return z, z.Close, nil
	}
	return head, func() {}, nil
}

// unreadable is the fault of a layer that could not be read.
func unreadable(what string, err error) error {
	switch f := (*fault.Error)(nil); {
	case errors.As(err, &f):
		return fault.New(f.Reason, "%s: %w", what, err)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return fault.New(fault.Truncated, "%s: %w", what, err)
	}
	return fault.New(fault.Malformed, "%s: %w", what, err)
}

// limited bounds what is decompressed. A file's size is bounded elsewhere; this is for what is between files.
type limited struct {
	from io.Reader
	left *int64
}

func (l *limited) Read(p []byte) (int, error) {
	if *l.left <= 0 {
		return 0, fault.New(fault.TooLarge, "there is more between the files of the layers than their bounds can need")
	}
	n, err := l.from.Read(p[:min(int64(len(p)), *l.left)])
	*l.left -= int64(n)
	return n, err
}

// entry adds one entry of a layer.
func (a *walk) entry(h *tar.Header, content io.Reader) error {
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	if err := a.w.Count(); err != nil {
		return err
	}
	name, err := a.path(h.Name)
	if err != nil || name == "" { // the root is the container's own
		return err
	}
	dir, base := path.Split(name)
	dir = strings.TrimSuffix(dir, "/")
	switch {
	case base == opaque:
		if _, ok := a.dirs[dir]; ok {
			return fault.New(fault.Malformed, "the directory %.200q: it says that nothing of the layers below is left (%s) after its own entries, which this program does not take; build the image by a current tool", "/"+dir, opaque)
		}
		if dir == "" {
			dir = "."
		}
		return a.w.Add(tarstream.Entry{Path: dir, Kind: tarstream.Emptied})
	case strings.HasPrefix(base, meta):
		return nil
	case strings.HasPrefix(base, whiteout):
		gone, err := a.w.Join(dir, strings.TrimPrefix(base, whiteout))
		if err != nil {
			return err
		}
		return a.w.Add(tarstream.Entry{Path: gone, Kind: tarstream.Gone})
	}
	if err := a.note(dir); err != nil {
		return err
	}
	e := tarstream.Entry{Path: name, Mode: uint32(h.Mode & 0o7777), Modified: h.ModTime.Unix(), Kind: tarstream.Skipped}
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeCont, tar.TypeGNUSparse:
		e.Kind, e.Size, e.Names = tarstream.File, h.Size, 1
		e.Content = func(out io.Writer) error { return a.copy(out, content, h.Size) }
	case tar.TypeDir:
		e.Kind = tarstream.Directory
	case tar.TypeSymlink:
		e.Kind, e.Target = tarstream.Symlink, h.Linkname
	case tar.TypeLink:
		e.Kind = tarstream.Link
		if e.Target, err = a.path(h.Linkname); err != nil {
			return err
		}
		if e.Target == "" {
			return fault.New(fault.Malformed, "the hard link %.200q: it is one to the root", "/"+name)
		}
	case tar.TypeFifo:
		e.Kind = tarstream.FIFO
	case tar.TypeChar, tar.TypeBlock:
	default:
		return fault.New(fault.Malformed, "the entry %.200q: it has the type %q, which no file has", "/"+name, h.Typeflag)
	}
	return a.w.Add(e)
}

// path is a name in a layer as a path below the root, "" for the root itself. One that leads out does not, as for
// container runtimes.
func (a *walk) path(name string) (string, error) {
	clean := path.Clean("/" + name)[1:]
	whole := ""
	for part := range strings.SplitSeq(clean, "/") {
		if clean == "" {
			break
		}
		var err error
		if whole, err = a.w.Join(whole, part); err != nil {
			return "", err
		}
	}
	return whole, nil
}

// note remembers that the layer has written something in a directory, and in those above it.
func (a *walk) note(dir string) error {
	for {
		if _, ok := a.dirs[dir]; ok {
			return nil
		}
		if a.held += len(dir) + dirCost; a.held > maxDirs {
			return fault.New(fault.TooLarge, "the directory %.200q: the names of the layer's directories have more than %d bytes", "/"+dir, maxDirs)
		}
		a.dirs[dir] = struct{}{}
		if dir == "" {
			return nil
		}
		dir, _ = path.Split(dir)
		dir = strings.TrimSuffix(dir, "/")
	}
}

// copy copies the content of a file.
func (a *walk) copy(out io.Writer, content io.Reader, size int64) error {
	for size > 0 {
		n, err := content.Read(a.buf[:min(size, int64(len(a.buf)))])
		if n > 0 {
			if _, err := out.Write(a.buf[:n]); err != nil {
				return err
			}
			size -= int64(n)
			continue
		}
		if err != nil {
			return unreadable("read it", err)
		}
	}
	return nil
}
