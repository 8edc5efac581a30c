package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"

	"podstarter/payload"
)

// bare makes containerd start the wrapper in the image, without a kubelet, and
// measures the time from the call of its client until the wrapper answers.
func (b *bencher) bare(ctx context.Context, n int) ([]time.Duration, error) {
	ctr, err := b.containerd()
	if err != nil {
		return nil, err
	}
	var took []time.Duration
	for i := range n {
		one, err := b.bareOnce(ctx, ctr, fmt.Sprintf("bench-%d-%d", os.Getpid(), i))
		if err != nil {
			return nil, err
		}
		took = append(took, one)
	}
	return took, nil
}

// containerd is the command line of the client of the pool's containerd.
func (b *bencher) containerd() ([]string, error) {
	socket, err := b.containerdSocket()
	return []string{"ctr", "--address", socket, "--namespace", "k8s.io"}, err
}

// containerdSocket is where the pool's containerd listens.
func (b *bencher) containerdSocket() (string, error) {
	path := filepath.Join(b.pool.State, "containerd.toml")
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	m := regexp.MustCompile(`(?m)^\s*address = "(.*)"`).FindSubmatch(text)
	if m == nil {
		return "", fmt.Errorf("%s does not tell where containerd listens", path)
	}
	return string(m[1]), nil
}

func (b *bencher) bareOnce(ctx context.Context, ctr []string, name string) (took time.Duration, err error) {
	dir, err := os.MkdirTemp("", name)
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	call := func(ctx context.Context, args ...string) error {
		command := exec.CommandContext(ctx, ctr[0], append(ctr[1:len(ctr):len(ctr)], args...)...)
		if out, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", command, err, out)
		}
		return nil
	}
	const program = "/condor_pod_wrapper"
	control := filepath.Join(dir, "control")
	if err := os.Mkdir(control, 0o700); err != nil {
		return 0, err
	}
	began := time.Now()
	err = call(ctx, "run", "--detach", "--null-io", "--env", payload.NonceEnv+"="+name,
		"--mount", "type=bind,src="+filepath.Join(b.pool.Root, "bin", "condor_pod_wrapper")+",dst="+program+",options=rbind:ro",
		"--mount", "type=bind,src="+control+",dst=/control,options=rbind:rw",
		b.pool.Image(imageA), name, program, "-control", "/control")
	if err != nil {
		return 0, err
	}
	client, err := payload.Dial(ctx, payload.Options{Dir: control, Nonce: name})
	took = time.Since(began)
	if err == nil {
		err = client.Leave(ctx)
	}
	clean, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	// With --force this ends what still runs.
	if failed := call(clean, "task", "delete", "--force", name); failed != nil && err == nil {
		err = failed
	}
	if failed := call(clean, "container", "delete", name); failed != nil && err == nil {
		err = failed
	}
	return took, err
}
