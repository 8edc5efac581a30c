package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

//go:embed tap.go.txt
var tap []byte

// renamed are the functions that each packet and each key pass, in
// internal/cedar/crypto.go.
var renamed = [][2]string{
	{"func (s *Stream) setKey(", "func (s *Stream) plainSetKey("},
	{"func newAEAD(", "func plainAEAD("},
	{"func (h *half) note(", "func (h *half) plainNote("},
}

// overlaid is the source with those functions renamed.
func overlaid(source []byte) ([]byte, error) {
	for _, r := range renamed {
		if n := bytes.Count(source, []byte(r[0])); n != 1 {
			return nil, fmt.Errorf("internal/cedar/crypto.go has %d functions that begin %q, not one; the recorder must follow it", n, r[0])
		}
		source = bytes.Replace(source, []byte(r[0]), []byte(r[1]), 1)
	}
	return source, nil
}

// build makes a starter that writes its streams into a directory of the
// execution point, and returns its path. Temporary files go into tmp.
func build(ctx context.Context, root, tmp, directory string) (string, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return "", err
	}
	original := filepath.Join(root, "internal", "cedar", "crypto.go")
	source, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	if source, err = overlaid(source); err != nil {
		return "", err
	}
	files := map[string]string{
		original: filepath.Join(tmp, "crypto.go"),
		filepath.Join(root, "internal", "cedar", "tap.go"): filepath.Join(tmp, "tap.go"),
	}
	overlay, err := json.Marshal(map[string]any{"Replace": files})
	if err != nil {
		return "", err
	}
	for name, text := range map[string][]byte{"crypto.go": source, "tap.go": tap, "overlay.json": overlay} {
		if err := os.WriteFile(filepath.Join(tmp, name), text, 0o644); err != nil {
			return "", err
		}
	}
	program := filepath.Join(tmp, "condor_pod_starter")
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-overlay", filepath.Join(tmp, "overlay.json"),
		"-ldflags", "-s -w -X podstarter/internal/cedar.directory="+directory, "-o", program, "./starter")
	command.Dir = root
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building a starter that records: %w\n%s", err, out)
	}
	return program, nil
}
