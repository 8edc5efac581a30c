// Package cache keeps slow build results (built components, root file systems) in the user's cache directory, keyed by
// everything that went into them, so that a fresh checkout on the same machine starts warm.
package cache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"podstarter/integration/pool/internal/statedir"
)

// Cache is a directory of families of entries.
type Cache struct {
	Root string
}

// User returns the cache in the user's cache directory.
func User() (Cache, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return Cache{}, fmt.Errorf("finding the user's cache directory: %w", err)
	}
	return Cache{Root: filepath.Join(dir, "podstarter")}, nil
}

// Key makes a short key out of everything that goes into an entry.
func Key(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s,", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// Dir returns the directory of an entry. If there is none yet, build fills an empty directory, which becomes the entry
// when build succeeds. An interrupted build leaves no entry. Two programs that want the same family at the same time
// take turns.
func (c Cache) Dir(ctx context.Context, family, key string, build func(ctx context.Context, dir string) error) (string, error) {
	entry := filepath.Join(c.Root, family, key)
	if _, err := os.Stat(entry); err == nil {
		return entry, nil
	}
	unlock, err := statedir.Lock(ctx, filepath.Join(c.Root, family+".lock"), nil)
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(entry); err == nil {
		return entry, nil
	}
	tmp := filepath.Join(c.Root, family, ".building")
	if err := os.RemoveAll(tmp); err != nil {
		return "", fmt.Errorf("clearing an interrupted build of %s: %w", family, err)
	}
	if err := os.MkdirAll(tmp, 0o755); err != nil {
		return "", fmt.Errorf("making room for %s: %w", family, err)
	}
	if err := build(ctx, tmp); err != nil {
		return "", fmt.Errorf("building %s: %w", family, err)
	}
	if err := os.Rename(tmp, entry); err != nil {
		return "", fmt.Errorf("keeping %s: %w", family, err)
	}
	return entry, nil
}
