package hostprog

import (
	"fmt"
	"os"
	"path/filepath"
)

// Unpacker is a program of this project that the starter runs.
const Unpacker = "condor_pod_unpacker"

// Beside is where a program is if it was installed with this one.
func Beside(name string) (string, error) {
	program, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	return filepath.Join(filepath.Dir(program), name), nil
}
