package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"podstarter/integration/pool/internal/cluster"
	"podstarter/integration/pool/internal/statedir"
)

// A pool has one version of Kubernetes, from the first `up` to `down`.
func TestChooseKubernetes(t *testing.T) {
	module := t.TempDir()
	for _, version := range []string{"1.34", "1.37"} {
		dir := filepath.Join(module, "integration", "components", cluster.Kubernetes, version)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module x\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		name string
		ups  [][]string
		want string
		fail string
	}{
		{"no word of it", [][]string{nil}, "1.34", ""},
		{"another", [][]string{{"--kubernetes=1.37"}}, "1.37", ""},
		{"kept", [][]string{{"--kubernetes=1.37"}, {"--slots=2"}}, "1.37", ""},
		{"the same again", [][]string{{"--guest", "--kubernetes=1.37"}, {"--kubernetes=1.37"}}, "1.37", ""},
		{"unknown", [][]string{{"--kubernetes=1.30"}}, "", "version 1.30 of Kubernetes is not known here; 1.34, 1.37 are"},
		{"out of the directory", [][]string{{"--kubernetes=../kubernetes/1.34"}}, "", "is not known here"},
		{"changed", [][]string{nil, {"--kubernetes=1.37"}}, "", "the pool here has Kubernetes 1.34"},
		{"known, after an unknown one", [][]string{{"--kubernetes=1.30"}, {"--kubernetes=1.37"}}, "1.37", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := statedir.Dir{Root: t.TempDir(), Module: module}
			var p *pool
			var err error
			for _, args := range tc.ups {
				settings, loadErr := dir.Load()
				if loadErr != nil {
					t.Fatal(loadErr)
				}
				p = &pool{dir: dir, settings: settings, progress: newProgress(io.Discard)}
				err = p.choose(args)
			}
			if tc.fail != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fail) {
					t.Fatalf("error %v, want one with %q", err, tc.fail)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			saved, err := dir.Load()
			if err != nil || saved.Kubernetes != tc.want {
				t.Errorf("version %q, %v; want %q", saved.Kubernetes, err, tc.want)
			}
			for _, c := range p.components() {
				if c.Family == cluster.Kubernetes && filepath.Base(c.Dir) != tc.want {
					t.Errorf("the programs come from %s, want those of %s", c.Dir, tc.want)
				}
			}
			// A guest whose disk was lost must get all of it again.
			if want := "--kubernetes=" + tc.want; !slices.Contains(p.chosen, want) {
				t.Errorf("a guest would get %q, without %s", p.chosen, want)
			}
		})
	}
}

// What a node is made of stays chosen, and reaches a guest in the form in which it was given.
func TestChooseNode(t *testing.T) {
	module := t.TempDir()
	dir := filepath.Join(module, "integration", "components", cluster.Kubernetes, cluster.DefaultKubernetes)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	crun := []string{"--guest", "--containerd=1.7", "--oci-runtime=crun", "--gates=B=false,A=true", `--kubelet={"singleProcessOOMKill": true}`}
	chosen := []string{"--containerd=1.7", "--oci-runtime=crun", "--gates=A=true,B=false", `--kubelet={"singleProcessOOMKill":true}`}
	for _, tc := range []struct {
		name string
		ups  [][]string
		want []string
		fail string
	}{
		{"chosen", [][]string{crun}, chosen, ""},
		{"kept", [][]string{crun, {"--slots=2"}}, append(chosen, "--slots=2", "--condor=25.14"), ""},
		{"replaced", [][]string{crun, {"--gates=C=true", "--kubelet={}", "--oci-runtime="}}, []string{"--containerd=1.7", "--oci-runtime=", "--gates=C=true", "--kubelet="}, ""},
		{"not in a guest", [][]string{{"--containerd=1.7"}}, nil, "use --guest"},
		{"another containerd", [][]string{{"--guest"}, {"--containerd=1.7"}}, nil, "made by another containerd"},
		{"references", [][]string{{"--stock-docker", "--stock-apptainer"}, {"--slots=2"}}, []string{"--stock-docker=true", "--stock-apptainer=true"}, ""},
		{"Apptainer in a guest", [][]string{{"--guest", "--stock-docker"}, {"--stock-apptainer"}}, nil, "FUSE"},
		{"references of another version", [][]string{{"--condor=23.9", "--stock-docker"}}, nil, "leave one out"},
		{"unknown containerd", [][]string{{"--guest", "--containerd=1.6"}}, nil, "containerd 1.6 is not known here; 1.7 are"},
		{"unknown runtime", [][]string{{"--oci-runtime=/bin/sh"}}, nil, "not known here; runc, crun are"},
		{"controllers", [][]string{{"--controllers"}, {"--stock"}}, []string{"--controllers=true"}, ""},
		{"controllers no longer", [][]string{{"--controllers"}, {"--controllers=false"}}, []string{"--controllers=false"}, ""},
		{"spares", [][]string{{"--slots=32", "--spares=16"}, {"--stock"}}, []string{"--slots=32", "--spares=16"}, ""},
		{"spares no longer", [][]string{{"--slots=2", "--spares=2"}, {"--spares=0"}}, []string{"--slots=2", "--spares=0"}, ""},
		{"too many slots", [][]string{{"--slots=33"}}, nil, "from 1 to 32"},
		{"too many spares", [][]string{{"--spares=17"}}, nil, "from 0 to 16"},
		{"negative spares", [][]string{{"--spares=-1"}}, nil, "from 0 to 16"},
		{"spares without root", [][]string{{"--mode=rootless", "--spares=1"}}, nil, "one payload container"},
		{"user namespaces", [][]string{{"--guest", "--user-namespaces"}}, []string{"--user-namespaces=true"}, ""},
		{"user namespaces here", [][]string{{"--user-namespaces"}}, nil, "use --guest"},
		{"user namespaces on several nodes", [][]string{{"--guests=2", "--user-namespaces"}}, nil, "do not reach from one guest"},
		{"no gate", [][]string{{"--gates=A"}}, nil, "wrong arguments"},
		{"no object", [][]string{{"--kubelet=true"}}, nil, "wrong arguments"},
		{"two objects", [][]string{{"--kubelet={}{}"}}, nil, "wrong arguments"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := statedir.Dir{Root: t.TempDir(), Module: module}
			var p *pool
			var err error
			for _, args := range tc.ups {
				settings, loadErr := dir.Load()
				if loadErr != nil {
					t.Fatal(loadErr)
				}
				p = &pool{dir: dir, settings: settings, progress: newProgress(io.Discard)}
				err = p.choose(args)
			}
			switch {
			case tc.fail != "":
				if err == nil || !strings.Contains(err.Error(), tc.fail) {
					t.Fatalf("error %v, want one with %q", err, tc.fail)
				}
			case err != nil:
				t.Fatal(err)
			}
			for _, want := range tc.want {
				if !slices.Contains(p.chosen, want) {
					t.Errorf("a guest would get %q, without %s", p.chosen, want)
				}
			}
		})
	}
}
