// Package buildah builds images from Dockerfiles, without a daemon, and pushes them to a registry.
package buildah

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"podstarter/integration/pool/internal/statedir"
	"podstarter/integration/pool/internal/tool"
)

// A Build is an image to build.
type Build struct {
	// Dockerfile is its path, and Context the directory that it copies from.
	Dockerfile, Context string
	// Args are those of the Dockerfile that do not have their defaults.
	Args map[string]string
	// Stages are built before the image, and named, so that the next build finds their layers.
	Stages []string
}

// A Store is where layers and images are: a directory, for one program at a time.
type Store struct {
	Dir string
	Log io.Writer
}

// global are the arguments that every command needs.
func (s Store) global() []string {
	return []string{"buildah", "--root", filepath.Join(s.Dir, "layers"), "--runroot", filepath.Join(s.Dir, "run"), "--storage-driver", "overlay"}
}

// build are the arguments that build one stage, or the last if there is no name.
func (s Store) build(b Build, stage, idFile string) []string {
	// Steps are run in a chroot: containers would need a runtime's network and control groups.
	args := append(s.global(), "build", "--isolation", "chroot", "--layers", "--tls-verify=false", "--iidfile", idFile, "--file", b.Dockerfile)
	for _, name := range sortedKeys(b.Args) {
		args = append(args, "--build-arg", name+"="+b.Args[name])
	}
	name := "image"
	if stage != "" {
		args, name = append(args, "--target", stage), stage
	}
	return append(args, "--tag", "localhost/"+name, b.Context)
}

func sortedKeys(m map[string]string) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// Push builds an image and pushes it to repository, at a registry without TLS. It returns the reference, whose tag changes
// with the image.
func (s Store) Push(ctx context.Context, b Build, repository string) (string, error) {
	unlock, err := statedir.Lock(ctx, s.Dir+".lock", nil)
	if err != nil {
		return "", err
	}
	defer unlock()
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return "", fmt.Errorf("building %s: %w", b.Dockerfile, err)
	}
	// What a build that failed or was killed has left would hold on to its layers.
	if err := s.run(ctx, append(s.global(), "rm", "--all")); err != nil {
		return "", fmt.Errorf("removing what an earlier build left: %w", err)
	}
	idFile := filepath.Join(s.Dir, "id")
	for _, stage := range append(slices.Clone(b.Stages), "") {
		if err := s.run(ctx, s.build(b, stage, idFile)); err != nil {
			return "", fmt.Errorf("building %s: %w", b.Dockerfile, err)
		}
	}
	text, err := os.ReadFile(idFile)
	if err != nil {
		return "", fmt.Errorf("building %s: %w", b.Dockerfile, err)
	}
	_, id, _ := strings.Cut(strings.TrimSpace(string(text)), ":")
	if len(id) < 12 {
		return "", fmt.Errorf("building %s: the image's id is %q, want sha256:…", b.Dockerfile, text)
	}
	ref := repository + ":" + id[:12]
	// Compressing for a registry on the same machine costs more than it saves.
	if err := s.run(ctx, append(s.global(), "push", "--quiet", "--disable-compression", "--tls-verify=false", id, "docker://"+ref)); err != nil {
		return "", fmt.Errorf("pushing %s: %w", ref, err)
	}
	// What no stage has any more: images of earlier programs.
	if err := s.run(ctx, append(s.global(), "rmi", "--prune")); err != nil {
		return "", fmt.Errorf("removing layers that no image has: %w", err)
	}
	return ref, nil
}

func (s Store) run(ctx context.Context, args []string) error {
	return tool.Run(ctx, tool.Command{Args: args, Log: s.Log})
}
