package confine

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// mountPoints are where file systems are mounted, below "/".
func mountPoints() (map[string]bool, error) {
	f, err := os.Open("/proc/thread-self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("learn what is mounted: %w", err)
	}
	defer f.Close()
	return readMounts(f)
}

const (
	// maxMountLine bounds a line of mountinfo: five paths of an overlay, and more.
	maxMountLine = 1 << 20
	maxMounts    = 100_000
)

// readMounts reads the fifth field of each line (proc_pid_mountinfo(5)).
func readMounts(r io.Reader) (map[string]bool, error) {
	mounts := map[string]bool{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxMountLine)
	for lines.Scan() {
		fields := strings.SplitN(lines.Text(), " ", 6)
		if len(fields) < 6 || len(mounts) == maxMounts {
			return nil, fmt.Errorf("learn what is mounted: %.100q is not understood", lines.Text())
		}
		if at := filepath.Clean(unescape(fields[4])); at != "/" {
			mounts[at] = true
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("learn what is mounted: %w", err)
	}
	return mounts, nil
}

// unescape decodes blanks, tabs, line breaks and backslashes, which the kernel writes
// as three octal digits.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// tree lets a directory be read and executed, except what is mounted there. A rule
// about a directory applies to all below it, so a directory that holds a mount gets no
// rule: its entries do.
func (s ruleset) tree(path string, mounts map[string]bool) error {
	if mounts[path] {
		return nil
	}
	if !holds(path, mounts) {
		return s.path(path, unix.O_NOFOLLOW, look|execute)
	}
	if st, err := os.Lstat(path); err != nil || !st.IsDir() {
		return nil // a link to a directory elsewhere, which counts there
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return fmt.Errorf("list %s: %w", path, err)
	}
	for _, e := range entries {
		if err := s.tree(filepath.Join(path, e.Name()), mounts); err != nil {
			return err
		}
	}
	return nil
}

// holds reports whether something is mounted below a directory.
func holds(dir string, mounts map[string]bool) bool {
	for at := range mounts {
		if strings.HasPrefix(at, strings.TrimSuffix(dir, "/")+"/") {
			return true
		}
	}
	return false
}
