package filetransfer

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podstarter/sandbox/manifest"
	"podstarter/sandbox/sandboxtest"
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
			s := sandboxtest.New(t)
			sandboxtest.Put(t, s, c.files)
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
	s := sandboxtest.New(t)
	sandboxtest.Put(t, s, map[string]string{"state": "s", manifest.Name(0): manifestOf(0, "state", "s")})
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("the job leaves")
	cancel(why)
	if err := newShadow(t).transfer(s, plainJob).VerifyCheckpoint(ctx); !errors.Is(err, why) {
		t.Error(err)
	}
}
