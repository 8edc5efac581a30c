package cache

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestDir(t *testing.T) {
	c := Cache{Root: t.TempDir()}
	builds := 0
	build := func(_ context.Context, dir string) error {
		builds++
		return os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o644)
	}
	for range 2 {
		dir, err := c.Dir(t.Context(), "family", "key", build)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(dir, "file")); err != nil {
			t.Error(err)
		}
	}
	if builds != 1 {
		t.Errorf("built %d times", builds)
	}
	if _, err := c.Dir(t.Context(), "family", "other", build); err != nil || builds != 2 {
		t.Errorf("another key: %v, %d builds", err, builds)
	}
}

// A build that fails half way, or is killed, must not be taken for an entry.
func TestFailedBuildLeavesNothing(t *testing.T) {
	c := Cache{Root: t.TempDir()}
	wrong := errors.New("no")
	_, err := c.Dir(t.Context(), "family", "key", func(_ context.Context, dir string) error {
		if err := os.WriteFile(filepath.Join(dir, "half"), nil, 0o644); err != nil {
			return err
		}
		return wrong
	})
	if !errors.Is(err, wrong) {
		t.Fatalf("error %v", err)
	}
	dir, err := c.Dir(t.Context(), "family", "key", func(context.Context, string) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("the entry holds %v, %v", entries, err)
	}
}

func TestKeyTellsPartsApart(t *testing.T) {
	if Key("ab", "c") == Key("a", "bc") {
		t.Error("parts that join to the same text have the same key")
	}
}
