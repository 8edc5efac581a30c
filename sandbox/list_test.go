package sandbox_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podstarter/sandbox"
	"podstarter/sandbox/sandboxtest"
)

// TestWriteListIsBounded: what is written fits, and ends with a line.
func TestWriteListIsBounded(t *testing.T) {
	s := sandboxtest.New(t)
	for _, name := range []string{"one", "two", "three", "four"} {
		if err := s.WriteFile(name, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const limit = 20
	err := s.WriteList(t.Context(), "list", limit)
	if !errors.Is(err, sandbox.ErrLongList) {
		t.Errorf("no word of the limit: %v", err)
	}
	text, err := os.ReadFile(filepath.Join(s.Scratch(), "list"))
	if err != nil || len(text) == 0 || len(text) > limit || !strings.HasSuffix(string(text), "\n") {
		t.Errorf("%q, %v", text, err)
	}
}
