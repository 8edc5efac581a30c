package images

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestPull: what the registry sends fits the digests that it names, and comes no faster
// than it may.
func TestPull(t *testing.T) {
	const size, rate = 1 << 20, 4 << 20
	r, err := Serve(rate)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	reference, err := r.Make("one", size)
	if err != nil {
		t.Fatal(err)
	}
	host, path, _ := strings.Cut(strings.TrimSuffix(reference, ":1"), "/")
	get := func(what string) []byte {
		t.Helper()
		answer, err := http.Get("http://" + host + "/v2/" + path + "/" + what)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		blob, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s, %v", what, answer.Status, err)
		}
		return blob
	}
	type described struct {
		Digest string
		Size   int
	}
	var manifest struct {
		Config described
		Layers []described
	}
	if err := json.Unmarshal(get("manifests/1"), &manifest); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for _, want := range append(manifest.Layers, manifest.Config) {
		blob := get("blobs/" + want.Digest)
		if got := fmt.Sprintf("sha256:%x", sha256.Sum256(blob)); got != want.Digest || len(blob) != want.Size {
			t.Errorf("%d bytes, %s; want %d, %s", len(blob), got, want.Size, want.Digest)
		}
	}
	// The last piece is not waited for.
	if took, least := time.Since(began), time.Second*size/rate*8/10; took < least {
		t.Errorf("it took %s, want %s at least", took, least)
	}
}
