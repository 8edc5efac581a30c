// Package cluster is a one-node Kubernetes made of its real parts: etcd, kube-apiserver, kubelet, containerd and runc.
// A controller manager and a scheduler come with it only if they are asked for: other pods name their node.
package cluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"podstarter/integration/pool/internal/cache"
	"podstarter/integration/pool/internal/debian"
	"podstarter/integration/pool/internal/tool"
)

// A Component is a Go module of its own that only says which programs to build at which versions.
type Component struct {
	// Family names the cache entry.
	Family string
	// Dir is the directory of the module.
	Dir string
	// Module and Packages say what is built: the packages of that module.
	Module   string
	Packages []string
	// VersionIn is the package that takes the module's version at link time, if there is one.
	VersionIn string
}

// Kubernetes is the family with the API server and the kubelet.
const Kubernetes = "kubernetes"

// DefaultKubernetes is the version of Kubernetes of a pool that names none.
const DefaultKubernetes = "1.34"

// KubernetesVersions are the versions that can be built: those with a module in the directory of modules.
func KubernetesVersions(dir string) ([]string, error) {
	modules, err := filepath.Glob(filepath.Join(dir, Kubernetes, "*", "go.mod"))
	if err != nil {
		return nil, fmt.Errorf("looking for versions of Kubernetes: %w", err)
	}
	var versions []string
	for _, m := range modules {
		versions = append(versions, filepath.Base(filepath.Dir(m)))
	}
	return versions, nil
}

// Components are the programs built from source, given the directory that holds their modules, and the version of
// Kubernetes as its module's directory has it.
func Components(dir, kubernetes string) []Component {
	return []Component{
		{
			Family: "etcd", Dir: filepath.Join(dir, "etcd"), Module: "go.etcd.io/etcd/server/v3",
			Packages: []string{"go.etcd.io/etcd/server/v3"},
		},
		{
			Family: Kubernetes, Dir: filepath.Join(dir, Kubernetes, kubernetes), Module: "k8s.io/kubernetes",
			Packages:  []string{"k8s.io/kubernetes/cmd/kube-apiserver", "k8s.io/kubernetes/cmd/kubelet"},
			VersionIn: "k8s.io/component-base/version",
		},
	}
}

// KWOK is the stand-in for kubelets, given the directory of modules.
func KWOK(dir string) Component {
	return Component{Family: "kwok", Dir: filepath.Join(dir, "kwok"), Module: "sigs.k8s.io/kwok", Packages: []string{"sigs.k8s.io/kwok/cmd/kwok"}}
}

// NetworkPlugins are CNI's reference plugins, given the directory of modules.
func NetworkPlugins(dir string) Component {
	const module = "github.com/containernetworking/plugins"
	c := Component{Family: "cni", Dir: filepath.Join(dir, "cni"), Module: module}
	for _, plugin := range []string{"main/bridge", "main/loopback", "ipam/host-local", "ipam/static"} {
		c.Packages = append(c.Packages, module+"/plugins/"+plugin)
	}
	return c
}

// NFT is the root of a file system with nft, the firewall's program that the plugins run, from the cache or freshly fetched.
func NFT(ctx context.Context, store cache.Cache, log io.Writer) (string, error) {
	root := debian.RootFS{
		Suite: "trixie", Variant: "extract",
		// The first of them has the links by which programs find what loads their libraries.
		Packages: []string{"base-files", "nftables"},
	}
	dir, err := store.Dir(ctx, "nft", cache.Key(root.Key()), func(ctx context.Context, dir string) error {
		return root.Make(ctx, log, filepath.Join(dir, "root"), filepath.Join(dir, "tmp"))
	})
	return filepath.Join(dir, "root"), err
}

// version is the version that go.mod requires of the component's module.
func (c Component) version(gomod string) (string, error) {
	for line := range strings.Lines(gomod) {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(fields) >= 2 && fields[0] == c.Module {
			return fields[1], nil
		}
	}
	return "", fmt.Errorf("%s/go.mod does not require %s", c.Dir, c.Module)
}

// flags are the linker's. The programs of Kubernetes report their version, and decide what they are compatible with, from
// variables that are set here.
func (c Component) flags(version string) string {
	flags := "-s -w"
	if c.VersionIn != "" {
		parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
		flags += fmt.Sprintf(" -X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=%[3]s -X %[1]s.gitMinor=%[4]s", c.VersionIn, version, parts[0], parts[1])
	}
	return flags
}

// Build returns the directory that holds the component's programs, from the cache or freshly built.
func (c Component) Build(ctx context.Context, store cache.Cache, log io.Writer) (string, error) {
	var inputs []string
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(c.Dir, name))
		if err != nil {
			return "", fmt.Errorf("building %s: %w", c.Family, err)
		}
		inputs = append(inputs, string(text))
	}
	version, err := c.version(inputs[0])
	if err != nil {
		return "", err
	}
	flags := c.flags(version)
	key := version + "-" + cache.Key(append(inputs, flags, runtime.Version(), runtime.GOARCH)...)
	return store.Dir(ctx, c.Family, key, func(ctx context.Context, dir string) error {
		for _, pkg := range c.Packages {
			name := filepath.Base(pkg)
			if name == "v3" {
				name = c.Family
			}
			err := tool.Run(ctx, tool.Command{
				Args: []string{"go", "build", "-trimpath", "-ldflags", flags, "-o", filepath.Join(dir, name), pkg},
				Dir:  c.Dir, Env: []string{"CGO_ENABLED=0", "GOWORK=off"}, Log: log,
			})
			if err != nil {
				return fmt.Errorf("in %s: %w", c.Dir, err)
			}
		}
		return nil
	})
}
