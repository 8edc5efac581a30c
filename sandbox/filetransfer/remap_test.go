package filetransfer

import (
	"context"
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"podstarter/sandbox/sandboxtest"
)

// TestRemapIntoDirectory: a directory for an input's new name is made, unless the site does not
// want that.
func TestRemapIntoDirectory(t *testing.T) {
	const job = plainJob + "TransferInputRemaps = \"a=new/deep/a; b=old/b; d=new2/d\"\n"
	items := map[string][]sent{
		"a file":               {{command: 1, name: "a", mode: 0o600, data: "x"}},
		"a directory":          {{command: 6, name: "d", mode: 0o755}},
		"into one that exists": {{command: 6, name: "old", mode: 0o755}, {command: 1, name: "b", mode: 0o600, data: "x"}},
		"not remapped":         {{command: 1, name: "c/d", mode: 0o600, data: "x"}},
	}
	for name, makes := range map[string]string{"a file": "new/deep/a", "a directory": "new2/d/", "into one that exists": "old/b", "not remapped": "c/d"} {
		for _, keep := range []bool{false, true} {
			f, s := newShadow(t), sandboxtest.New(t)
			f.items = items[name]
			tr := f.transfer(s, job)
			tr.config.KeepDirectories = keep
			_, err := tr.Download(context.Background())
			_, made := contents(t, s.Scratch())[makes]
			fails := keep && (name == "a file" || name == "a directory")
			var v *Error
			if made == fails || fails != errors.As(err, &v) || fails && (v.Code != CodeDownload || v.Subcode != int(unix.ENOENT)) {
				t.Errorf("%s, keep %t: made %t, %v", name, keep, made, err)
			}
		}
	}
}
