package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"podstarter/integration/pool/internal/cache"
	"podstarter/integration/pool/internal/debian"
	"podstarter/integration/pool/internal/tool"
)

// Kubectl is the path of a kubectl from Debian's packages (trixie is the first release that has one); it is fetched into
// the cache the first time.
func Kubectl(ctx context.Context, store cache.Cache, log io.Writer) (string, error) {
	root := debian.RootFS{Suite: "trixie", Variant: "extract", Packages: []string{"kubectl"}}
	dir, err := store.Dir(ctx, "kubectl", cache.Key(root.Key()), func(ctx context.Context, dir string) error {
		tree := filepath.Join(dir, "tree")
		if err := root.Make(ctx, log, tree, filepath.Join(dir, "tmp")); err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(tree, "usr", "bin", "kubectl"), filepath.Join(dir, "kubectl")); err != nil {
			return err
		}
		return os.RemoveAll(tree)
	})
	return filepath.Join(dir, "kubectl"), err
}

// Render returns the objects of the kustomization in dir, as kubectl apply -k would send them.
func Render(ctx context.Context, kubectl, kubeconfig, dir string) ([]Object, error) {
	text, err := tool.Output(ctx, tool.Command{Args: []string{kubectl, "kustomize", dir}})
	if err != nil {
		return nil, fmt.Errorf("rendering %s: %w", dir, err)
	}
	out, err := tool.Output(ctx, tool.Command{
		Args:  []string{kubectl, "--kubeconfig", kubeconfig, "create", "--dry-run=client", "--validate=false", "-o", "json", "-f", "-"},
		Stdin: text,
	})
	if err != nil {
		return nil, fmt.Errorf("reading the manifests of %s: %w", dir, err)
	}
	return decodeObjects([]byte(out))
}

// decodeObjects reads a stream of objects and lists of objects.
func decodeObjects(text []byte) ([]Object, error) {
	var all []Object
	dec := json.NewDecoder(bytes.NewReader(text))
	for {
		var raw json.RawMessage
		if err := dec.Decode(&raw); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading manifests: %w", err)
		}
		var list struct {
			Kind  string
			Items []Object
		}
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, fmt.Errorf("reading manifests: %w", err)
		}
		if list.Kind == "List" {
			all = append(all, list.Items...)
			continue
		}
		var o Object
		if err := json.Unmarshal(raw, &o); err != nil {
			return nil, fmt.Errorf("reading manifests: %w", err)
		}
		all = append(all, o)
	}
}
