package image

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

func TestWriteTar(t *testing.T) {
	files := []File{
		{Path: "/usr/bin/b", Mode: 0o755, Data: []byte("bb")},
		{Path: "/bin/a", Mode: fs.ModeSetuid | 0o755, Data: []byte("a"), UID: 1, GID: 2},
		{Path: "/bin/link", Mode: fs.ModeSymlink | 0o777, Data: []byte("/bin/a")},
		{Path: "/tmp", Mode: fs.ModeDir | 0o777},
	}
	var first, second bytes.Buffer
	if err := WriteTar(&first, files); err != nil {
		t.Fatal(err)
	}
	files[0], files[2] = files[2], files[0]
	if err := WriteTar(&second, files); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the order of the files changes the layer")
	}
	type entry struct {
		Name, Link, Data string
		Mode             int64
		UID              int
	}
	var got []entry
	tr := tar.NewReader(&first)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, entry{h.Name, h.Linkname, string(data), h.Mode, h.Uid})
	}
	want := []entry{
		{Name: "bin/", Mode: 0o755},
		{Name: "bin/a", Data: "a", Mode: 0o4755, UID: 1},
		{Name: "bin/link", Link: "/bin/a", Mode: 0o777},
		{Name: "tmp/", Mode: 0o777},
		{Name: "usr/", Mode: 0o755},
		{Name: "usr/bin/", Mode: 0o755},
		{Name: "usr/bin/b", Data: "bb", Mode: 0o755},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the layer holds (-want +got):\n%s", diff)
	}
}

func TestWriteTarRefuses(t *testing.T) {
	for name, files := range map[string][]File{
		"relative":  {{Path: "a"}},
		"not clean": {{Path: "/a/../b"}},
		"twice":     {{Path: "/a"}, {Path: "/a"}},
		"no source": {{Path: "/a", Source: "/no/such/file"}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := WriteTar(io.Discard, files); err == nil {
				t.Error("no error")
			}
		})
	}
}

// An image that was packed can be read back, byte by byte, from the registry.
func TestRegistryServesWhatWasPacked(t *testing.T) {
	dir := t.TempDir()
	layer, err := MakeLayer(dir, func(w io.Writer) error { return WriteTar(w, []File{{Path: "/image-name", Data: []byte("x")}}) })
	if err != nil {
		t.Fatal(err)
	}
	packed, err := Image{Name: "x", Layers: []Layer{layer}, Config: v1.Config{User: "nobody"}}.Pack()
	if err != nil {
		t.Fatal(err)
	}
	store := Store{Dir: filepath.Join(dir, "registry")}
	server := httptest.NewServer(store.Handler(log.New(io.Discard, "", 0)))
	defer server.Close()
	addr := strings.TrimPrefix(server.URL, "http://")
	for range 2 {
		if err := store.Add(packed); err != nil {
			t.Fatal(err)
		}
		if err := Push(t.Context(), addr, packed, "tag"); err != nil {
			t.Fatal(err)
		}
	}
	get := func(path string) []byte {
		t.Helper()
		resp, err := http.Get(server.URL + "/v2/" + Repo + "x/" + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s, %v", path, resp.Status, err)
		}
		return body
	}
	var manifest v1.Manifest
	if err := json.Unmarshal(get("manifests/tag"), &manifest); err != nil {
		t.Fatal(err)
	}
	var config v1.ConfigFile
	if err := json.Unmarshal(get("blobs/"+manifest.Config.Digest.String()), &config); err != nil {
		t.Fatal(err)
	}
	// Programs that build on an image want a line of its history for each layer.
	if len(config.History) != len(config.RootFS.DiffIDs) {
		t.Errorf("a history of %d steps for %d layers", len(config.History), len(config.RootFS.DiffIDs))
	}
	if config.Config.User != "nobody" || config.RootFS.DiffIDs[0] != layer.Digest {
		t.Errorf("the configuration is %+v", config)
	}
	want, err := os.ReadFile(layer.Path)
	if err != nil {
		t.Fatal(err)
	}
	if got := get("blobs/" + manifest.Layers[0].Digest.String()); !bytes.Equal(got, want) {
		t.Errorf("the layer has %d bytes, want %d", len(got), len(want))
	}
}

func TestRegistryFaults(t *testing.T) {
	handler := Store{Dir: t.TempDir()}.Handler(log.New(io.Discard, "", 0))
	for repo, want := range map[string]int{"forbidden": 403, "unauthorized": 401, "toomany": 429, "broken": 500, "down": 503, "podstarter": 404} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v2/"+repo+"/x/manifests/latest", nil))
		if w.Code != want {
			t.Errorf("%s answers %d, want %d", repo, w.Code, want)
		}
	}
}

func TestOpenLayerNotesTheDigest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "root.tar")
	if err := os.WriteFile(path, []byte("one"), 0o644); err != nil {
		t.Fatal(err)
	}
	first, err := OpenLayer(path)
	if err != nil {
		t.Fatal(err)
	}
	again, err := OpenLayer(path)
	if err != nil || again != first {
		t.Errorf("OpenLayer = %+v, then %+v, %v", first, again, err)
	}
	if err := os.WriteFile(path, []byte("other"), 0o644); err != nil {
		t.Fatal(err)
	}
	if changed, err := OpenLayer(path); err != nil || changed.Digest == first.Digest {
		t.Errorf("a file of another size keeps the digest: %v, %v", changed.Digest, err)
	}
}

// TestPackForeignAndEmpty: an image may be for another architecture, and one without layers has empty lists: programs that
// read images reject null.
func TestPackForeignAndEmpty(t *testing.T) {
	packed, err := Image{Name: "x", Architecture: "s390x"}.Pack()
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{string(packed.ConfigBlob): `"architecture":"s390x"`, string(packed.Manifest): `"layers":[]`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	if want := `"diff_ids":[]`; !strings.Contains(string(packed.ConfigBlob), want) {
		t.Errorf("no %s in %s", want, packed.ConfigBlob)
	}
}
