//go:build pool

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"podstarter/integration/harness"
)

// mountedPayload is what a pod's payload container runs, and what it mounts where.
type mountedPayload struct {
	command string // the wrapper
	listed  []listedMount
	at      map[string]string // mount path by name of volume
	// Of the root of the volume of sandboxes.
	owner int
	mode  fs.FileMode
	// volume is that root as this machine sees it.
	volume string
}

// listedMount is one as the manifest lists it.
type listedMount struct {
	Name, MountPath, SubPath string
	ReadOnly                 bool
}

type listedContainer struct {
	Name         string
	Command      []string
	VolumeMounts []listedMount
}

func lookAtPayload(t *testing.T) mountedPayload {
	t.Helper()
	text, err := pool.Kubectl(t.Context(), nil, "-n", harness.Namespace, "get", "pod/"+side.PodName(), "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var pod struct {
		Spec     struct{ InitContainers, Containers []listedContainer }
		Metadata struct{ UID string }
	}
	if err := json.Unmarshal([]byte(text), &pod); err != nil {
		t.Fatal(err)
	}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if c.Name != "payload" {
			continue
		}
		m := mountedPayload{command: c.Command[0], listed: c.VolumeMounts, at: map[string]string{}}
		for _, v := range c.VolumeMounts {
			m.at[v.Name] = v.MountPath
		}
		m.volume = filepath.Join(pool.State, "kubelet", "pods", pod.Metadata.UID, "volumes", "kubernetes.io~empty-dir", "execute")
		info, err := os.Stat(m.volume)
		if err != nil {
			t.Fatal(err)
		}
		m.owner, m.mode = int(info.Sys().(*syscall.Stat_t).Uid), info.Mode().Perm()
		return m
	}
	t.Fatal("the pod has no container payload")
	return mountedPayload{}
}

// above are a path and all directories above it except the root.
func above(p string) (all []string) {
	for ; p != "/"; p = path.Dir(p) {
		all = append(all, p)
	}
	return all
}

// relative is the target of a link at a path that leads to the same place as the absolute
// one.
func relative(at, target string) string {
	rel, err := filepath.Rel(path.Dir(at), target)
	if err != nil {
		panic(err) // both are absolute
	}
	return rel
}

// A linkAttempt is a symbolic link of an image.
type linkAttempt struct{ name, at, target string }

// stranger is a directory beside the sandboxes of others.
const stranger = "dir_4711"

// linkAttempts are links in place of each mount and of the directories above it. They lead
// to programs: of the image in /stolen, and of jobs in their sandboxes.
func linkAttempts(m mountedPayload, sandboxes string) (all []linkAttempt) {
	stolen := path.Join(sandboxes, stranger, "stolen")
	execute := m.at["execute"]
	control := m.at["podstarter-control"]
	try := func(name, at, target string) { all = append(all, linkAttempt{name, at, target}) }
	for _, p := range above(m.command) {
		try("sandbox-for "+p, p, stolen+p)
		try("cwd-for "+p, p, "/proc/self/cwd/stolen"+p)
		try("execute-over "+p, execute, p)
	}
	try("sandbox-by-relative-link", path.Dir(m.command), relative(path.Dir(m.command), stolen+path.Dir(m.command)))
	try("cwd-and-up", m.command, "/proc/self/cwd/../stolen"+m.command)
	try("cwd-of-command", path.Dir(m.command), "/proc/self/cwd/stolen"+path.Dir(m.command))
	try("execute-over-command", execute, path.Dir(m.command))
	try("cwd-of-thread", m.command, "/proc/thread-self/cwd/stolen"+m.command)
	try("execute-over-by-relative-link", execute, relative(execute, path.Dir(m.command)))
	for _, p := range above(control) {
		try("control-in-cwd-for "+p, p, "/proc/self/cwd/stolen"+p)
	}
	try("control-in-sandbox", control, stolen+control)
	try("control-over-command", control, path.Dir(m.command))
	try("control-in-memory", path.Dir(control), "/dev/shm")
	try("execute-in-cwd", execute, "/proc/self/cwd/stolen"+execute)
	try("execute-in-cwd-from-above", "/var", "/proc/self/cwd/stolen/var")
	try("execute-over-control", execute, control)
	try("control-over-execute", control, execute)
	try("execute-over-root", execute, "/")
	try("hosts-in-sandbox", "/etc/hosts", stolen+m.command)
	try("hosts-over-command", "/etc/hosts", m.command)
	try("dev-elsewhere", "/dev", "stolen")
	try("dev-over-command", "/dev", relative("/dev", path.Dir(m.command)))
	return all
}

// intruder is a program that a container could run in place of the wrapper. It writes who it
// is into shared memory, where lootOf looks.
func intruder(name string) string {
	return "#!/bin/sh\n{ echo user $(id -u) $(grep CapEff /proc/self/status) nonce ${POD_STARTER_NONCE:-none}; } >/dev/shm/" + name + "\nexit 0\n"
}

// inPool are the attempts that are made with jobs.
var inPool = []string{"sandbox-by-relative-link", "cwd-of-command", "execute-over-command", "execute-over-control", "control-over-command", "hosts-over-command", "dev-elsewhere"}

// TestModeMountPoints: an image has symbolic links in place of what the pod mounts, and of
// directories above. They lead to a program of the image or of another job, which the
// container must never run as root. What becomes of the job does not matter.
func TestModeMountPoints(t *testing.T) {
	oursOnly(t)
	m := lookAtPayload(t)
	sandboxes := sandboxesOf(t)
	here := filepath.Join(m.volume, strings.TrimPrefix(sandboxes, m.at["execute"]))
	registry := startLinkRegistry(t)
	owner := pool.PayloadUID(side)
	if pool.Mode != harness.Rootless {
		owner += pool.PayloadUsers() // that of a neighbour: what the job's own user has left is removed before it begins
	}
	for i, a := range linkAttempts(m, sandboxes) {
		// Each takes a while: TestMountOrders has all of them, with runc only.
		if !slices.Contains(inPool, a.name) {
			continue
		}
		t.Run(strings.ReplaceAll(a.name, "/", "-"), func(t *testing.T) {
			name := fmt.Sprintf("mountpoint-%d", i)
			image := linkImage{links: map[string]string{a.at: a.target}, programs: map[string]string{"/stolen" + m.command: intruder(name)}}
			tryImage(t, registry, name, image, func() {
				// Now the job's own sandbox exists, and nothing else is removed.
				plant(t, owner, here, path.Join(stranger, "stolen", m.command), intruder(name))
				if pool.Mode != harness.Rootless {
					return
				}
				// The job's user owns what is beside its sandbox, too.
				for _, p := range above(m.command) {
					if rest := strings.TrimPrefix(m.command, p+"/"); rest != m.command {
						plant(t, owner, here, rest, intruder(name))
					}
				}
			})
		})
	}
}

// TestModeImageVolumes: the runtime mounts an image's declared volumes together with the
// pod's, those with the longest paths last, and fills them with the image's files. None may
// cover the wrapper.
func TestModeImageVolumes(t *testing.T) {
	oursOnly(t)
	m := lookAtPayload(t)
	registry := startLinkRegistry(t)
	way, program := "/a/very/long/way/there", path.Base(m.command)
	link := map[string]string{way: path.Dir(m.command)}
	for name, image := range map[string]linkImage{
		"over-directory-by-link": {links: link, volumes: []string{way}},
		"over-command-by-link":   {links: link, volumes: []string{way + "/" + program}},
		"over-directory":         {volumes: []string{path.Dir(m.command)}},
		"over-command":           {volumes: []string{m.command}},
	} {
		t.Run(name, func(t *testing.T) {
			name := "volume-" + name
			image.programs = map[string]string{m.command: intruder(name)}
			tryImage(t, registry, name, image, func() {})
		})
	}
}

// tryImage runs a job in an image with programs that report when they run. The function is
// called while the image is being pulled.
func tryImage(t *testing.T, registry *linkRegistry, name string, image linkImage, waits func()) {
	t.Helper()
	s := job("sleep=0s", "universe = docker", "docker_image = "+registry.add(t, name, image), "on_exit_remove = true", "max_retries = 0")
	job := submit(t, s)[0]
	defer registry.release(name)
	select {
	case <-registry.asked[name]:
	case <-soon(t, patience).Done():
		t.Fatal("nobody asked for the image")
	}
	waits()
	registry.release(name)
	_, err := job.WaitEvents(soon(t, patience), "what becomes of it", func(events []harness.Event) bool {
		return slices.ContainsFunc(events, func(e harness.Event) bool {
			_, ended := harness.EndingOf(e)
			return ended || e.Number == harness.EventRemoteError || e.Number == harness.EventEvicted || e.Number == harness.EventShadowException
		})
	})
	if err != nil {
		t.Error(err)
	}
	events, _ := job.Events()
	t.Log(harness.Headlines(events))
	if loot := lootOf(t, name); loot != "" {
		t.Errorf("links %v, volumes %v: the container ran another program than the wrapper: %s", image.links, image.volumes, loot)
	}
	_, _ = pool.AP(t.Context(), "condor_rm", job.ID())
}

// lootOf is what an intruder wrote, in the shared memory of a payload container or in that of the pod. It is removed.
func lootOf(t *testing.T, name string) string {
	t.Helper()
	loot, err := pool.EP(t.Context(), side, "sh", "-c", `cat /dev/shm/`+name+` 2>/dev/null; rm -f /dev/shm/`+name)
	if err != nil {
		t.Fatal(err)
	}
	volumes, err := filepath.Glob(filepath.Join(filepath.Dir(lookAtPayload(t).volume), "shm-*"))
	if err != nil || len(volumes) == 0 {
		t.Fatalf("no payload container has a volume for shared memory: %v, %v", volumes, err)
	}
	for _, volume := range volumes {
		file := filepath.Join(volume, name)
		text, err := os.ReadFile(file)
		if err == nil {
			err = os.Remove(file)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		loot += string(text)
	}
	return strings.TrimSpace(loot)
}

// sandboxesOf is the directory that payloads have their sandboxes in.
func sandboxesOf(t *testing.T) string {
	t.Helper()
	knob := "EXECUTE"
	if pool.Mode == harness.Rootless {
		knob = "POD_STARTER_SCRATCH_DIR"
	}
	dir, err := pool.Config(t.Context(), side, knob)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// plant puts a program where a job with this user could put it: in a directory of its own
// beside the sandboxes of others, open to all others. Inside the pod not even root may do
// that in every mode.
func plant(t *testing.T, owner int, sandboxes, file, text string) {
	t.Helper()
	own, _, _ := strings.Cut(file, "/")
	own, file = filepath.Join(sandboxes, own), filepath.Join(sandboxes, file)
	err := os.MkdirAll(filepath.Dir(file), 0o755)
	if err == nil {
		err = os.WriteFile(file, []byte(text), 0o755)
	}
	if err == nil {
		err = filepath.WalkDir(own, func(path string, _ fs.DirEntry, err error) error {
			return errors.Join(err, os.Lchown(path, owner, owner))
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(own); err != nil {
			t.Error(err)
		}
	})
}
