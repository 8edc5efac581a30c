package agent

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLastWords: the wrapper writes its last words only to the kubelet's file; it follows
// no link, writes to nothing else in its place and makes no file.
func TestLastWords(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write := func(name string) {
		t.Helper()
		if err := os.WriteFile(at(name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("log")
	write("behind a link")
	if err := os.Symlink(at("behind a link"), at("link")); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(at("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"log", "link", "pipe", "nothing", "."} {
		leaveWord(at(name), errors.New("make control directory /run: permission denied"))
	}
	got, err := os.ReadFile(at("log"))
	if err != nil || string(got) != "make control directory /run: permission denied" {
		t.Errorf("the words are %q (%v)", got, err)
	}
	if got, err := os.ReadFile(at("behind a link")); err != nil || len(got) > 0 {
		t.Errorf("a link was followed: %q (%v)", got, err)
	}
	if _, err := os.Lstat(at("nothing")); err == nil {
		t.Error("a file was made")
	}
	leaveWord(at("log"), errors.New(strings.Repeat("x", 2*maxLastWords)))
	if info, err := os.Stat(at("log")); err != nil || info.Size() != maxLastWords {
		t.Errorf("%d bytes of last words (%v), want %d", info.Size(), err, maxLastWords)
	}
}
