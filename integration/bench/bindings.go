package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"podstarter/integration/bench/binding"
	"podstarter/integration/harness"
)

// binderPath is where the program that binds lies in the pilot container.
const binderPath = "/tmp/podstarter-binder"

// installBinder builds that program and puts it into the pilot container.
func (b *bencher) installBinder(ctx context.Context) error {
	path := filepath.Join(b.pool.State, "bin", "binder")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", path, "./integration/bench/binder")
	build.Dir = b.pool.Root
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the binder: %w\n%s", err, out)
	}
	program, err := os.Open(path)
	if err != nil {
		return err
	}
	defer program.Close()
	_, err = b.pool.EPInput(ctx, harness.Ours, program, "sh", "-c", `cat > "$1" && chmod 755 "$1"`, "install", binderPath)
	return err
}

// bindings binds n times in one way; more arguments go to the binder. The
// images are A A B B and so on, so that every other binding keeps the image.
func (b *bencher) bindings(ctx context.Context, way string, n int, more ...string) ([]time.Duration, error) {
	a, other := b.pool.Image(imageA), b.pool.Image(imageB)
	argv := append([]string{binderPath, "-way", way, "-n", strconv.Itoa(n), "-images", strings.Join([]string{a, a, other, other}, ",")}, more...)
	out, err := b.pool.EP(ctx, harness.Ours, argv...)
	if err != nil {
		return nil, err
	}
	var took []time.Duration
	for in := json.NewDecoder(bytes.NewReader([]byte(out))); ; {
		var one binding.Binding
		err := in.Decode(&one)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading what the binder says: %w", err)
		}
		took = append(took, one.Took)
	}
	if len(took) != n {
		return nil, fmt.Errorf("%d bindings instead of %d", len(took), n)
	}
	return took, nil
}
