package sandbox

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func sha(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

// manifestOf is what sha256sum(1) would say of files: "name", "content", ...
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
		if got := manifestNumber(name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
	if got := manifestName(7); got != "_condor_checkpoint_MANIFEST.0007" {
		t.Error(got)
	}
}

func TestManifestWritten(t *testing.T) {
	var m manifest
	for name, content := range map[string]string{"*odd name": "x"} {
		sum := sha256.Sum256([]byte(content))
		must(t, m.add(sum[:], name))
	}
	sum := sha256.Sum256([]byte("y"))
	must(t, m.add(sum[:], "d/y"))
	want := manifestOf(3, "*odd name", "x", "d/y", "y")
	if diff := cmp.Diff(want, string(m.seal(manifestName(3)))); diff != "" {
		t.Error(diff)
	}
	for _, name := range []string{"two\nlines", "blank ", "tab\t", "nul\x00"} {
		if err := m.add(sum[:], name); !errors.Is(err, errManifestName) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if err := m.add(sum[:], strings.Repeat("x", mostManifest)); !errors.Is(err, errManifestSize) {
		t.Error(err)
	}
}

func TestManifestRead(t *testing.T) {
	good := manifestOf(1, "a", "1", "b c", "2")
	name := manifestName(1)
	got, err := readManifest(name, []byte(good))
	must(t, err)
	if diff := cmp.Diff([]listed{{sha("1"), "a"}, {sha("2"), "b c"}}, slices.Collect(got), cmp.AllowUnexported(listed{})); diff != "" {
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
		if files, err := readManifest(name, []byte(text)); err == nil {
			t.Errorf("%s: taken for one of %v", what, slices.Collect(files))
		}
	}
}

func TestVerifyCheckpoint(t *testing.T) {
	const name = "_condor_checkpoint_MANIFEST.0002"
	good := manifestOf(2, "state", "s", "d/f", "ff")
	for _, c := range []struct {
		what   string
		files  map[string]string
		number int64
		want   string // "" for no error
		stays  bool
	}{
		{"none", map[string]string{"state": "s"}, 0, "", false},
		{"good", map[string]string{"state": "s", "d/f": "ff", name: good}, 0, "", false},
		{"changed", map[string]string{"state": "S", "d/f": "ff", name: good}, 2,
			"Checkpoint file 'state' did not have expected checksum (" + sha("S") + " vs " + sha("s") + "), aborting.", true},
		{"missing", map[string]string{"state": "s", name: good}, 2,
			"Failed to open checkpoint file ('d/f') to compute checksum: (errno 2) No such file or directory, aborting.", true},
		{"bad manifest", map[string]string{"state": "s", name: "x"}, 2, "Invalid MANIFEST file, aborting: " + name + ": it lists no files", true},
		{"two", map[string]string{name: good, "_condor_checkpoint_MANIFEST.0003": good}, -1, "Found more than one MANIFEST file, aborting.", true},
		{"link out", map[string]string{"state": "->/etc/passwd", "d/f": "ff", name: good}, 2, "leads out of the job's sandbox", true},
		{"name out", map[string]string{name: manifestOf(2, "../x", "")}, 2, "leads out of the job's sandbox", true},
		{"directory of that name", map[string]string{name + "/": "", "state": "s"}, 0, "", true},
		{"directory listed", map[string]string{name: manifestOf(2, "d", ""), "d/": ""}, 2, "(errno 21) Is a directory", true},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := newSandbox(t)
			put(t, s, c.files)
			tr := newShadow(t).transfer(s, plainJob)
			err := tr.VerifyCheckpoint(context.Background())
			var bad *CheckpointError
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (!errors.As(err, &bad) || bad.Number != c.number || !strings.Contains(bad.Text, c.want)):
				t.Errorf("%#v", err)
			}
			if _, err := os.Lstat(filepath.Join(s.Scratch(), name)); (err == nil) != c.stays {
				t.Errorf("the manifest afterwards: %v", err)
			}
		})
	}
}

func TestVerifyCheckpointCancelled(t *testing.T) {
	s := newSandbox(t)
	put(t, s, map[string]string{"state": "s", manifestName(0): manifestOf(0, "state", "s")})
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("the job leaves")
	cancel(why)
	if err := newShadow(t).transfer(s, plainJob).VerifyCheckpoint(ctx); !errors.Is(err, why) {
		t.Error(err)
	}
}

// FuzzManifest reads what a shadow may send for a manifest.
func FuzzManifest(f *testing.F) {
	f.Add(manifestOf(1, "a", "1", "b c", "2"))
	f.Add(manifestOf(1, "../x", "", "/etc/passwd", ""))
	f.Add("x *y\n")
	f.Fuzz(func(t *testing.T, text string) {
		files, err := readManifest(manifestName(1), []byte(text))
		if err != nil {
			return
		}
		if n := len(slices.Collect(files)); n == 0 || n > strings.Count(text, "\n") {
			t.Errorf("%d files of %d lines", n, strings.Count(text, "\n"))
		}
		// Nothing but its own checksum makes it whole.
		if _, err := readManifest(manifestName(1), []byte("0"+text)); err == nil {
			t.Error("it may be changed")
		}
	})
}
