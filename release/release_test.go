package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// sample is a release of this checkout, with files in place of the programs.
func sample(t *testing.T) (Release, string) {
	t.Helper()
	source, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	r := Release{Source: source, Version: "v1.2.3", Commit: strings.Repeat("c0ffee00", 5), Time: time.Unix(1700000000, 0).UTC()}
	dir := t.TempDir()
	for _, arch := range architectures {
		for _, p := range programs {
			put(t, r.program(dir, p.Name, arch), p.Name+" for "+arch)
		}
	}
	return r, dir
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestSums(t *testing.T) {
	_, dir := sample(t)
	if err := writeSums(dir); err != nil {
		t.Fatal(err)
	}
	check := exec.CommandContext(t.Context(), "sha256sum", "--strict", "--check", sumsFile)
	check.Dir = dir
	said, err := check.CombinedOutput()
	if err != nil || strings.Count(string(said), ": OK\n") != len(architectures)*len(programs) {
		t.Errorf("sha256sum --check: %v\n%s", err, said)
	}
}

func TestSame(t *testing.T) {
	tests := map[string]struct {
		change func(t *testing.T, dir string)
		want   string // in the error; "" for none
	}{
		"the same":     {func(*testing.T, string) {}, ""},
		"changed":      {func(t *testing.T, dir string) { put(t, filepath.Join(dir, "condor_pod_starter-linux-arm64"), "x") }, "condor_pod_starter-linux-arm64"},
		"one more":     {func(t *testing.T, dir string) { put(t, filepath.Join(dir, "more"), "x") }, "more"},
		"one is empty": {func(t *testing.T, dir string) { put(t, filepath.Join(dir, "condor_pod_wrapper-linux-amd64"), "") }, "condor_pod_wrapper-linux-amd64"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, a := sample(t)
			_, b := sample(t)
			tt.change(t, b)
			for _, err := range []error{same(a, b), same(b, a)} {
				if (err == nil) != (tt.want == "") || err != nil && !strings.HasSuffix(err.Error(), ": "+tt.want) {
					t.Errorf("same: %v, want %q", err, tt.want)
				}
			}
		})
	}
}

// TestBuildIsReproducible builds the smaller program from clones in two places, for
// each architecture: the bytes are the same, and contain the version. Command
// release -verify does so with all of a release and with separate caches.
func TestBuildIsReproducible(t *testing.T) {
	if _, err := os.Stat("../.git"); err != nil {
		t.Skip("this is not a git checkout; a release needs a commit")
	}
	var built []Release
	for _, place := range []string{"here", filepath.Join("some", "where", "else")} {
		clone := filepath.Join(t.TempDir(), place)
		if out, err := exec.CommandContext(t.Context(), "git", "clone", "--quiet", "--shared", "..", clone).CombinedOutput(); err != nil {
			t.Fatalf("git clone: %v\n%s", err, out)
		}
		r, err := describe(t.Context(), clone)
		if err != nil {
			t.Fatal(err)
		}
		if r.Changed || r.Version == "" || len(r.Commit) != 40 || r.Time.IsZero() {
			t.Errorf("of a fresh clone is known %+v", r)
		}
		built = append(built, r)
	}
	for _, arch := range architectures {
		var all []string
		for _, r := range built {
			path := r.program(t.TempDir(), "condor_pod_wrapper", arch)
			if err := r.build(t.Context(), "./wrapper", arch, path); err != nil {
				t.Fatal(err)
			}
			all = append(all, path)
		}
		first, err := sum(all[0])
		if err != nil {
			t.Fatal(err)
		}
		if second, err := sum(all[1]); err != nil || first != second {
			t.Errorf("for %s, two builds of one commit differ: %s and %s, %v", arch, first, second, err)
		}
		if arch != runtime.GOARCH {
			continue
		}
		said, err := output(exec.CommandContext(t.Context(), all[0], "-version"))
		if err != nil || !strings.Contains(said, " "+built[0].Version+" ") {
			t.Errorf("-version says %q, %v; want version %s", said, err, built[0].Version)
		}
	}
}

// TestDescribe: a change that is not committed shows in the version.
func TestDescribe(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		command := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@invalid"}, args...)...)
		command.Env = append(os.Environ(), "GIT_COMMITTER_DATE=1600000000 +0200")
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	known := func() Release {
		t.Helper()
		r, err := describe(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	t.Setenv("SOURCE_DATE_EPOCH", "")
	git("init", "--quiet")
	put(t, filepath.Join(dir, "f"), "1")
	git("add", "f")
	git("commit", "--quiet", "--message", "one")
	if r := known(); !strings.HasPrefix(r.Version, "devel-") || r.Changed || r.Time.Unix() != 1600000000 {
		t.Errorf("without a tag: %+v", r)
	}
	git("tag", "v0.9.0")
	if r := known(); r.Version != "v0.9.0" {
		t.Errorf("at a tag: %+v", r)
	}
	put(t, filepath.Join(dir, "f"), "2")
	if r := known(); r.Version != "v0.9.0-dirty" || !r.Changed {
		t.Errorf("with a change: %+v", r)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "1500000000")
	if r := known(); r.Time.Unix() != 1500000000 {
		t.Errorf("with SOURCE_DATE_EPOCH: %+v", r)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
	if _, err := describe(t.Context(), dir); err == nil {
		t.Error("a time that is not a number is accepted")
	}
}
