package measured

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// Filesystem says what kind of file system a directory is on (statfs(2)). ext4 makes new files slowly for minutes after
// as many were removed (fs/ext4/ialloc.c: recently_deleted), so that files of one run cost the next one.
func Filesystem(dir string) string {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return "an unknown file system"
	}
	switch s.Type {
	case unix.TMPFS_MAGIC:
		return "tmpfs"
	case unix.EXT4_SUPER_MAGIC:
		return "ext4"
	case unix.XFS_SUPER_MAGIC:
		return "XFS"
	case unix.BTRFS_SUPER_MAGIC:
		return "Btrfs"
	}
	return fmt.Sprintf("a file system of type %#x", s.Type)
}

// Machine describes the machine of the measurements.
func Machine() string {
	model := "unknown processor"
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	load := "unknown"
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		load, _, _ = strings.Cut(string(text), " ")
	}
	return fmt.Sprintf("%d processors (%s), load %s before the run", runtime.NumCPU(), model, load)
}
