package main

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/unpacker/fault"
	"podstarter/unpacker/sif"
)

var le = binary.LittleEndian

// sifSpec is a SIF with two descriptors, of which the second is the primary partition.
type sifSpec struct {
	total, table  int64
	arch          string
	system        uint32 // type of the file system
	kind          uint32 // type of the partition
	offset, size  int64
	data          []byte
	cut           int // bytes that are missing at the end
	magic, format string
}

const partitionAt = 4096

func newSIF(data []byte) sifSpec {
	return sifSpec{total: 48, table: 128, arch: "02", system: 1, kind: 2, offset: partitionAt << 3, size: int64(len(data)), data: data, magic: "SIF_MAGIC", format: "01"}
}

func (s sifSpec) bytes() []byte {
	b := make([]byte, partitionAt<<3)
	copy(b, "#!/usr/bin/env run-singularity\n")
	copy(b[32:], s.magic)
	copy(b[42:], s.format)
	copy(b[45:], s.arch)
	le.PutUint64(b[88:], uint64(s.total))
	le.PutUint64(b[96:], uint64(s.table))
	first, second := b[128:], b[128+585:]
	le.PutUint32(first, 0x4001)
	first[4] = 1
	le.PutUint32(second, 0x4004)
	second[4] = 1
	le.PutUint64(second[17:], uint64(s.offset))
	le.PutUint64(second[25:], uint64(s.size))
	le.PutUint32(second[201:], s.system)
	le.PutUint32(second[205:], s.kind)
	copy(second[209:], s.arch)
	b = append(b, s.data...)
	return b[:len(b)-s.cut]
}

// TestApptainersSIF: the layout is that of Apptainer, and not only that of these tests.
func TestApptainersSIF(t *testing.T) {
	image, err := os.ReadFile("testdata/apptainer.sif")
	if err != nil {
		t.Fatal(err)
	}
	p, err := sif.Find(bytes.NewReader(image), int64(len(image)))
	if diff := cmp.Diff(sif.Partition{Offset: 32768, Size: 8192, Architecture: "amd64"}, p); err != nil || diff != "" {
		t.Fatalf("%v (-want +got):\n%s", err, diff)
	}
	var out bytes.Buffer
	if err := unpackBytes(image, usual, &out); err != nil {
		t.Fatal(err)
	}
	if n := len(list(t, &out)); n != 600 {
		t.Errorf("%d entries, want 600", n)
	}
}

func TestSIF(t *testing.T) {
	image := fixture(t, "gzip")
	for name, tt := range map[string]struct {
		change func(*sifSpec)
		want   fault.Reason
	}{
		"as it should be":        {func(*sifSpec) {}, ""},
		"without architecture":   {func(s *sifSpec) { s.arch = "00" }, ""},
		"arm64":                  {func(s *sifSpec) { s.arch = "04" }, fault.Architecture},
		"encrypted":              {func(s *sifSpec) { s.system = 5 }, fault.Encrypted},
		"ext3":                   {func(s *sifSpec) { s.system = 2 }, fault.Ext3},
		"raw":                    {func(s *sifSpec) { s.system = 4 }, fault.Ext3},
		"overlay":                {func(s *sifSpec) { s.kind = 4 }, fault.NoImage},
		"no descriptors":         {func(s *sifSpec) { s.total = 0 }, fault.NoImage},
		"2^40 descriptors":       {func(s *sifSpec) { s.total = 1 << 40 }, fault.Malformed},
		"-1 descriptors":         {func(s *sifSpec) { s.total = -1 }, fault.Malformed},
		"table behind the end":   {func(s *sifSpec) { s.table = 1 << 40 }, fault.Truncated},
		"table at the end":       {func(s *sifSpec) { s.table = math.MaxInt64 }, fault.Truncated},
		"table in the header":    {func(s *sifSpec) { s.table = 0 }, fault.Malformed},
		"negative table":         {func(s *sifSpec) { s.table = math.MinInt64 }, fault.Malformed},
		"partition in the head":  {func(s *sifSpec) { s.offset = 0 }, fault.Malformed},
		"partition far away":     {func(s *sifSpec) { s.offset = math.MaxInt64 }, fault.Truncated},
		"partition too long":     {func(s *sifSpec) { s.size = math.MaxInt64 }, fault.Truncated},
		"negative partition":     {func(s *sifSpec) { s.size = -1 }, fault.Malformed},
		"partition without data": {func(s *sifSpec) { s.size = 0 }, fault.Truncated},
		"cut off":                {func(s *sifSpec) { s.cut = 5000 }, fault.Truncated},
		"version 02":             {func(s *sifSpec) { s.format = "02" }, fault.Malformed},
		"another magic":          {func(s *sifSpec) { s.magic = "TIF_MAGIC" }, fault.NoImage},
		"no squashfs in it":      {func(s *sifSpec) { s.data = make([]byte, len(s.data)) }, fault.NoImage},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSIF(image)
			tt.change(&s)
			var out bytes.Buffer
			err := unpackBytes(s.bytes(), usual, &out)
			if got := reason(err); got != tt.want {
				t.Fatalf("%q, want %q: %v", got, tt.want, err)
			}
			if err == nil && len(list(t, &out)) != len(content()) {
				t.Error("entries are missing")
			}
		})
	}
}

func TestSIFCutOff(t *testing.T) {
	image := newSIF(fixture(t, "gzip")).bytes()
	for n := 0; n < len(image); n += 1 + n/20 {
		want := fault.Truncated
		if n < 42 {
			want = fault.NoImage
		}
		if got := reason(unpackBytes(image[:n], usual, io.Discard)); got != want {
			t.Errorf("%d bytes: %q, want %q", n, got, want)
		}
	}
}
