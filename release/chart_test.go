package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
)

// TestChart: the package has the version and the time of the release, and real files in place of links, with the contents of
// those in deploy/. Another checkout gives the same bytes.
func TestChart(t *testing.T) {
	r, dir := sample(t)
	path, err := r.writeChart(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := filepath.Base(path), "podstarter-1.2.3.tgz"; got != want {
		t.Errorf("the package is called %s, want %s", got, want)
	}
	want := map[string]string{}
	folder := filepath.Join(r.Source, "deploy", "chart")
	links := 0
	err = filepath.WalkDir(folder, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if d.Type()&fs.ModeSymlink != 0 {
			links++
		}
		text, err := os.ReadFile(file)
		relative, _ := filepath.Rel(folder, file)
		want["podstarter/"+relative] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if links == 0 {
		t.Error("the chart has no links: this test tests nothing")
	}
	got := unpacked(t, path, r.Time)
	if meta := got["podstarter/Chart.yaml"]; !strings.Contains(meta, "\nversion: 1.2.3\n") || !strings.Contains(meta, "appVersion: v1.2.3\n") {
		t.Errorf("Chart.yaml does not have the version:\n%s", meta)
	}
	delete(got, "podstarter/Chart.yaml")
	delete(want, "podstarter/Chart.yaml")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-deploy/chart +package):\n%s", diff)
	}
	if _, err := loader.Load(path); err != nil {
		t.Errorf("Helm does not read it: %v", err)
	}

	other := r
	other.Source = t.TempDir()
	if err := os.CopyFS(filepath.Join(other.Source, "deploy"), os.DirFS(filepath.Join(r.Source, "deploy"))); err != nil {
		t.Fatal(err)
	}
	again, err := other.writeChart(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	second, err := os.ReadFile(again)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Error("two checkouts give two packages")
	}
}

// unpacked are the files of an archive, all of which are plain ones of that time.
func unpacked(t *testing.T, path string, at time.Time) map[string]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	plain, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for archive := tar.NewReader(plain); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg || !h.ModTime.Equal(at) {
			t.Errorf("%s is of type %c and has the time %v", h.Name, h.Typeflag, h.ModTime)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = string(text)
	}
}

// TestChartVersion: Helm takes only versions of Semantic Versioning.
func TestChartVersion(t *testing.T) {
	for version, want := range map[string]string{
		"v1.2.3": "1.2.3", "v1.2.3-4-gc0ffee": "1.2.3-4-gc0ffee", "devel-c0ffee": "0.0.0-devel-c0ffee", "devel-c0ffee-dirty": "0.0.0-devel-c0ffee-dirty",
	} {
		if got := chartVersion(version); got != want {
			t.Errorf("%s: %s, want %s", version, got, want)
		}
		r, dir := sample(t)
		r.Version = version
		if _, err := r.writeChart(dir); err != nil {
			t.Errorf("%s: %v", version, err)
		}
	}
}
