package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// TestImages: the archives are valid, for each architecture, and contain the files
// of deploy/image/Dockerfile; on a base, also the base's files.
func TestImages(t *testing.T) {
	r, dir := sample(t)
	r.Base = serveBase(t)
	if err := r.writeImages(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	for archive, layers := range map[string]int{"podstarter.oci.tar": 1, "podstarter-pilot.oci.tar": 3} {
		images := open(t, filepath.Join(dir, archive), r.Version)
		if len(images) != len(architectures) {
			t.Fatalf("%s has %d images, want %d", archive, len(images), len(architectures))
		}
		for i, arch := range architectures {
			config, err := images[i].ConfigFile()
			if err != nil {
				t.Fatal(err)
			}
			if config.Architecture != arch || config.OS != "linux" || !config.Created.Equal(r.Time) || config.Config.Labels["org.opencontainers.image.version"] != r.Version {
				t.Errorf("%s, %s: %+v", archive, arch, config)
			}
			all, err := images[i].Layers()
			if err != nil || len(all) != layers {
				t.Fatalf("%s, %s has %d layers, %v; want %d", archive, arch, len(all), err, layers)
			}
			files := unpack(t, all[len(all)-1], r.Time)
			if diff := cmp.Diff(dockerfile(t), slices.Sorted(maps.Keys(files))); diff != "" {
				t.Errorf("%s, %s: files of the Dockerfile (-) and of the layer (+):\n%s", archive, arch, diff)
			}
			if got, want := files["opt/podstarter/bin/condor_pod_wrapper"], "condor_pod_wrapper for "+arch; got != want {
				t.Errorf("%s, %s: the wrapper is %q, want %q", archive, arch, got, want)
			}
		}
	}
}

// TestImagesAreReproducible: neither the time of the files nor the place counts.
func TestImagesAreReproducible(t *testing.T) {
	var all [][]byte
	for i := range 2 {
		r, dir := sample(t)
		for _, arch := range architectures {
			then := time.Unix(int64(1000*i), 0)
			if err := os.Chtimes(r.program(dir, "condor_pod_starter", arch), then, then); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.writeImages(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "podstarter.oci.tar"))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text)
	}
	if !bytes.Equal(all[0], all[1]) {
		t.Error("the same files give other bytes")
	}
}

func TestNoBase(t *testing.T) {
	r, dir := sample(t)
	r.Base = "not a reference"
	if err := r.writeImages(t.Context(), dir); err == nil {
		t.Error("a base that is not an image is accepted")
	}
}

// serveBase is an image of two layers for both architectures, in a registry.
func serveBase(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	ref, err := name.ParseReference(strings.TrimPrefix(server.URL, "http://") + "/htcondor:25")
	if err != nil {
		t.Fatal(err)
	}
	var index v1.ImageIndex = empty.Index
	for _, arch := range architectures {
		img, err := random.Image(100, 2)
		if err != nil {
			t.Fatal(err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}}})
	}
	if err := remote.WriteIndex(ref, index); err != nil {
		t.Fatal(err)
	}
	return ref.String()
}

// open unpacks an OCI archive and returns its images in the order of the index.
func open(t *testing.T, archive, version string) []v1.Image {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dir := t.TempDir()
	if err := os.CopyFS(dir, tarFS(t, f)); err != nil {
		t.Fatal(err)
	}
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := top.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 || manifest.Manifests[0].Annotations[refName] != version {
		t.Fatalf("the archive's index is %+v, %v; want one entry, named %s", manifest, err, version)
	}
	index, err := top.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Errorf("%s: %v", archive, err)
	}
	if manifest, err = index.IndexManifest(); err != nil {
		t.Fatal(err)
	}
	var images []v1.Image
	for _, m := range manifest.Manifests {
		img, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		images = append(images, img)
	}
	return images
}

// tarFS is a directory with the contents of a tar file.
func tarFS(t *testing.T, r io.Reader) fs.FS {
	t.Helper()
	dir := t.TempDir()
	each(t, r, func(h *tar.Header, text []byte) {
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
			return
		}
		put(t, path, string(text))
	})
	return os.DirFS(dir)
}

// unpack returns a layer's files, and checks the owners and times of all.
func unpack(t *testing.T, layer v1.Layer, want time.Time) map[string]string {
	t.Helper()
	r, err := layer.Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	files := map[string]string{}
	each(t, r, func(h *tar.Header, text []byte) {
		if h.Uid != 0 || h.Gid != 0 || !h.ModTime.Equal(want) || h.Mode&0o022 != 0 {
			t.Errorf("%s: user %d, group %d, mode %o, time %s", h.Name, h.Uid, h.Gid, h.Mode, h.ModTime)
		}
		if h.Typeflag == tar.TypeReg {
			files[h.Name] = string(text)
		}
	})
	return files
}

func each(t *testing.T, r io.Reader, do func(h *tar.Header, text []byte)) {
	t.Helper()
	whole, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	// Go's reader accepts an archive without its end, others do not.
	if !bytes.HasSuffix(whole, make([]byte, 2*512)) || len(whole)%512 != 0 {
		t.Errorf("an archive of %d bytes does not end with two empty blocks", len(whole))
	}
	for tr := tar.NewReader(bytes.NewReader(whole)); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		do(h, text)
	}
}

// dockerfile are the files that deploy/image/Dockerfile copies.
func dockerfile(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../deploy/image/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	// Not the line that copies from another stage.
	for _, line := range regexp.MustCompile(`(?m)^COPY ([^-].*)$`).FindAllStringSubmatch(string(text), -1) {
		words := strings.Fields(line[1])
		to := strings.TrimPrefix(words[len(words)-1], "/")
		for _, from := range words[:len(words)-1] {
			if strings.HasSuffix(to, "/") {
				files = append(files, to+filepath.Base(from))
			} else {
				files = append(files, to)
			}
		}
	}
	if len(files) < 3 {
		t.Fatal(fmt.Errorf("the Dockerfile copies %q only; is it read right?", files))
	}
	slices.Sort(files)
	return files
}
