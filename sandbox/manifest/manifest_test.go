package manifest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func sha(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

// manifestOf is the output of sha256sum(1) for files: "name", "content", ...
func manifestOf(number int, pairs ...string) string {
	text := ""
	for i := 0; i < len(pairs); i += 2 {
		text += sha(pairs[i+1]) + " *" + pairs[i] + "\n"
	}
	return text + sha(text) + fmt.Sprintf(" *_condor_checkpoint_MANIFEST.%04d\n", number)
}

func TestManifestNames(t *testing.T) {
	for name, want := range map[string]int64{
		"_condor_checkpoint_MANIFEST.0000": 0, "_condor_checkpoint_MANIFEST.0017": 17, "_condor_checkpoint_MANIFEST.12345": 12345,
		"_condor_checkpoint_MANIFEST.": -1, "_condor_checkpoint_MANIFEST.1a": -1, "_condor_checkpoint_MANIFEST.-1": -1, "_condor_checkpoint_FAILURE.0001": -1,
		"x_condor_checkpoint_MANIFEST.1": -1, "_condor_checkpoint_MANIFEST.99999999999999999999": -1,
	} {
		if got := Number(name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
	if got := Name(7); got != "_condor_checkpoint_MANIFEST.0007" {
		t.Error(got)
	}
}

func TestManifestWritten(t *testing.T) {
	var m Manifest
	for name, content := range map[string]string{"*odd name": "x"} {
		sum := sha256.Sum256([]byte(content))
		must(t, m.Add(sum[:], name))
	}
	sum := sha256.Sum256([]byte("y"))
	must(t, m.Add(sum[:], "d/y"))
	want := manifestOf(3, "*odd name", "x", "d/y", "y")
	if diff := cmp.Diff(want, string(m.Seal(Name(3)))); diff != "" {
		t.Error(diff)
	}
	for _, name := range []string{"two\nlines", "blank ", "tab\t", "nul\x00"} {
		if err := m.Add(sum[:], name); !errors.Is(err, ErrName) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if err := m.Add(sum[:], strings.Repeat("x", MaxSize)); !errors.Is(err, ErrSize) {
		t.Error(err)
	}
}

func TestManifestRead(t *testing.T) {
	good := manifestOf(1, "a", "1", "b c", "2")
	name := Name(1)
	got, err := Read(name, []byte(good))
	must(t, err)
	if diff := cmp.Diff([]File{{sha("1"), "a"}, {sha("2"), "b c"}}, slices.Collect(got), cmp.AllowUnexported(File{})); diff != "" {
		t.Error(diff)
	}
	for what, text := range map[string]string{
		"empty":         "",
		"one line":      manifestOf(1),
		"cut":           good[:len(good)-70],
		"changed":       strings.Replace(good, "b c", "b d", 1),
		"another's":     manifestOf(2, "a", "1"),
		"without names": manifestOf(1, "", ""),
		"garbage":       "\x00\xff\n\n\n",
	} {
		if files, err := Read(name, []byte(text)); err == nil {
			t.Errorf("%s: taken for one of %v", what, slices.Collect(files))
		}
	}
}

// FuzzManifest reads what a shadow may send for a manifest.
func FuzzManifest(f *testing.F) {
	f.Add(manifestOf(1, "a", "1", "b c", "2"))
	f.Add(manifestOf(1, "../x", "", "/etc/passwd", ""))
	f.Add("x *y\n")
	f.Fuzz(func(t *testing.T, text string) {
		files, err := Read(Name(1), []byte(text))
		if err != nil {
			return
		}
		if n := len(slices.Collect(files)); n == 0 || n > strings.Count(text, "\n") {
			t.Errorf("%d files of %d lines", n, strings.Count(text, "\n"))
		}
		// Only its own checksum makes it valid.
		if _, err := Read(Name(1), []byte("0"+text)); err == nil {
			t.Error("it may be changed")
		}
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
