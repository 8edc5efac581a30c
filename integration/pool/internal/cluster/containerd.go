package cluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"podstarter/integration/pool/internal/cache"
	"podstarter/integration/pool/internal/daemon"
	"podstarter/integration/pool/internal/debian"
	"podstarter/integration/pool/internal/podnet"
	"podstarter/integration/pool/internal/statedir"
)

// Containerds are the Debian releases whose packages have a version of containerd, with the runc of that release. The
// version "" is the one that the machine has.
var Containerds = map[string]string{"": "", "1.7": "trixie"}

// OCIRuntimes are the programs with which containerd can make containers; "" is runc.
var OCIRuntimes = []string{"", "runc", "crun"}

// ContainerdPrograms returns the directory with the programs of a version of containerd, and with its runc, from the cache
// or freshly fetched. It is empty for the version that the machine has.
func ContainerdPrograms(ctx context.Context, version string, store cache.Cache, log io.Writer) (string, error) {
	if version == "" {
		return "", nil
	}
	root := debian.RootFS{Suite: Containerds[version], Variant: "extract", Packages: []string{"containerd", "runc"}}
	dir, err := store.Dir(ctx, "containerd", root.Suite+"-"+cache.Key(root.Key()), func(ctx context.Context, dir string) error {
		return root.Make(ctx, log, filepath.Join(dir, "root"), filepath.Join(dir, "tmp"))
	})
	return filepath.Join(dir, "root", "usr", "bin"), err
}

// StartContainerd starts containerd and waits for its socket.
func (n Node) StartContainerd(ctx context.Context) error {
	config := fmt.Sprintf(containerdConfig, n.State.Path("containerd"), n.State.Run("containerd"), n.ContainerdSocket(),
		n.PauseImage, n.networks(), n.State.Run("runc"), n.State.Path("containerd", "opt"), n.mirrors(), n.Settings.OCIRuntime, n.networkPlugins(), podnet.SubmitSide, n.submitNetworks())
	if err := n.writeMirror(); err != nil {
		return err
	}
	path := n.State.Path("containerd.toml")
	if err := statedir.WriteFile(path, []byte(config), 0o644); err != nil {
		return err
	}
	if err := n.writeNetwork(); err != nil {
		return err
	}
	if err := os.MkdirAll(n.State.Run(), 0o711); err != nil {
		return fmt.Errorf("starting containerd: %w", err)
	}
	spec := daemon.Spec{
		Name: Containerd, Args: []string{"containerd", "--config", path}, Inputs: []string{config},
		// What it pulls is on this machine or, in tests of failures, nowhere.
		Env: []string{"HTTP_PROXY=", "HTTPS_PROXY=", "ALL_PROXY=", "http_proxy=", "https_proxy=", "all_proxy="},
	}
	if n.ContainerdDir != "" {
		spec.Args[0] = filepath.Join(n.ContainerdDir, Containerd)
		// It looks there for its shim, and the shim for runc.
		spec.Env = append(spec.Env, "PATH="+n.ContainerdDir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	}
	return n.bring(ctx, spec, n.waitContainerd)
}

func (n Node) waitContainerd(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, fmt.Errorf("containerd does not listen on %s within a minute; see %s",
		n.ContainerdSocket(), n.Daemons.Log(Containerd)))
	defer cancel()
	return Poll(ctx, 50*time.Millisecond, func(ctx context.Context) (bool, error) {
		out, err := n.Ctr(ctx, "version")
		return err == nil, fmt.Errorf("%w: %s", err, out)
	})
}

// mirrors is the directory in which containerd looks up where the images of a registry are.
func (n Node) mirrors() string { return n.State.Path("registries") }

// writeMirror tells containerd where the registry is if that is on another node: images have the same names on all.
func (n Node) writeMirror() error {
	if n.Settings.First == "" {
		return nil
	}
	port := n.Settings.Ports[Registry]
	return statedir.WriteFile(filepath.Join(n.mirrors(), fmt.Sprintf("%s:%d", loopback, port), "hosts.toml"),
		fmt.Appendf(nil, "server = \"http://%s:%d\"\n", n.Settings.First, port), 0o644)
}

// containerdConfig takes: root, state, socket, pause image, CNI directory, runc root, directory for optional software, one
// for where registries are, the OCI runtime, and the directory of CNI plugins; the name and the CNI directory of the submit side's network.
// Running the daemon inside of a container, as continuous integration does, means neither CAP_SYS_RESOURCE, which lowering
// an oom_score_adj needs, nor AppArmor.
const containerdConfig = `version = 2
root = %q
state = %q

[grpc]
  address = %q

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %q
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    conf_dir = %[5]q
    bin_dir = %[10]q
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = %[8]q
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        Root = %[6]q
        BinaryName = %[9]q
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.%[11]s]
      runtime_type = "io.containerd.runc.v2"
      cni_conf_dir = %[12]q
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.%[11]s.options]
        Root = %[6]q
        BinaryName = %[9]q

[plugins."io.containerd.internal.v1.opt"]
  path = %[7]q
`
