package conformance

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"podstarter/integration/harness"
)

// shown is the size of content up to which it is compared as text.
const shown = 4 << 10

// files is the submit directory after the job: by name, mode and content. What the
// probe printed about itself is compared elsewhere.
func files(jobs []harness.Job, facts bool) (map[string]string, error) {
	found := map[string]string{}
	dir := jobs[0].Dir
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name := strings.TrimPrefix(path, dir+"/")
		if name == "job.log" || name == "job.sub" || name == harness.ProbeName {
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		found[words(name, jobs[0])] = info.Mode().String()
		switch {
		case facts && name == "out":
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			found[words(name, jobs[0])] += " to " + words(target, jobs[0])
		case info.Mode().IsRegular():
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			found[words(name, jobs[0])] += " " + content(inOrder(text), jobs[0])
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading what came back: %w", err)
	}
	return found, nil
}

// inOrder sorts a list of a manifest, which is in the order of the file system.
func inOrder(text []byte) []byte {
	lines := strings.SplitAfter(string(text), "\n")
	last := len(lines) - 1 // what is behind the last line break
	if last == 0 || lines[last] != "" {
		return text
	}
	lines = lines[:last]
	if slices.ContainsFunc(lines, func(line string) bool { return !strings.HasPrefix(line, "./") }) {
		return text
	}
	slices.Sort(lines)
	return []byte(strings.Join(lines, ""))
}

// content is the text of a small file, or size and hash of another.
func content(text []byte, job harness.Job) string {
	if len(text) <= shown && utf8.Valid(text) {
		return fmt.Sprintf("%q", words(string(text), job))
	}
	return fmt.Sprintf("%d bytes, %x", len(text), sha256.Sum256(text))
}
