//nolint:forbidigo,errcheck // test programs, in directories of their own
package agenttest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// deep makes nested directories. The path to the last ones is too long to use.
func deep(dir string, n int) int {
	for i := range n {
		err := os.Mkdir(dir, 0o700)
		if err == nil {
			err = os.Chdir(dir)
		}
		if err != nil {
			fmt.Println("after", i, "directories:", err)
			return 1
		}
		dir = "d"
	}
	if err := os.WriteFile("secret", []byte("secret"), 0o600); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// many makes empty files with the longest possible names.
func many(dir string, n int) int {
	long := strings.Repeat("x", 255-10)
	for i := range n {
		if err := os.WriteFile(filepath.Join(dir, long+strconv.Itoa(i)), nil, 0o600); err != nil {
			fmt.Println("after", i, "files:", err)
			return 1
		}
	}
	return 0
}

// swap makes the same names alternately non-empty directories and links. Failures are
// expected: the directory comes and goes.
func swap(dir, target string) {
	for i := 0; ; i++ {
		name := filepath.Join(dir, strconv.Itoa(i%10))
		other := filepath.Join(dir, "other")
		_ = os.Mkdir(name, 0o700)
		_ = os.Mkdir(filepath.Join(name, "in"), 0o700)
		_ = os.Symlink(target, other)
		_ = os.Rename(name, filepath.Join(dir, "moved"+strconv.Itoa(i%3)))
		_ = os.Rename(other, name)
		_ = os.Rename(filepath.Join(dir, "ours"), name+"-ours")
		_ = os.Symlink(target, filepath.Join(dir, "ours"))
	}
}
