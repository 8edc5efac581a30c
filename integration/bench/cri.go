package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podstarter/integration/harness"
	"podstarter/payload"
)

// bareCRI does the same as bare with the calls that a kubelet makes, in an existing
// pod sandbox: the rest of a binding's time is the kubelet's and ours. The kubelet
// itself is stopped meanwhile, since it would end a pod that it does not know.
func (b *bencher) bareCRI(ctx context.Context, n int) (took []time.Duration, err error) {
	resume, err := b.stopKubelet()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, resume()) }()
	address, err := b.containerdSocket()
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient("unix://"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("connecting to containerd: %w", err)
	}
	defer conn.Close()
	runtime := cri.NewRuntimeServiceClient(conn)

	name := fmt.Sprintf("bench-%d", os.Getpid())
	security := &cri.NamespaceOption{Network: cri.NamespaceMode_NODE, Pid: cri.NamespaceMode_POD}
	pod := &cri.PodSandboxConfig{
		Metadata: &cri.PodSandboxMetadata{Name: name, Namespace: "bench", Uid: name},
		Linux:    &cri.LinuxPodSandboxConfig{SecurityContext: &cri.LinuxSandboxSecurityContext{NamespaceOptions: security}},
	}
	sandbox, err := runtime.RunPodSandbox(ctx, &cri.RunPodSandboxRequest{Config: pod})
	if err != nil {
		return nil, fmt.Errorf("starting a pod sandbox: %w", err)
	}
	defer func() {
		clean, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_, stopped := runtime.StopPodSandbox(clean, &cri.StopPodSandboxRequest{PodSandboxId: sandbox.PodSandboxId})
		_, removed := runtime.RemovePodSandbox(clean, &cri.RemovePodSandboxRequest{PodSandboxId: sandbox.PodSandboxId})
		err = errors.Join(err, stopped, removed)
	}()
	for i := range n {
		one, err := b.criOnce(ctx, runtime, sandbox.PodSandboxId, pod, fmt.Sprintf("%s-%d", name, i))
		if err != nil {
			return nil, err
		}
		took = append(took, one)
	}
	return took, nil
}

func (b *bencher) criOnce(ctx context.Context, runtime cri.RuntimeServiceClient, sandbox string, pod *cri.PodSandboxConfig, name string) (time.Duration, error) {
	dir, err := os.MkdirTemp("", name)
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	const program = "/condor_pod_wrapper"
	config := &cri.ContainerConfig{
		Metadata: &cri.ContainerMetadata{Name: name},
		Image:    &cri.ImageSpec{Image: b.pool.Image(imageA)},
		Command:  []string{program, "-control", "/control"},
		Envs:     []*cri.KeyValue{{Key: payload.NonceEnv, Value: name}},
		Mounts: []*cri.Mount{
			{HostPath: filepath.Join(b.pool.Root, "bin", "condor_pod_wrapper"), ContainerPath: program, Readonly: true},
			{HostPath: dir, ContainerPath: "/control"},
		},
		Linux: &cri.LinuxContainerConfig{SecurityContext: &cri.LinuxContainerSecurityContext{
			NamespaceOptions: pod.Linux.SecurityContext.NamespaceOptions,
		}},
	}
	began := time.Now()
	created, err := runtime.CreateContainer(ctx, &cri.CreateContainerRequest{PodSandboxId: sandbox, Config: config, SandboxConfig: pod})
	if err != nil {
		return 0, fmt.Errorf("creating container %s: %w", name, err)
	}
	if _, err := runtime.StartContainer(ctx, &cri.StartContainerRequest{ContainerId: created.ContainerId}); err != nil {
		return 0, fmt.Errorf("starting container %s: %w", name, err)
	}
	client, err := payload.Dial(ctx, payload.Options{Dir: dir, Nonce: name})
	if err != nil {
		return 0, err
	}
	took := time.Since(began)
	if err := client.Leave(ctx); err != nil {
		return 0, err
	}
	if _, err := runtime.StopContainer(ctx, &cri.StopContainerRequest{ContainerId: created.ContainerId}); err != nil {
		return 0, fmt.Errorf("stopping container %s: %w", name, err)
	}
	if _, err := runtime.RemoveContainer(ctx, &cri.RemoveContainerRequest{ContainerId: created.ContainerId}); err != nil {
		return 0, fmt.Errorf("removing container %s: %w", name, err)
	}
	return took, nil
}

// stopKubelet stops the pool's kubelet until the returned function is called.
func (b *bencher) stopKubelet() (resume func() error, err error) {
	found, err := harness.Processes(func(p harness.Process) bool {
		return p.Comm == "kubelet" && slices.ContainsFunc(p.Args, func(arg string) bool { return strings.Contains(arg, b.pool.State+"/") })
	})
	if err != nil {
		return nil, err
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("%d kubelets of %s run: %v", len(found), b.pool.State, found)
	}
	return func() error { return harness.Kill(found[0], unix.SIGCONT) }, harness.Kill(found[0], unix.SIGSTOP)
}
