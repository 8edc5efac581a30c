//go:build pool

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"podstarter/integration/harness"
)

// Exit codes of the two programs that a container may run.
const (
	genuine  = 3
	intruded = 66
)

// bindMount is a mount of a container, from a path below the case's volumes.
type bindMount struct {
	volume, at string
	readOnly   bool
}

// TestMountOrders: an image has a symbolic link in place of a mount, or of a
// directory above one. In whatever order a runtime mounts, root runs only the
// wrapper. Mounts, command and the mode of the volume's root are those of the pod
// that runs; runc starts the containers, without a cluster.
func TestMountOrders(t *testing.T) {
	oursOnly(t)
	m := lookAtPayload(t)
	depth := func(a, b bindMount) int { return strings.Count(a.at, "/") - strings.Count(b.at, "/") }
	orders := map[string]func([]bindMount){
		"containerd": func(l []bindMount) { slices.SortStableFunc(l, depth) },
		"by-name": func(l []bindMount) {
			slices.SortFunc(l, func(a, b bindMount) int { return strings.Compare(a.at, b.at) })
		},
		"as-listed": func([]bindMount) {},
		"reversed":  slices.Reverse[[]bindMount],
	}
	sandboxes := sandboxesOf(t)
	cases := append([]linkAttempt{{"no link", "/unused", "/nowhere"}}, linkAttempts(m, sandboxes)...)
	for _, name := range slices.Sorted(maps.Keys(orders)) {
		t.Run(name, func(t *testing.T) {
			for _, a := range cases {
				code, said := runBundle(t, m, sandboxes, a, orders[name])
				switch {
				case code == intruded:
					t.Errorf("%s: %s -> %s: the container ran another program than the wrapper", a.name, a.at, a.target)
				case a.target == "/nowhere" && code != genuine:
					t.Errorf("%s: exit code %d, %s", a.name, code, said)
				default:
					t.Logf("%s: exit code %d %s", a.name, code, said)
				}
			}
		})
	}
	// Without both defences a program of another job must run, or the test shows
	// nothing.
	open := m
	open.command, open.mode = "/opt/podstarter/bin/condor_pod_wrapper", 0o755
	open.listed = slices.Clone(m.listed)
	for i, v := range open.listed {
		if v.MountPath == m.command {
			open.listed[i] = listedMount{Name: v.Name, MountPath: path.Dir(open.command), ReadOnly: true}
		}
	}
	for _, a := range linkAttempts(open, sandboxes) {
		if a.name != "sandbox-by-relative-link" {
			continue
		}
		if code, said := runBundle(t, open, sandboxes, a, orders["containerd"]); code != intruded {
			t.Errorf("without the defences, %s -> %s: exit code %d, want that of another program than the wrapper, %d: %s", a.at, a.target, code, intruded, said)
		}
	}
}

// runBundle starts a container with a link in its image, and returns how it ended.
func runBundle(t *testing.T, m mountedPayload, sandboxes string, a linkAttempt, order func([]bindMount)) (code int, said string) {
	t.Helper()
	dir, err := os.MkdirTemp(t.TempDir(), "bundle")
	if err != nil {
		t.Fatal(err)
	}
	root, volumes := filepath.Join(dir, "rootfs"), filepath.Join(dir, "volumes")
	program, err := os.ReadFile(filepath.Join(pool.State, "bin", harness.ProbeName))
	if err != nil {
		t.Fatal(err)
	}
	stolen := fmt.Sprintf("#!/probe exit=%d\n", intruded)
	put := func(path string, data []byte) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put(filepath.Join(root, "probe"), program)
	put(filepath.Join(root, "stolen", m.command), []byte(stolen))
	put(filepath.Join(volumes, "podstarter-bin", "condor_pod_wrapper"), program)
	put(filepath.Join(volumes, "hosts"), nil)
	for _, v := range []string{"shm", "podstarter-control"} {
		if err := os.Mkdir(filepath.Join(volumes, v), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// What jobs could have put into the directory of sandboxes, and more.
	jobs := filepath.Join(volumes, "execute", strings.TrimPrefix(sandboxes, m.at["execute"]))
	put(filepath.Join(jobs, stranger, "stolen", m.command), []byte(stolen))
	for _, p := range above(m.command) {
		put(filepath.Join(jobs, strings.TrimPrefix(m.command, path.Dir(p))), []byte(stolen))
	}
	execute := filepath.Join(volumes, "execute")
	if err := errors.Join(os.Chown(execute, m.owner, m.owner), os.Chmod(execute, m.mode)); err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(root, a.at)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(a.target, at); err != nil && !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
	mounts := []bindMount{{"hosts", "/etc/hosts", false}, {"hosts", "/dev/termination-log", false}}
	own := false
	for _, v := range m.listed {
		mounts = append(mounts, bindMount{filepath.Join(v.Name, v.SubPath), v.MountPath, v.ReadOnly})
		if own = own || v.MountPath == "/dev/shm"; v.MountPath == "/dev/shm" {
			// What jobs could have put there.
			put(filepath.Join(volumes, v.Name, path.Base(m.command)), []byte(stolen))
		}
	}
	if !own {
		// The pod's, which containerd mounts where the manifest has no volume.
		mounts = append(mounts, bindMount{"shm", "/dev/shm", false})
	}
	order(mounts)
	writeBundle(t, dir, m.command, volumes, mounts)
	id := filepath.Base(filepath.Dir(dir)) + filepath.Base(dir)
	runc := func(args ...string) *exec.Cmd {
		return exec.Command("runc", append([]string{"--root", filepath.Join(dir, "state")}, args...)...)
	}
	command := runc("run", "--bundle", dir, id)
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	err = command.Run()
	_ = runc("delete", "--force", id).Run()
	exited := (*exec.ExitError)(nil)
	if err != nil && !errors.As(err, &exited) {
		t.Fatalf("runc, which the pool's machine has: %v", err)
	}
	return command.ProcessState.ExitCode(), strings.TrimSpace(strings.ReplaceAll(out.String(), dir, ""))
}

// writeBundle writes the configuration of a container like the payload's: its
// capabilities, and what a kubelet's runtime mounts first.
func writeBundle(t *testing.T, dir, command, volumes string, mounts []bindMount) {
	t.Helper()
	type m = map[string]any
	list := []m{
		{"destination": "/proc", "type": "proc", "source": "proc", "options": []string{"nosuid", "noexec", "nodev"}},
		{"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": []string{"nosuid", "strictatime", "mode=755", "size=65536k"}},
		{"destination": "/dev/pts", "type": "devpts", "source": "devpts", "options": []string{"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"}},
		{"destination": "/dev/mqueue", "type": "mqueue", "source": "mqueue", "options": []string{"nosuid", "noexec", "nodev"}},
		{"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": []string{"nosuid", "noexec", "nodev", "ro"}},
	}
	for _, b := range mounts {
		access := "rw"
		if b.readOnly {
			access = "ro"
		}
		list = append(list, m{"destination": b.at, "type": "bind", "source": filepath.Join(volumes, b.volume), "options": []string{"rbind", "rprivate", access}})
	}
	rights := []string{"CAP_KILL", "CAP_SETGID", "CAP_SETPCAP", "CAP_SETUID"}
	config := m{
		"ociVersion": "1.0.2", "root": m{"path": "rootfs"}, "mounts": list,
		"process": m{
			"user": m{"uid": 0, "gid": 0}, "args": []string{command, fmt.Sprintf("exit=%d", genuine)}, "cwd": "/", "noNewPrivileges": true,
			"capabilities": m{"bounding": rights, "effective": rights, "permitted": rights},
		},
		"linux": m{"namespaces": []m{{"type": "pid"}, {"type": "ipc"}, {"type": "uts"}, {"type": "mount"}, {"type": "network"}}},
	}
	text, err := json.Marshal(config)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "config.json"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
