package harness

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// The account of the object store, which has one bucket (integration/pool/internal/objects).
const (
	ObjectsAccessKey = "AKIDPODSTARTER"
	ObjectsSecretKey = "open-the-bucket"
)

// StartObjects starts the object store of the pool unless it runs. What it needs is built the first time, which takes a minute or more.
func (p *Pool) StartObjects(ctx context.Context) error {
	_, err := p.run(ctx, nil, "objects")
	return err
}

// PutObject stores an object in the bucket.
func (p *Pool) PutObject(name string, content []byte) error {
	to := p.objectPath(name)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return fmt.Errorf("storing the object %s: %w", name, err)
	}
	if err := os.WriteFile(to, content, 0o644); err != nil {
		return fmt.Errorf("storing the object %s: %w", name, err)
	}
	return nil
}

// Object is what the bucket has under a name, and whether it has that.
func (p *Pool) Object(name string) (content string, found bool, err error) {
	text, err := os.ReadFile(p.objectPath(name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("reading the object %s: %w", name, err)
	}
	return string(text), true, nil
}

func (p *Pool) objectPath(name string) string {
	return filepath.Join(p.State, "objects", "bucket", filepath.FromSlash(name))
}
