package imagetree

import (
	"archive/tar"
	"bytes"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzWrite: no stream panics, none touches what is outside of the root, and none leaves a file that gives
// rights.
func FuzzWrite(f *testing.F) {
	const dir, file, symlink, link = tar.TypeDir, tar.TypeReg, tar.TypeSymlink, tar.TypeLink
	for _, entries := range [][]entry{
		{{dir, "a", 0o755, ""}, {file, "a/b", 0o4755, "x"}, {link, "c", 0, "a/b"}, {symlink, "d", 0, "../outside"}},
		{{symlink, "a", 0, "../outside"}, {file, "a/old", 0o644, "x"}},
		{{link, "a", 0, "../outside/old"}, {tar.TypeFifo, "p", 0o644, ""}, {tar.TypeChar, "n", 0o644, ""}},
	} {
		f.Add(stream(f, entries...), false)
		f.Add(stream(f, entries...), true)
	}
	f.Add(stream(f, entry{symlink, "a", 0, "../outside"}, entry{removal, "a/old", 0, RecordGone}, entry{removal, "a", 0, RecordEmptied}, entry{removal, ".", 0, RecordEmptied}, entry{file, "a/b/c", 0o644, "x"}), true)
	f.Fuzz(func(t *testing.T, data []byte, layers bool) {
		base := t.TempDir()
		must(t, os.Mkdir(base+"/outside", 0o755), os.Mkdir(base+"/root", 0o755), os.WriteFile(base+"/outside/old", []byte("precious"), 0o600))
		r := writeBy(t, base+"/root", data, Order{Limits: Limits{Bytes: 1 << 20, Entries: 100}, Layers: layers})
		if r.Entries > 100 || r.Bytes > 1<<20 {
			t.Errorf("more than the limits: %+v", r)
		}
		if diff := cmp.Diff(map[string]string{"old": "-rw------- precious"}, tree(t, base+"/outside")); diff != "" {
			t.Errorf("outside (-want +got):\n%s", diff)
		}
		for name, what := range tree(t, base+"/root") {
			if bytes.ContainsAny([]byte(what[:10]), "ugcbDS") {
				t.Errorf("%q is %s", name, what)
			}
		}
	})
}
