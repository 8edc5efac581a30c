package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// sumsFile is what sha256sum -c reads.
const sumsFile = "SHA256SUMS"

// writeSums writes the checksums of all other files of a directory.
func writeSums(dir string) error {
	all, err := sums(dir)
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if name != sumsFile {
			fmt.Fprintf(&text, "%s  %s\n", all[name], name)
		}
	}
	return os.WriteFile(filepath.Join(dir, sumsFile), []byte(text.String()), 0o644)
}

// sums are the checksums of a directory's files, by their names.
func sums(dir string) (map[string]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, e := range entries {
		if all[e.Name()], err = sum(filepath.Join(dir, e.Name())); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func sum(path string) (string, error) {
	h := sha256.New()
	if err := copyFile(h, path); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func sorted(names []string) []string {
	slices.Sort(names)
	return names
}
