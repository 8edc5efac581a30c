package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/unpacker/fault"
	"podstarter/unpacker/tarstream"
)

var usual = options{arch: "amd64", bounds: tarstream.Bounds{Bytes: 1 << 30, Entries: 10_000, Depth: 255, Target: 4096}}

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".squashfs"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// unpackBytes unpacks an image in memory.
func unpackBytes(image []byte, o options, out io.Writer) error {
	m, _, err := open(bytes.NewReader(image), int64(len(image)), o)
	if err != nil {
		return err
	}
	w := tarstream.New(out, o.bounds)
	if err := m.Walk(w); err != nil {
		return err
	}
	return w.Close()
}

// list gives a line for each entry of a stream, which must be complete.
func list(t testing.TB, r io.Reader) (lines []string) {
	t.Helper()
	in := tar.NewReader(r)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return lines
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "" || h.ModTime.Unix() != 1700000000 || len(h.Xattrs) > 0 { //nolint:staticcheck // the old field has what is wanted
			t.Errorf("%s: owner %d:%d %q %q, time %v", h.Name, h.Uid, h.Gid, h.Uname, h.Gname, h.ModTime)
		}
		sum := sha256.New()
		if _, err := io.Copy(sum, in); err != nil {
			t.Fatal(err)
		}
		text := ""
		if h.Size > 0 {
			text = fmt.Sprintf(" %d %x", h.Size, sum.Sum(nil)[:4])
		}
		lines = append(lines, fmt.Sprintf("%c %04o %s %s%s", h.Typeflag, h.Mode, strings.Replace(h.Name, strings.Repeat("n", 255), "n*255", 1), h.Linkname, text))
	}
}

func sum(text string) string { s := sha256.Sum256([]byte(text)); return fmt.Sprintf("%x", s[:4]) }

// content is that of testdata/make.sh.
func content() []string {
	var blocks strings.Builder
	for i := 1; i <= 3000; i++ {
		fmt.Fprintln(&blocks, i)
	}
	lines := []string{
		fmt.Sprintf("0 0644 blocks  %d %s", blocks.Len(), sum(blocks.String())),
		"5 1777 empty/ ", "2 0777 empty-link ../small", "6 0644 fifo ", "1 0644 hard blocks", "2 0777 link /etc/passwd", "5 0755 many/ ",
	}
	for i := range 300 {
		lines = append(lines, fmt.Sprintf("0 0644 many/file%03d ", i))
	}
	lines = append(lines, "5 0755 modes/ ")
	for _, m := range [][2]string{{"0000", "0000"}, {"0400", "0444"}, {"0700", "0755"}, {"1666", "1666"}, {"2755", "0755"}, {"4755", "0755"}} {
		lines = append(lines, fmt.Sprintf("0 %s modes/%s  5 %s", m[1], m[0], sum(m[0]+"\n")))
	}
	return append(lines, "5 0755 modes/closed/ ", "0 0644 n*255 ", "0 0644 small  6 "+sum("small\n"),
		fmt.Sprintf("0 0644 sparse  40001 %s", sum(strings.Repeat("\x00", 40001))))
}

func TestImages(t *testing.T) {
	for _, name := range []string{"gzip", "xz", "lz4", "zstd", "bcj", "plain", "nofragments", "alwaysfragments"} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := unpackBytes(fixture(t, name), usual, &out); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(content(), list(t, &out)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestExtendedDirectory(t *testing.T) {
	var out bytes.Buffer
	if err := unpackBytes(fixture(t, "indexed"), usual, &out); err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := range 600 {
		want = append(want, fmt.Sprintf("0 0644 a-name-that-takes-some-room-%03d ", i))
	}
	if diff := cmp.Diff(want, list(t, &out)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestBounds: each bound ends the image that is one above it, and not the one that has as much.
func TestBounds(t *testing.T) {
	image := fixture(t, "gzip")
	const names, bytes = 319, 13893 + 6 + 40001 + 6*5
	for name, tt := range map[string]struct {
		bounds tarstream.Bounds
		want   fault.Reason
	}{
		"enough":       {tarstream.Bounds{Bytes: bytes, Entries: names, Depth: 2, Target: 11}, ""},
		"bytes":        {tarstream.Bounds{Bytes: bytes - 1, Entries: names, Depth: 2, Target: 11}, fault.TooLarge},
		"entries":      {tarstream.Bounds{Bytes: bytes, Entries: names - 1, Depth: 2, Target: 11}, fault.TooLarge},
		"depth":        {tarstream.Bounds{Bytes: bytes, Entries: names, Depth: 1, Target: 11}, fault.TooLarge},
		"target":       {tarstream.Bounds{Bytes: bytes, Entries: names, Depth: 2, Target: 10}, fault.TooLarge},
		"nothing goes": {tarstream.Bounds{}, fault.TooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			got := reason(unpackBytes(image, options{bounds: tt.bounds}, io.Discard))
			if got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// reason is empty without an error.
func reason(err error) fault.Reason {
	if err == nil {
		return ""
	}
	return fault.Of(err)
}

// TestCutOff: a file that ends anywhere is truncated, as its superblock says how long it must be.
func TestCutOff(t *testing.T) {
	image := fixture(t, "zstd")
	used := int(le.Uint64(image[40:]))
	for n := 0; n < used; n += 1 + n/50 {
		want := fault.Truncated
		if n < 4 {
			want = fault.NoImage
		}
		if got := reason(unpackBytes(image[:n], usual, io.Discard)); got != want {
			t.Errorf("%d bytes: %q, want %q", n, got, want)
		}
	}
	if err := unpackBytes(image[:used], usual, io.Discard); err != nil {
		t.Errorf("the padding at the end is missing: %v", err)
	}
}

// TestFlipped: no byte of the headers and tables makes a panic or more output than the bounds.
func TestFlipped(t *testing.T) {
	for _, name := range []string{"plain", "gzip"} {
		image := fixture(t, name)
		tables := int(le.Uint64(image[64:]))
		bounds := tarstream.Bounds{Bytes: 1 << 20, Entries: 1000, Depth: 20, Target: 4096}
		for i := range image {
			if i >= 96 && (i < tables || i%7 != 0) {
				continue
			}
			for _, flip := range []byte{1, 0x80, 0xff} {
				image[i] ^= flip
				var n counter
				err := unpackBytes(image, options{bounds: bounds}, &n)
				image[i] ^= flip
				if n > 4<<20 {
					t.Errorf("%s: byte %d ^ %#x: %d bytes were written", name, i, flip, n)
				}
				if _, ok := errors.AsType[*fault.Error](err); err != nil && !ok {
					t.Errorf("%s: byte %d ^ %#x: no reason: %v", name, i, flip, err)
				}
			}
		}
	}
}

type counter int64

func (c *counter) Write(p []byte) (int, error) { *c += counter(len(p)); return len(p), nil }

func TestUnsupported(t *testing.T) {
	if got := reason(unpackBytes(fixture(t, "lzo"), usual, io.Discard)); got != fault.UnsupportedCompression {
		t.Errorf("lzo: %q", got)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestWriteFails(t *testing.T) {
	if got := reason(unpackBytes(fixture(t, "gzip"), usual, broken{})); got != fault.Write {
		t.Errorf("%q, want %q", got, fault.Write)
	}
}
