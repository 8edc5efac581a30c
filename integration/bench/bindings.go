package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", path, "./bench/binder")
	build.Dir = filepath.Join(b.pool.Root, "integration")
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

// turns is a series whose members each have an image.
type turns struct {
	same, other []time.Duration // those with the image of the one before, and those with another
}

func (t turns) all() []time.Duration { return slices.Concat(t.same, t.other) }

// add adds a measurement that followed a turn in the image before.
func (t *turns) add(before, image string, took time.Duration) {
	if before == image {
		t.same = append(t.same, took)
	} else {
		t.other = append(t.other, took)
	}
}

// unlikeTurns are images for n runs after the one before. Half of them keep the
// image of the one before, but not every other one: a kubelet that is not at rest
// alternates between one and two seconds (docs/developer/turnover.md), whatever the
// image.
func unlikeTurns(n int) []string {
	changes := make([]bool, n)
	for i := range n / 2 {
		changes[i] = true
	}
	order := rand.New(rand.NewPCG(1, 2)) // the same order each time
	order.Shuffle(n, func(i, j int) { changes[i], changes[j] = changes[j], changes[i] })
	images, other := []string{imageA}, imageB
	for i, change := range changes {
		now := images[i]
		if change {
			now, other = other, now
		}
		images = append(images, now)
	}
	return images
}

// bindings binds n times in one way, half of them with another image than the one
// before. More arguments go to the binder.
func (b *bencher) bindings(ctx context.Context, way string, n int, more ...string) (turns, error) {
	var images []string
	for _, image := range unlikeTurns(n) {
		images = append(images, b.pool.Image(image))
	}
	argv := append([]string{binderPath, "-way", way, "-n", strconv.Itoa(n), "-warm", "1", "-images", strings.Join(images, ",")}, more...)
	out, err := b.pool.EP(ctx, harness.Ours, argv...)
	if err != nil {
		return turns{}, err
	}
	var took turns
	for in := json.NewDecoder(bytes.NewReader([]byte(out))); ; {
		var one binding.Binding
		err := in.Decode(&one)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return turns{}, fmt.Errorf("reading what the binder says: %w", err)
		}
		took.add(one.Before, one.Image, one.Took)
	}
	if done := len(took.all()); done != n {
		return turns{}, fmt.Errorf("%d bindings instead of %d", done, n)
	}
	return took, nil
}
