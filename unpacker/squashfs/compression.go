package squashfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/therootcompany/xz"

	"podstarter/unpacker/fault"
)

// Methods of compression, by their numbers in the superblock.
const (
	gzip      = 1
	lzma      = 2
	lzo       = 3
	xzMethod  = 4
	lz4Method = 5
	zstdKind  = 6
)

func methodName(n uint16) string {
	switch n {
	case gzip:
		return "gzip"
	case lzma:
		return "lzma"
	case lzo:
		return "lzo"
	case xzMethod:
		return "xz"
	case lz4Method:
		return "lz4"
	case zstdKind:
		return "zstd"
	}
	return fmt.Sprintf("method %d", n)
}

// method unpacks one block into dst and returns how many bytes that made. More than len(dst) is an
// error.
type method func(dst, src []byte) (int, error)

var errTooLong = errors.New("it is longer than a block can be")

// unpacker unpacks blocks by the file system's method.
type unpacker struct {
	method uint16
	unpack method // made for the first block: there are file systems without a compressed one
	left   int64  // bytes that may still be unpacked
}

// block unpacks a stored block into dst.
func (u *unpacker) block(dst, src []byte, what string) ([]byte, error) {
	if u.unpack == nil {
		var err error
		if u.unpack, err = newMethod(u.method); err != nil {
			return nil, err
		}
	}
	n, err := u.unpack(dst, src)
	if err != nil {
		return nil, fault.New(fault.Malformed, "unpack %s of the squashfs by %s: %w", what, methodName(u.method), err)
	}
	if u.left -= int64(n); u.left < 0 {
		return nil, fault.New(fault.TooLarge, "unpack %s of the squashfs: its blocks were unpacked so often that this is more work than its bounds can need", what)
	}
	return dst[:n], nil
}

// newMethod makes a decompressor whose memory is bounded by the size of a block.
func newMethod(number uint16) (method, error) {
	switch number {
	case gzip:
		return newZlib(), nil
	case xzMethod:
		return newXZ(), nil
	case lz4Method:
		return func(dst, src []byte) (int, error) { return lz4.UncompressBlock(src, dst) }, nil
	case zstdKind:
		return newZstd()
	}
	return nil, fault.New(fault.UnsupportedCompression, "unpack the squashfs: it is compressed by %s; gzip, xz, lz4 and zstd are supported", methodName(number))
}

// drain reads a stream into dst, and that it ends there: its checksum is behind the last byte.
func drain(dst []byte, r io.Reader) (int, error) {
	n, err := io.ReadFull(r, dst)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF) && n < len(dst):
		// A stream that is cut off gives ErrUnexpectedEOF itself: reading on tells which it was.
		if _, err := r.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			return n, io.ErrUnexpectedEOF
		}
		return n, nil
	case err != nil:
		return n, err
	}
	var more [1]byte
	switch k, err := io.ReadFull(r, more[:]); {
	case k > 0:
		return n, errTooLong
	case !errors.Is(err, io.EOF):
		return n, err
	}
	return n, nil
}

// newZlib reuses one decoder for all blocks. The module is needed for zstd, and has a decoder for zlib, too.
func newZlib() method {
	var z io.ReadCloser
	in := bytes.NewReader(nil)
	return func(dst, src []byte) (int, error) {
		in.Reset(src)
		var err error
		if z == nil {
			z, err = zlib.NewReader(in)
		} else {
			err = z.(zlib.Resetter).Reset(in, nil)
		}
		if err != nil {
			return 0, err
		}
		return drain(dst, z)
	}
}

// newXZ: this package bounds the dictionary, which the stream asks for, and knows the filters for
// machine code, which mksquashfs -Xbcj uses.
func newXZ() method {
	var z *xz.Reader
	in := bytes.NewReader(nil)
	return func(dst, src []byte) (int, error) {
		in.Reset(src)
		var err error
		if z == nil {
			// mksquashfs allows no larger dictionary than a block.
			z, err = xz.NewReader(in, 1<<maxBlockLog)
		} else {
			err = z.Reset(in)
		}
		if err != nil {
			return 0, err
		}
		z.Multistream(false)
		return drain(dst, z)
	}
}

// newZstd decodes into the buffer that it is given, so no window is allocated.
func newZstd() (method, error) {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<maxBlockLog), zstd.WithDecoderMaxWindow(8<<20))
	if err != nil {
		return nil, fault.New(fault.UnsupportedCompression, "make a decoder for zstd: %w", err)
	}
	return func(dst, src []byte) (int, error) {
		out, err := d.DecodeAll(src, dst[:0:len(dst)])
		if err == nil && len(out) > len(dst) {
			err = errTooLong
		}
		return len(out), err
	}, nil
}
