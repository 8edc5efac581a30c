package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Cluster says where the pool's cluster is.
type Cluster struct {
	Server string // base address of the API server
	Keys   string // directory of its keys and certificates
	NodeIP string // address of the node that is not the loopback's
}

// Cluster reads the pool program's notes.
func (p *Pool) Cluster() (Cluster, error) {
	text, err := os.ReadFile(filepath.Join(p.State, "settings.json"))
	if err != nil {
		return Cluster{}, fmt.Errorf("finding the cluster: %w", err)
	}
	var settings struct {
		NodeIP string
		Ports  map[string]int
	}
	if err := json.Unmarshal(text, &settings); err != nil {
		return Cluster{}, fmt.Errorf("finding the cluster: %w", err)
	}
	return Cluster{
		Server: fmt.Sprintf("https://127.0.0.1:%d", settings.Ports["kube-apiserver"]),
		Keys:   filepath.Join(p.State, "pki"), NodeIP: settings.NodeIP,
	}, nil
}

// Fault is one of the execution points for tests of failures (`pool up --faults
// N`).
type Fault struct {
	Pod  string
	pool *Pool
}

// Fault returns one of them, from 1.
func (p *Pool) Fault(n int) Fault {
	return Fault{Pod: fmt.Sprintf("faults-%d", n), pool: p}
}

// EP runs a command as root in its pilot container.
func (f Fault) EP(ctx context.Context, stdin io.Reader, argv ...string) (string, error) {
	return f.pool.run(ctx, stdin, append([]string{"ep", "--pod", f.Pod}, argv...)...)
}

// Volume is a directory volume of its pod on this machine.
func (f Fault) Volume(ctx context.Context, name string) (string, error) {
	uid, err := f.pool.Kubectl(ctx, nil, "-n", Namespace, "get", "pod", f.Pod, "-o", "jsonpath={.metadata.uid}")
	if err != nil {
		return "", err
	}
	return filepath.Join(f.pool.State, "kubelet", "pods", uid, "volumes", "kubernetes.io~empty-dir", name), nil
}

// Namespace names its PID namespace, as [Process] does.
func (f Fault) Namespace(ctx context.Context) (string, error) {
	return f.EP(ctx, nil, "readlink", "-n", "/proc/self/ns/pid")
}

// log is its starters' log.
func (f Fault) log() string {
	return filepath.Join(f.pool.State, "log", f.Pod, "StarterLog.slot1")
}

// Idle waits until no starter runs there, and returns the mark from which
// [Fault.RunsSince] counts. The namespace is the pod's.
func (f Fault) Idle(ctx context.Context, namespace string) (mark int64, err error) {
	err = WaitNone(ctx, func(q Process) bool {
		return q.Comm == Ours.StarterComm() && q.Namespace == namespace && !q.IsErrand()
	})
	if err != nil {
		return 0, err
	}
	info, err := os.Stat(f.log())
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil // no job has been there
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// RunsSince are the runs in its starters' log after the mark. If a run ends before
// its job starts, only this finds it: the log does not name the job then.
func (f Fault) RunsSince(mark int64) ([]Run, error) {
	text, err := os.ReadFile(f.log())
	if err != nil {
		return nil, err
	}
	if int64(len(text)) < mark {
		return nil, fmt.Errorf("the log %s became shorter", f.log())
	}
	return ParseStarterLog(string(text[mark:]))
}
