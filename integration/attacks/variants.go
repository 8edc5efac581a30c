//go:build pool

package attacks

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// builder builds each variant of our programs once.
type builder struct {
	ctx   context.Context // of all builds
	dir   string
	mu    sync.Mutex
	built map[string]func() (string, error)
}

// get returns the path of a program without some defences.
func (b *builder) get(program string, off []string) (string, error) {
	list := changes(program, off)
	key := program + fmt.Sprint(list)
	b.mu.Lock()
	build, ok := b.built[key]
	if !ok {
		out := filepath.Join(b.dir, fmt.Sprintf("%s-%d", program, len(b.built)))
		build = sync.OnceValues(func() (string, error) { return out, weaken(b.ctx, pool.Root, program, list, out) })
		b.built[key] = build
	}
	b.mu.Unlock()
	return build()
}

// all builds what the settings need, one after the other: the tests start with the
// first.
func (b *builder) all() {
	for _, s := range settingsOf(pool.Mode) {
		for program := range programFolders {
			_, _ = b.get(program, s.off(pool.Mode)) // who needs it is told of the failure
		}
	}
}

func newBuilder(ctx context.Context) (*builder, error) {
	dir, err := os.MkdirTemp("", "attacks-")
	return &builder{ctx: ctx, dir: dir, built: map[string]func() (string, error){}}, err
}
