package k8sexec

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podstarter/k8sexec/audit"
	"podstarter/k8sexec/imageref"
	"podstarter/k8sexec/options"
	"podstarter/k8sexec/podapi"
	"podstarter/payload"
	"podstarter/payload/backendtest"
	"podstarter/payload/procfamily"
	"podstarter/wrapper/agent"
	"podstarter/wrapper/agent/agenttest"
)

func TestBackend(t *testing.T) {
	backendtest.Run(t, func(t *testing.T) backendtest.Fixture { return newFixture(t, func(*corev1.Pod) {}) })
}

// newFixture is a pod whose payload containers are real wrappers.
func newFixture(t *testing.T, shape func(*corev1.Pod)) backendtest.Fixture {
	containers := []string{"payload", "payload-2"}
	if !agenttest.Root() {
		containers = containers[:1] // as for every pilot without root
	}
	uid := agenttest.Payloads(t, len(containers))
	w := newWorld(t, func(o *options.Options) { o.Containers, o.BaseUID = containers, uid })
	shape(w.api.Pod)
	w.backend.self, w.backend.killUser = audit.OwnIdentity(), killUser
	// Real wrappers take their time on a busy machine.
	w.backend.opt.BindTimeout = time.Minute
	w.backend.timing.silence, w.backend.timing.idle, w.backend.timing.autopsy = time.Minute, time.Minute, time.Minute
	w.backend.timing.kill = time.Minute
	k := newNode(w)
	return backendtest.Fixture{
		Backend: w.backend, Slots: len(containers), Rebinds: true,
		Inspected: func(t *testing.T, wrong bool) payload.Backend {
			a := newAuditWorld(t)
			shape(a.pod)
			if wrong {
				a.pod.Spec.RestartPolicy = corev1.RestartPolicyNever
			}
			a.wrappers()
			a.api.Pod = a.pod
			return a.backend
		},
		Hold: func(t *testing.T) func() { return holdLeaseOf(t, w, containers[len(containers)-1]) },
		Break: func(*testing.T) {
			w.failVerb("patch", denial("some-policy"))
		},
		Stall: func(*testing.T) <-chan struct{} {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.stalled = make(chan struct{}, 8)
			return k.stalled
		},
		End: func(t *testing.T, c payload.Container) { k.end(t, c, "OOMKilled") },
		TakeDown: func(t *testing.T, c payload.Container) {
			if c.(*container).suspected != nil {
				k.terminatePilot(t, c)
			} else {
				k.terminate(t, c)
			}
		},
		Images: &backendtest.Images{Default: testDefault, Other: "registry.example.com/u/tool:2",
			Refuse: func(_ *testing.T, image string) {
				k.mu.Lock()
				defer k.mu.Unlock()
				k.missing = append(k.missing, image)
			}},
	}
}

// node runs the payload containers of a world's pod: a container is a real wrapper, and
// all processes that it started end with it.
type node struct {
	w *world

	mu      sync.Mutex
	running map[string]*containerProcess
	missing []string      // images that the registry does not have
	stalled chan struct{} // has a value for each container that never announces itself; nil if all do
	over    bool
}

// containerProcess is a running container.
type containerProcess struct {
	cmd    *exec.Cmd
	id     string
	image  string
	family procfamily.Family
	gone   chan struct{} // closed when its first process has ended
}

func newNode(w *world) *node {
	k := &node{w: w, running: make(map[string]*containerProcess)}
	w.api.OnPatch = func(_ *corev1.Pod, changed map[string]bool) {
		for name := range changed {
			k.sync(name)
		}
	}
	w.t.Cleanup(func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.over = true
		for _, c := range k.running {
			k.kill(c)
		}
	})
	return k
}

// sync makes a container anew if it does not run, or runs another image than the pod's.
func (k *node) sync(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	pod := k.w.api.Snapshot()
	image, c := podapi.SpecOf(pod, name).Image, k.running[name]
	if k.over || c != nil && c.image == image {
		return
	}
	if c != nil {
		delete(k.running, name)
		k.kill(c)
	}
	if img, err := imageref.Parse(image); err != nil || slices.Contains(k.missing, img.String()) {
		k.w.api.Status(name, func(_ *corev1.Pod, s *corev1.ContainerStatus) {
			s.State = waitingFor("ErrImagePull", `failed to pull and unpack image "`+image+`": failed to resolve reference "`+image+`": `+image+`: not found`)
		})
		return
	}
	c = k.start(name, image, pod.Annotations[podapi.NonceAnnotation+name])
	k.running[name] = c
	k.w.api.Status(name, func(_ *corev1.Pod, s *corev1.ContainerStatus) {
		s.ContainerID = "containerd://" + c.id
		s.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	})
	go func() { // RestartPolicy Always
		<-c.gone
		k.mu.Lock()
		if k.running[name] != c {
			k.mu.Unlock()
			return
		}
		delete(k.running, name)
		k.kill(c)
		k.mu.Unlock()
		k.sync(name)
	}()
}

// start starts a container. The lock is held.
func (k *node) start(name, image, nonce string) *containerProcess {
	c := &containerProcess{image: image, gone: make(chan struct{})}
	c.cmd = exec.Command(agenttest.Program(), "-control", filepath.Join(k.w.control, name))
	c.cmd.Args[0], c.cmd.Dir, c.cmd.Env = agent.WrapperName, "/", []string{payload.NonceEnv + "=" + nonce}
	if k.stalled != nil {
		c.cmd = exec.Command("sleep", "1000")
	}
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if err := c.cmd.Start(); err != nil {
		panic(err) // of a program that is there
	}
	if k.stalled != nil {
		k.stalled <- struct{}{}
	}
	k.w.boots++
	c.id = testID(k.w.boots)
	k.w.setContainerOf(c.cmd.Process.Pid, c.id)
	if c.family = procfamily.OfDescendants("/proc", c.cmd.Process.Pid); agenttest.Root() {
		c.family = procfamily.OfUser("/proc", k.w.backend.opt.BaseUID+slices.Index(k.w.backend.opt.Containers, name))
	}
	go func() {
		_ = c.cmd.Wait()
		close(c.gone)
	}()
	return c
}

// kill ends all processes of a container, as the end of its PID namespace does.
func (k *node) kill(c *containerProcess) {
	_ = c.cmd.Process.Signal(syscall.SIGSTOP) // before it can report the others' end
	var killer *procfamily.Killer
	if agenttest.Root() {
		var err error
		if killer, err = procfamily.NewKiller(); err != nil {
			k.w.t.Error(err)
			return
		}
		defer killer.Close()
	}
	if err := c.family.Kill(context.Background(), killer); err != nil {
		k.w.t.Error(err)
	}
	_ = c.cmd.Process.Kill()
	<-c.gone
}

// of finds a bound container.
func (k *node) of(t *testing.T, c payload.Container) (name string, running *containerProcess) {
	t.Helper()
	name = c.(*container).lease.name
	k.mu.Lock()
	defer k.mu.Unlock()
	running = k.running[name]
	if running == nil || running.cmd.Process.Pid != c.Client().Hello().PID {
		t.Fatalf("container %s is not what runs", name)
	}
	return name, running
}

// end ends a container for a reason, and makes it anew.
func (k *node) end(t *testing.T, bound payload.Container, reason string) {
	name, c := k.of(t, bound)
	k.mu.Lock()
	delete(k.running, name)
	k.kill(c)
	k.mu.Unlock()
	k.w.api.Status(name, func(_ *corev1.Pod, s *corev1.ContainerStatus) {
		s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ContainerID: "containerd://" + c.id, Reason: reason, ExitCode: 137, FinishedAt: metav1.Now()}
	})
	k.sync(name)
}

// terminate deletes the pod, and tells its containers.
func (k *node) terminate(t *testing.T, bound payload.Container) {
	name, c := k.of(t, bound)
	k.w.api.Status(name, func(p *corev1.Pod, _ *corev1.ContainerStatus) {
		now := metav1.Now()
		p.DeletionTimestamp = &now
	})
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

// terminatePilot deletes the pod, and tells the pilot, which tells the startd, which vacates the job.
func (k *node) terminatePilot(t *testing.T, bound payload.Container) {
	name, _ := k.of(t, bound)
	k.w.api.Status(name, func(p *corev1.Pod, _ *corev1.ContainerStatus) {
		now := metav1.Now()
		p.DeletionTimestamp = &now
	})
	bound.Suspect()
}

// holdLeaseOf has another process take the lease of a container.
func holdLeaseOf(t *testing.T, w *world, container string) (kill func()) {
	t.Helper()
	other := exec.Command(agenttest.Program(), w.private, container)
	other.Args[0] = holderName
	out, err := other.StdoutPipe()
	if err == nil {
		err = other.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	kill = func() {
		_ = other.Process.Kill()
		_ = other.Wait()
	}
	t.Cleanup(kill)
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "leased\n" {
		t.Fatalf("the other process said %q, %v", line, err)
	}
	return kill
}

// holderName makes the test binary a starter that holds a lease until it is killed.
const holderName = "test-holder"

func holder(args []string) int {
	b := &Backend{opt: options.Options{Containers: args[1:], PrivateDir: args[0]}, timing: defaultTiming, life: context.Background(), log: discard()}
	b.killUser = func(context.Context, int) error { return nil }
	if _, err := b.Lease(context.Background(), payload.Wish{}); err != nil {
		return 1
	}
	_, _ = os.Stdout.WriteString("leased\n")
	select {}
}

// setContainerOf makes a process one of a container.
func (w *world) setContainerOf(pid int, id string) {
	dir := filepath.Join(w.proc, strconv.Itoa(pid))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		w.t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "cgroup"), []byte("0::/../cri-containerd-"+id+".scope\n"), 0o600); err != nil {
		w.t.Error(err)
	}
}
