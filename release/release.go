package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A Release is a commit and how it is built.
type Release struct {
	Source  string    // directory of the checkout
	Version string    // the nearest tag, and what came after it
	Commit  string    // its full hash
	Time    time.Time // of the commit, or SOURCE_DATE_EPOCH; the only time that is in what is made
	Changed bool      // the checkout has changes that are not committed
	Base    string    // image below the pilot image; "" for no such image
	Cache   string    // GOCACHE, "" for the user's
}

// architectures are those of Go that a release is made for.
var architectures = []string{"amd64", "arm64"}

// programs are what is built, with the folder of each.
var programs = []struct{ Name, Folder string }{
	{"condor_pod_starter", "./starter"},
	{"condor_pod_wrapper", "./wrapper"},
	{"condor_pod_metrics", "./metrics"},
	{"condor_pod_unpacker", "./unpacker"},
	{"condor_pod_provisioner", "./provisioner"},
}

// describe asks git what is checked out.
func describe(ctx context.Context, source string) (Release, error) {
	dir, err := filepath.Abs(source)
	if err != nil {
		return Release{}, err
	}
	r := Release{Source: dir}
	if r.Commit, err = r.git(ctx, "rev-parse", "HEAD"); err != nil {
		return r, err
	}
	// As in the Makefile.
	if r.Version, err = r.git(ctx, "describe", "--tags", "--match", "v[0-9]*", "--always", "--dirty"); err != nil {
		return r, err
	}
	if !strings.HasPrefix(r.Version, "v") {
		r.Version = "devel-" + r.Version
	}
	changes, err := r.git(ctx, "status", "--porcelain")
	if err != nil {
		return r, err
	}
	r.Changed = changes != ""
	seconds := os.Getenv("SOURCE_DATE_EPOCH")
	if seconds == "" {
		if seconds, err = r.git(ctx, "log", "-1", "--format=%ct"); err != nil {
			return r, err
		}
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return r, fmt.Errorf("the time of the release, in seconds since 1970: %w", err)
	}
	r.Time = time.Unix(n, 0).UTC()
	return r, nil
}

func (r Release) git(ctx context.Context, args ...string) (string, error) {
	return output(exec.CommandContext(ctx, "git", append([]string{"-C", r.Source}, args...)...))
}

func output(command *exec.Cmd) (string, error) {
	text, err := command.Output()
	if err != nil {
		said := ""
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			said = ": " + strings.TrimSpace(string(exit.Stderr))
		}
		return "", fmt.Errorf("%s: %w%s", strings.Join(command.Args, " "), err, said)
	}
	return strings.TrimSpace(string(text)), nil
}

// Make fills a directory, which it empties first.
func (r Release) Make(ctx context.Context, dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, arch := range architectures {
		for _, p := range programs {
			if err := r.build(ctx, p.Folder, arch, r.program(dir, p.Name, arch)); err != nil {
				return err
			}
		}
	}
	if err := r.writeMaterials(dir); err != nil {
		return err
	}
	if err := r.writeImages(ctx, dir); err != nil {
		return err
	}
	if _, err := r.writeChart(dir); err != nil {
		return err
	}
	return writeSums(dir)
}

// program is the path of one that was built.
func (r Release) program(dir, name, arch string) string {
	return filepath.Join(dir, name+"-linux-"+arch)
}

// build links one program. Nothing from the machine, the user's settings or the
// place of the checkout gets into it.
func (r Release) build(ctx context.Context, folder, arch, path string) error {
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=true",
		"-ldflags", "-s -w -buildid= -X podstarter/internal/buildinfo.version="+r.Version, "-o", path, folder)
	command.Dir = r.Source
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOAMD64=v1", "GOARM64=v8.0",
		"GOFLAGS=-mod=readonly", "GOWORK=off")
	if r.Cache != "" {
		command.Env = append(command.Env, "GOCACHE="+r.Cache)
	}
	if text, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s for %s: %w\n%s", folder, arch, err, text)
	}
	return nil
}

// makeAgain makes the release from a clone, and fails if that differs.
func (r Release) makeAgain(ctx context.Context, first string) (err error) {
	tmp, err := os.MkdirTemp("", "podstarter-release-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	clone := filepath.Join(tmp, "a", "clone")
	if _, err := output(exec.CommandContext(ctx, "git", "clone", "--quiet", "--shared", r.Source, clone)); err != nil {
		return err
	}
	again, err := describe(ctx, clone)
	if err != nil {
		return err
	}
	if again.Commit != r.Commit {
		return fmt.Errorf("the clone is at commit %s, not %s", again.Commit, r.Commit)
	}
	again.Base, again.Cache = r.Base, filepath.Join(tmp, "cache")
	second := filepath.Join(tmp, "release")
	if err := again.Make(ctx, second); err != nil {
		return err
	}
	return same(first, second)
}

// same fails if two directories have different files, and names those.
func same(first, second string) error {
	a, err := sums(first)
	if err != nil {
		return err
	}
	b, err := sums(second)
	if err != nil {
		return err
	}
	var differ []string
	for name, sum := range a {
		if b[name] != sum {
			differ = append(differ, name)
		}
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			differ = append(differ, name)
		}
	}
	if len(differ) > 0 {
		return fmt.Errorf("these files differ between two builds: %s", strings.Join(sorted(differ), ", "))
	}
	return nil
}

// copyFile copies the contents of a file.
func copyFile(w io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}
