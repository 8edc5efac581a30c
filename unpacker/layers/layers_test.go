package layers

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"podstarter/unpacker/fault"
	"podstarter/unpacker/tarstream"
)

// entry is one of a layer; body is a file's content or a link's target.
type entry struct {
	kind byte
	name string
	mode int64
	body string
}

func archive(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Typeflag: e.kind, Name: e.name, Mode: e.mode}
		switch e.kind {
		case tar.TypeReg:
			h.Size = int64(len(e.body))
		case tar.TypeXGlobalHeader:
			h.PAXRecords = map[string]string{"comment": e.body}
		default:
			h.Linkname = e.body
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := io.WriteString(w, e.body); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// together is the archive of layers that the program reads.
func together(t testing.TB, layers ...[]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i, l := range layers {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: fmt.Sprint(i), Size: int64(len(l))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(l); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write(data)
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zstandard(t testing.TB, data []byte, o ...zstd.EOption) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b, o...)
	if err == nil {
		_, err = z.Write(data)
	}
	if err == nil {
		err = z.Flush() // before it knows that this is all, and needs no window
	}
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

var ample = tarstream.Bounds{Bytes: 1 << 20, Entries: 1000, Depth: 20, Target: 4096}

// unpacked are the entries of the stream, a line each.
func unpacked(data []byte, count int, work int64, bounds tarstream.Bounds) (lines []string, err error) {
	var out bytes.Buffer
	w := tarstream.New(&out, bounds)
	if err = Walk(bytes.NewReader(data), count, work, w); err == nil {
		err = w.Close()
	}
	r := tar.NewReader(&out)
	for {
		h, e := r.Next()
		if e != nil {
			return lines, err
		}
		text, _ := io.ReadAll(io.LimitReader(r, 100))
		line := fmt.Sprintf("%c %s %o", h.Typeflag, h.Name, h.Mode)
		for _, more := range []string{h.Linkname, h.PAXRecords[tarstream.Record], string(text)} {
			if more != "" {
				line += " " + more
			}
		}
		lines = append(lines, line)
	}
}

func TestWalk(t *testing.T) {
	const dir, file, symlink, link = tar.TypeDir, tar.TypeReg, tar.TypeSymlink, tar.TypeLink
	base := archive(t, entry{dir, "./", 0o755, ""}, entry{dir, "./a/", 0o750, ""}, entry{file, "./a/b", 0o4640, "one"}, entry{symlink, "c", 0o777, "../a"}, entry{link, "d", 0, "./a/b"})
	lines := []string{"5 a/ 755", "0 a/b 644 one", "2 c 777 ../a", "1 d 0 a/b"}
	for name, tt := range map[string]struct {
		layers [][]byte
		want   []string
		reason fault.Reason
	}{
		"plain": {layers: [][]byte{base}, want: lines},
		"gzip":  {layers: [][]byte{gzipped(t, base)}, want: lines},
		"zstd":  {layers: [][]byte{zstandard(t, base)}, want: lines},
		"zstd with a frame to skip": {
			layers: [][]byte{append([]byte{0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 'x', 'y'}, zstandard(t, base)...)}, want: lines,
		},
		"no end":   {layers: [][]byte{base[:len(base)-1024]}, want: lines},
		"an empty": {layers: [][]byte{{}, archive(t), gzipped(t, nil)}, want: nil},
		"removed": {
			layers: [][]byte{base, gzipped(t, archive(t, entry{file, "a/.wh.b", 0, ""}, entry{file, ".wh.c", 0, ""}, entry{file, ".wh..wh.plnk", 0, ""}))},
			want:   append(append([]string(nil), lines...), "0 a/b 0 itself", "0 c 0 itself"),
		},
		"emptied": {
			layers: [][]byte{base, archive(t, entry{dir, "a", 0o755, ""}, entry{file, "a/.wh..wh..opq", 0, ""}, entry{file, "a/e", 0o444, "two"}), archive(t, entry{file, ".wh..wh..opq", 0, ""})},
			want:   append(append([]string(nil), lines...), "5 a/ 755", "0 a 0 contents", "0 a/e 444 two", "0 . 0 contents"),
		},
		"emptied late":       {layers: [][]byte{archive(t, entry{file, "a/b/c", 0, ""}, entry{file, "a/.wh..wh..opq", 0, ""})}, reason: fault.Malformed, want: []string{"0 a/b/c 0"}},
		"emptied in another": {layers: [][]byte{archive(t, entry{file, "a/b", 0, ""}), archive(t, entry{file, "a/.wh..wh..opq", 0, ""})}, want: []string{"0 a/b 0", "0 a 0 contents"}},
		"names that lead out": {
			layers: [][]byte{archive(t, entry{file, "../../x", 0o644, ""}, entry{file, "/y/../z", 0o644, ""}, entry{link, "l", 0, "../../x"}, entry{dir, "..", 0o755, ""})},
			want:   []string{"0 x 644", "0 z 644", "1 l 0 x"},
		},
		"devices":                 {layers: [][]byte{archive(t, entry{tar.TypeChar, "n", 0o666, ""}, entry{tar.TypeBlock, "m", 0o666, ""}, entry{tar.TypeFifo, "p", 0o666, ""})}, want: []string{"6 p 666"}},
		"of the whole archive":    {layers: [][]byte{archive(t, entry{tar.TypeXGlobalHeader, "", 0, "words"}, entry{file, "x", 0o644, ""})}, want: []string{"0 x 644"}},
		"removes no name":         {layers: [][]byte{archive(t, entry{file, "a/.wh.", 0, ""})}, reason: fault.Malformed},
		"removes what is above":   {layers: [][]byte{archive(t, entry{file, "a/.wh...", 0, ""})}, reason: fault.Malformed},
		"links to the root":       {layers: [][]byte{archive(t, entry{link, "l", 0, "/"})}, reason: fault.Malformed},
		"a long name":             {layers: [][]byte{archive(t, entry{file, strings.Repeat("x", 256), 0, ""})}, reason: fault.Malformed},
		"deep":                    {layers: [][]byte{archive(t, entry{file, strings.Repeat("x/", 20) + "x", 0, ""})}, reason: fault.TooLarge},
		"no archive":              {layers: [][]byte{[]byte(strings.Repeat("garbage ", 100))}, reason: fault.Malformed},
		"gzip cut":                {layers: [][]byte{gzipped(t, base)[:40]}, reason: fault.Truncated},
		"zstd cut":                {layers: [][]byte{zstandard(t, base)[:40]}, reason: fault.Truncated},
		"cut in a file":           {layers: [][]byte{archive(t, entry{file, "x", 0o644, "0123456789"})[:515]}, reason: fault.Truncated, want: []string{"0 x 644 012"}},
		"a type that no file has": {layers: [][]byte{archive(t, entry{'V', "x", 0o644, ""})}, reason: fault.Malformed},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := unpacked(together(t, tt.layers...), len(tt.layers), 1<<30, ample)
			if (err == nil) != (tt.reason == "") || err != nil && fault.Of(err) != tt.reason {
				t.Errorf("%v, want reason %q", err, tt.reason)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// counting counts what was read.
type counting struct {
	from io.Reader
	n    int
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.n += n
	return n, err
}

// TestRead: all of the archive is read, whatever comes after a layer's entries: whoever sends it checks the last byte, too.
func TestRead(t *testing.T) {
	layer := append(archive(t, entry{tar.TypeReg, "x", 0o644, "y"}), make([]byte, 1<<20)...)
	all := together(t, layer)
	in := &counting{from: bytes.NewReader(all)}
	if err := Walk(in, 1, 1<<30, tarstream.New(io.Discard, ample)); err != nil || in.n != len(all) {
		t.Errorf("read %d bytes of %d, %v", in.n, len(all), err)
	}
	if err := Walk(bytes.NewReader(together(t, layer, layer)), 1, 1<<30, tarstream.New(io.Discard, ample)); fault.Of(err) != fault.Malformed || err == nil {
		t.Errorf("one layer more: %v", err)
	}
}

// TestBounds: bombs end at the bounds.
func TestBounds(t *testing.T) {
	zeros := string(make([]byte, 2<<20))
	many := make([]entry, 2000)
	for i := range many {
		many[i] = entry{tar.TypeReg, fmt.Sprint(i), 0o644, ""}
	}
	removals := make([]entry, 2000)
	for i := range removals {
		removals[i] = entry{tar.TypeReg, fmt.Sprintf(".wh.%d", i), 0, ""}
	}
	for name, tt := range map[string]struct {
		layer []byte
		work  int64
		count int
		want  fault.Reason
	}{
		"bytes":               {layer: gzipped(t, archive(t, entry{tar.TypeReg, "x", 0o644, zeros})), work: 1 << 30, count: 1, want: fault.TooLarge},
		"entries":             {layer: gzipped(t, archive(t, many...)), work: 1 << 30, count: 1, want: fault.TooLarge},
		"entries that remove": {layer: gzipped(t, archive(t, removals...)), work: 1 << 30, count: 1, want: fault.TooLarge},
		"between files":       {layer: gzipped(t, archive(t, many[:900]...)), work: 100 << 10, count: 1, want: fault.TooLarge},
		"a window":            {layer: zstandard(t, archive(t, entry{tar.TypeReg, "x", 0o644, "x"}), zstd.WithWindowSize(256<<20)), work: 1 << 30, count: 1, want: fault.Malformed},
		"a layer missing":     {layer: archive(t), work: 1 << 30, count: 2, want: fault.Truncated},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := unpacked(together(t, tt.layer), tt.count, tt.work, ample); fault.Of(err) != tt.want || err == nil {
				t.Errorf("%v, want reason %q", err, tt.want)
			}
		})
	}
}

// FuzzWalk: no layer panics, and none makes an entry that leads out or that is more than the bounds.
func FuzzWalk(f *testing.F) {
	layer := archive(f, entry{tar.TypeDir, "a", 0o755, ""}, entry{tar.TypeReg, "a/b", 0o644, "x"}, entry{tar.TypeReg, "a/.wh.c", 0, ""}, entry{tar.TypeReg, "d/.wh..wh..opq", 0, ""}, entry{tar.TypeLink, "e", 0, "../a/b"})
	f.Add(layer)
	f.Add(gzipped(f, layer))
	f.Add(zstandard(f, layer))
	f.Fuzz(func(t *testing.T, data []byte) {
		const most = 50
		lines, _ := unpacked(together(t, data, layer), 2, 1<<20, tarstream.Bounds{Bytes: 1 << 16, Entries: most, Depth: 10, Target: 100})
		if len(lines) > most {
			t.Errorf("%d entries", len(lines))
		}
		for _, l := range lines {
			if name := strings.Fields(l)[1]; strings.HasPrefix(name, "/") || strings.Contains("/"+name+"/", "/../") {
				t.Errorf("entry %q", l)
			}
		}
	})
}
