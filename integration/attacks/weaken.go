package attacks

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

func subset(some, all []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}

// defence finds one by its name.
func defence(name string) Defence {
	for _, d := range Defences {
		if d.Name == name {
			return d
		}
	}
	panic(fmt.Sprintf("no defence %q", name))
}

// Programs that have variants, with the folder of each.
const (
	starterProgram = "condor_pod_starter"
	wrapperProgram = "condor_pod_wrapper"
)

var programFolders = map[string]string{starterProgram: "./starter", wrapperProgram: "./wrapper"}

// program is the program that a change is for.
func (c Change) program() string {
	if strings.HasPrefix(c.File, "wrapper/") {
		return wrapperProgram
	}
	return starterProgram
}

// changes are those of a program that switch off the defences.
func changes(program string, off []string) []Change {
	var all []Change
	for _, name := range off {
		for _, c := range defence(name).Changes {
			if c.program() == program {
				all = append(all, c)
			}
		}
	}
	return all
}

// weaken builds a program with changes, at a path.
func weaken(ctx context.Context, root, program string, changes []Change, out string) error {
	dir, err := os.MkdirTemp(filepath.Dir(out), ".overlay-")
	if err != nil {
		return fmt.Errorf("building a variant of %s: %w", program, err)
	}
	defer os.RemoveAll(dir)
	overlay, err := writeOverlay(root, dir, changes)
	if err != nil {
		return fmt.Errorf("building a variant of %s: %w", program, err)
	}
	build := goCommand(ctx, root, "build", "-trimpath", "-ldflags", "-s -w", "-overlay", overlay, "-o", out, programFolders[program])
	if text, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building a variant of %s: %w\n%s", program, err, text)
	}
	return nil
}

// goCommand is the go tool at the top of the project. All use one environment, so
// that each finds what an earlier one has compiled.
func goCommand(ctx context.Context, root string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = root
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	return command
}

// writeOverlay writes changed copies of source files and what `go build
// -overlay` needs to use them.
func writeOverlay(root, dir string, changes []Change) (string, error) {
	texts := map[string]string{}
	for _, c := range changes {
		path := filepath.Join(root, c.File)
		text, ok := texts[path]
		if !ok {
			source, err := os.ReadFile(path)
			if err != nil {
				return "", err
			}
			text = string(source)
		}
		if n := strings.Count(text, c.Old); n != 1 {
			return "", fmt.Errorf("%s contains this %d times, want once:\n%s", c.File, n, c.Old)
		}
		texts[path] = strings.Replace(text, c.Old, c.New, 1)
	}
	replace := map[string]string{}
	for path, text := range texts {
		copied := filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
		if err := os.WriteFile(copied, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[path] = copied
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}
