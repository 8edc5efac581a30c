package attacks

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// BuildVariants builds all programs that the tests in a guest need, into a directory.
func BuildVariants(ctx context.Context, root, dir string) error {
	b := newBuilder(ctx, root, dir)
	for _, need := range needed(guestMode, true) {
		if err := b.build(need.program, need.off, b.path(need.program, need.off)); err != nil {
			return err
		}
	}
	return nil
}

// A need is a program without some defences.
type need struct {
	program string
	off     []string
}

// needed are the variants for the settings of a mode and for their pods, those that are
// needed first at the beginning.
func needed(mode Mode, guest bool) []need {
	var all []need
	settings := chosenSettings(mode, guest)
	for _, p := range podsOf(mode, settings) {
		if off := (Setting{Pod: p.Name}).off(mode); len(off) > 0 {
			all = append(all, need{starterProgram, off})
		}
	}
	for _, s := range settings {
		for _, program := range []string{starterProgram, wrapperProgram} {
			all = append(all, need{program, s.off(mode)})
		}
	}
	return all
}

// A builder builds each variant of our programs once. In its directory may be some that
// were built before.
type builder struct {
	ctx   context.Context // of all builds
	root  string          // of the project
	dir   string
	mu    sync.Mutex
	built map[string]func() error // by path
}

func newBuilder(ctx context.Context, root, dir string) *builder {
	return &builder{ctx: ctx, root: root, dir: dir, built: map[string]func() error{}}
}

// path is where a program without some defences is.
func (b *builder) path(program string, off []string) string {
	key := sha256.Sum256(fmt.Append(nil, changes(program, off)))
	return filepath.Join(b.dir, fmt.Sprintf("%s-%x", program, key[:8]))
}

// get returns the path of a program without some defences.
func (b *builder) get(program string, off []string) (string, error) {
	path := b.path(program, off)
	b.mu.Lock()
	build, ok := b.built[path]
	if !ok {
		build = sync.OnceValue(func() error {
			if _, err := os.Stat(path); err == nil {
				return nil
			}
			return b.build(program, off, path)
		})
		b.built[path] = build
	}
	b.mu.Unlock()
	return path, build()
}

func (b *builder) build(program string, off []string, path string) error {
	return weaken(b.ctx, b.root, program, changes(program, off), path)
}
