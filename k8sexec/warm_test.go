package k8sexec

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/k8sexec/imageref"
	"podstarter/payload"
)

// TestWarmImages: an image is listed by the name that a job gave it, by that name
// spelled out, and by its digest once that is known; the latest comes first.
func TestWarmImages(t *testing.T) {
	w := newWorld(t, nil)
	warm := func(most int) []string {
		t.Helper()
		names, err := WarmImages(w.private, most)
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	if got := warm(10); len(got) != 0 {
		t.Errorf("nothing has run, but %q is warm", got)
	}
	l := w.lease()
	if _, err := l.Bind(context.Background(), payload.BindRequest{Activation: "job", Image: "debian:stable", Written: "docker://debian:stable"}); err != nil {
		t.Fatal(err)
	}
	release(t, l)
	want := []string{"docker://debian:stable", "docker.io/library/debian:stable"}
	if diff := cmp.Diff(want, warm(10)); diff != "" {
		t.Errorf("after one job (-want +got):\n%s", diff)
	}
	l, c := w.bind("registry.example.com/a/tool:2")
	w.report("payload", w.boots, "registry.example.com/a/tool@"+testDigest)
	eventually(t, "the digest", func() bool { return c.imageID() != "" })
	release(t, l)
	want = append([]string{"registry.example.com/a/tool:2", "registry.example.com/a/tool@" + testDigest}, want...)
	if diff := cmp.Diff(want, warm(10)); diff != "" {
		t.Errorf("after two jobs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[:2], warm(1)); diff != "" {
		t.Errorf("the latest one (-want +got):\n%s", diff)
	}
}

func TestWarmFileIsBounded(t *testing.T) {
	w := newWorld(t, nil)
	l := w.lease()
	for i := range maxWarm + 10 {
		name := fmt.Sprintf("registry.example.com/i:%d", i)
		img, err := imageref.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		l.warmed(name, img, "")
	}
	names, err := WarmImages(w.private, 1000)
	if err != nil || len(names) != maxWarm || names[0] != fmt.Sprintf("registry.example.com/i:%d", maxWarm+9) {
		t.Errorf("%d names, first %q, %v", len(names), names[:1], err)
	}
}

// TestDecodeWarm: entries that are not an image, too old or in the future are left out.
func TestDecodeWarm(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	line := func(asked, name string, age time.Duration) string {
		return fmt.Sprintf(`{"asked":%q,"name":%q,"digest":"nonsense","used":%q}`, asked, name, now.Add(-age).Format(time.RFC3339))
	}
	text := "[" + strings.Join([]string{
		line("x", "not spelled out", 0),
		line("", "docker.io/library/old:1", warmFor+time.Hour),
		line("", "docker.io/library/future:1", -time.Hour),
		line("no image, at all", "docker.io/library/b:1", 2*time.Hour),
		line("a:1", "docker.io/library/a:1", time.Hour),
	}, ",") + "]"
	got := decodeWarm([]byte(text), now)
	want := []warmImage{
		{Asked: "a:1", Name: "docker.io/library/a:1", Used: now.Add(-time.Hour)},
		{Name: "docker.io/library/b:1", Used: now.Add(-2 * time.Hour)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, text := range []string{"", "{", "null", `{"a":1}`, "[1]"} {
		if got := decodeWarm([]byte(text), now); got != nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

func TestWarmFileTooLong(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, warmFile), make([]byte, maxWarmFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if names, err := WarmImages(dir, 5); err == nil {
		t.Errorf("read %q out of a file that is too long", names)
	}
}
