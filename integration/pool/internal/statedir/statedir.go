// Package statedir says where a pool keeps its things: the state directory of a checkout, the short runtime directory for
// sockets and container bundles, and the settings that must survive from one run of the program to the next.
package statedir

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Env names the environment variable that puts the state somewhere else than integration/.state of the checkout.
const Env = "PODSTARTER_STATE"

// maxPath bounds the length of the state directory's path: the kubelet binds sockets below it, and a socket's path ends
// at 107 bytes (unix(7)).
const maxPath = 70

// Dir is the state directory of one pool.
type Dir struct {
	// Root is an absolute path without symbolic links.
	Root string
	// Module is the root of the podstarter checkout.
	Module string
}

// Find looks for the checkout from the working directory upwards, then from the program's own place upwards, and returns
// the state directory that belongs to it. Nothing is created.
func Find() (Dir, error) {
	module, err := findModule()
	if err != nil {
		return Dir{}, err
	}
	root := os.Getenv(Env)
	if root == "" {
		root = filepath.Join(module, "integration", ".state")
	}
	root, err = filepath.Abs(root)
	if err != nil {
		return Dir{}, fmt.Errorf("state directory %q: %w", root, err)
	}
	if resolved, err := filepath.EvalSymlinks(filepath.Dir(root)); err == nil {
		root = filepath.Join(resolved, filepath.Base(root))
	}
	if len(root) > maxPath {
		return Dir{}, fmt.Errorf("state directory %s: its path has %d bytes, and sockets below it need it to have at most %d; name a shorter one in %s",
			root, len(root), maxPath, Env)
	}
	return Dir{Root: root, Module: module}, nil
}

func findModule() (string, error) {
	var starts []string
	if wd, err := os.Getwd(); err == nil {
		starts = append(starts, wd)
	}
	if exe, err := os.Executable(); err == nil {
		starts = append(starts, filepath.Dir(exe))
	}
	for _, dir := range starts {
		for ; ; dir = filepath.Dir(dir) {
			text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
			if err == nil && strings.HasPrefix(string(text), "module podstarter\n") {
				return dir, nil
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return "", errors.New("no checkout of podstarter found from the working directory upwards; run this inside one")
}

// Path joins names to the state directory.
func (d Dir) Path(names ...string) string {
	return filepath.Join(append([]string{d.Root}, names...)...)
}

// Source joins names to the root of the checkout.
func (d Dir) Source(names ...string) string {
	return filepath.Join(append([]string{d.Module}, names...)...)
}

// ID is a short name for this state directory, fit for file, cgroup and interface names, and different for every other.
func (d Dir) ID() string {
	sum := sha256.Sum256([]byte(d.Root))
	return hex.EncodeToString(sum[:4])
}

// Run is the runtime directory: a short path for sockets and container bundles, gone after a reboot.
func (d Dir) Run(names ...string) string {
	return filepath.Join(append([]string{"/run/podstarter-" + d.ID()}, names...)...)
}

// Settings are choices that later runs must repeat.
type Settings struct {
	// Condor is the HTCondor version of the pool: "25.14" or "23.9".
	Condor string
	// APCondor is the version of the submit side, if it is another.
	APCondor string `json:",omitempty"`
	// Kubernetes is the version of API server and kubelet, as a minor version: "1.34".
	Kubernetes string `json:",omitempty"`
	// Controllers says that a controller manager and a scheduler run.
	Controllers bool `json:",omitempty"`
	// FeatureGates are those of Kubernetes that are not as by default, in API server and kubelet.
	FeatureGates FeatureGates `json:",omitempty"`
	// Kubelet are fields of the kubelet's configuration that are not as the pool has them.
	Kubelet Object `json:",omitempty"`
	// Containerd is the version of containerd, as a minor version; "" is what the machine has.
	Containerd string `json:",omitempty"`
	// OCIRuntime is the program with which containerd makes containers: "crun", or "" for runc.
	OCIRuntime string `json:",omitempty"`
	// UserNamespaces says that execution points have user namespaces, and networks of their own.
	UserNamespaces bool `json:",omitempty"`
	// Pullers is the number of pods that get images onto the execution point's node.
	Pullers int `json:",omitempty"`
	// Network is the one that all pods have, if it is not the machine's: "nat", "ipv6" or "mixed".
	Network string `json:",omitempty"`
	// Stock says that a second execution point runs the stock starter.
	Stock bool
	// StockDocker and StockApptainer say that another runs jobs with images, with the stock starter and that runtime.
	StockDocker, StockApptainer bool `json:",omitempty"`
	// Slots is the number of slots, and of payload containers for them, of the execution point.
	Slots int
	// Spares is the number of payload containers beyond those.
	Spares int `json:",omitempty"`
	// GPUs is the number of payload containers with a device.
	GPUs int `json:",omitempty"`
	// Sidecars says that payload containers are init containers that go on beside the pilot.
	Sidecars bool `json:",omitempty"`
	// Dockerfile says that the pilot image is built by deploy/image/Dockerfile.
	Dockerfile bool `json:",omitempty"`
	// Partitionable says that the startd cuts the slots out of one when a job needs one.
	Partitionable bool
	// Mode is what the pilot shares with its payload containers: "shared", "unshared" or "rootless".
	Mode string
	// Faults is the number of execution points for tests of failures, and FaultsAPI the port on which they look for the
	// API server.
	Faults, FaultsAPI int
	// Audit says that the API server logs everybody's requests, and not only those of pilots.
	Audit bool `json:",omitempty"`
	// Guests is the number of guests in which the pool runs; these settings are then those of the host's side.
	Guests int `json:",omitempty"`
	// Nodes is the number of the cluster's nodes; 0 means one.
	Nodes int `json:",omitempty"`
	// Address is that of this machine for the cluster's other nodes; without one, everything listens on loopback.
	Address string `json:",omitempty"`
	// First is the address of the node with the API server, the registry and the submit side, if this is another.
	First string `json:",omitempty"`
	// Ports are the ports chosen, by the name of what listens on them.
	Ports map[string]int
	// NodeIP is the address under which the kubelet registers.
	NodeIP string
	// Link is the name of the network interface made for NodeIP, if one had to be made.
	Link string
	// Sysctls are the kernel settings that the kubelet changes, as they were before.
	Sysctls map[string]string
	// Absent are directories outside of the state that did not exist before; they are removed with the pool.
	Absent []string
}

// Versions are those of HTCondor that the pool runs: that of the execution points, and that of the submit side if it is
// another.
func (s Settings) Versions() []string {
	if s.APCondor == "" {
		return []string{s.Condor}
	}
	return []string{s.Condor, s.APCondor}
}

func (d Dir) settingsPath() string { return d.Path("settings.json") }

// Load reads the settings. If there are none, it returns empty ones.
func (d Dir) Load() (Settings, error) {
	var s Settings
	text, err := os.ReadFile(d.settingsPath())
	if errors.Is(err, fs.ErrNotExist) {
		return Settings{Ports: map[string]int{}}, nil
	}
	if err != nil {
		return s, fmt.Errorf("reading the pool's settings: %w", err)
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("reading the pool's settings in %s: %w; `down` clears them", d.settingsPath(), err)
	}
	if s.Ports == nil {
		s.Ports = map[string]int{}
	}
	return s, nil
}

// Forget removes the settings, which nobody can read.
func (d Dir) Forget() error {
	if err := os.Remove(d.settingsPath()); err != nil {
		return fmt.Errorf("removing the pool's settings: %w", err)
	}
	return nil
}

// Save writes the settings.
func (d Dir) Save(s Settings) error {
	return WriteJSON(d.settingsPath(), s)
}

// WriteJSON replaces the file at path by v, whole or not at all.
func WriteJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "\t")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return WriteFile(path, append(text, '\n'), 0o644)
}

// WriteFile replaces the file at path by data, whole or not at all, and makes the directories above it.
func WriteFile(path string, data []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".tmp-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(mode)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}
