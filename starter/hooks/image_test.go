package hooks

import (
	"os"
	"strings"
	"testing"
)

// TestUsesNoImage: what would execute something of the image is found out.
func TestUsesNoImage(t *testing.T) {
	dynamic, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	// A header alone: 64 bits, little-endian, for amd64, no program headers.
	static := make([]byte, 64)
	copy(static, "\x7fELF\x02\x01\x01")
	copy(static[16:], []byte{2, 0, 62, 0, 1})
	static[52] = 64
	for name, tt := range map[string]struct {
		file  []byte
		words string
	}{
		"static":  {static, ""},
		"dynamic": {dynamic, "dynamically"},
		"script":  {[]byte("#!/bin/sh\n"), "interpreter"},
		"nothing": {nil, "not an ELF"},
		"text":    {[]byte("hello"), "not an ELF"},
	} {
		err := usesNoImage(tt.file)
		if (err == nil) != (tt.words == "") || err != nil && !strings.Contains(err.Error(), tt.words) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzUsesNoImage: a file that is no program is refused and does no harm.
func FuzzUsesNoImage(f *testing.F) {
	f.Add([]byte("#!"))
	f.Add([]byte("\x7fELF\x02\x01\x01"))
	f.Fuzz(func(t *testing.T, file []byte) {
		if usesNoImage(file) == nil && !strings.HasPrefix(string(file), "\x7fELF") {
			t.Errorf("%q is taken for a static program", file)
		}
	})
}
