package podgpus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/payload"
	"podstarter/payload/devices"
)

// container is a payload container: what the two programs print inside it.
type container struct {
	discovery, nodes string
	broken           error // it cannot be visited
}

// pod plays the cluster.
type pod struct {
	uid     string
	has     map[string]container
	visited []string
}

func (p *pod) PodUID(context.Context) (string, error) {
	if p.uid == "" {
		return "", errors.New("the API server does not answer")
	}
	return p.uid, nil
}

func (p *pod) Visit(ctx context.Context, name string, visit func(context.Context, payload.Wrapper, int, int) error) error {
	p.visited = append(p.visited, name)
	c := p.has[name]
	if c.broken != nil {
		return fmt.Errorf("visit payload container %s: %w", name, c.broken)
	}
	return visit(ctx, &wrapper{has: c}, 10001, 10001)
}

// wrapper runs the programs.
type wrapper struct {
	payload.Wrapper
	has  container
	last payload.Spec
}

func (w *wrapper) Start(_ context.Context, s payload.Spec, _ ...*os.File) (payload.Started, error) {
	w.last = s
	if err := s.Validate(); err != nil || s.AsRoot || s.UID != 10001 || !s.ImageEnv {
		return payload.Started{}, fmt.Errorf("it is not to be run as %+v: %w", s, err)
	}
	return payload.Started{}, nil
}

func (w *wrapper) Wait(context.Context) (payload.Exit, error) {
	output := w.has.discovery
	if w.last.Args[0] == devices.Program {
		output = w.has.nodes
	}
	if text, bad := strings.CutPrefix(output, "fails: "); bad {
		return payload.Exit{WaitStatus: 127 << 8, Output: []byte(text)}, nil
	}
	return payload.Exit{Output: []byte(output)}, nil
}

const (
	none  = `{"devices":null}`
	plain = `{"devices":[{"maker":"nvidia","uuid":"GPU-0000000a-0000-4000-8000-000000000000","name":"A100","bus":"0000:3b:00.0","driver":"570","denied":"/dev/nvidia0: permission denied"}]}`
)

func found(id string) string {
	return fmt.Sprintf("DetectedGPUs=\"GPU-%[1]s\"\nCommon=[ Capability=8.0; ]\nGPU_%[1]s=[ id=\"GPU-%[1]s\"; DeviceUuid=\"%[1]s\"; ]\n", id)
}

func newPod(t *testing.T) Pod {
	t.Helper()
	dir := t.TempDir()
	p := Pod{StateDir: filepath.Join(dir, "state"), PublishDir: filepath.Join(dir, "lock"), Containers: []string{"a", "b", "c"}, WithGPUs: []string{"a", "b"},
		Discovery: []string{filepath.Join(dir, "discovery"), "-properties"}}
	for _, d := range []string{p.StateDir, p.PublishDir} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(p.Discovery[0], []byte("\x7fELF"), 0o755); err != nil {
		t.Fatal(err)
	}
	return p
}

func printed(t *testing.T, p Pod) string {
	t.Helper()
	var out bytes.Buffer
	if err := p.Print(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

func TestFind(t *testing.T) {
	for name, tt := range map[string]struct {
		a, b  container
		want  []string // in what is printed
		wrong string
		warns string
	}{
		"by HTCondor's program": {a: container{discovery: found("1"), nodes: plain}, b: container{discovery: found("2"), nodes: plain},
			want: []string{`DetectedGPUs = "GPU-1, GPU-2"`, "Capability = 8.0", "PodStarterGPUsEach = 1"}, warns: "/dev/nvidia0: permission denied"},
		"it cannot run": {a: container{discovery: "fails: GLIBC_2.38 not found", nodes: plain}, b: container{discovery: found("2"), nodes: none},
			want:  []string{`DetectedGPUs = "GPU-0000000a, GPU-2"`, `DeviceUuid = "0000000a-0000-4000-8000-000000000000"`, `DeviceName = "A100"`, `NvidiaDriver = "570"`},
			warns: "GLIBC_2.38"},
		"it finds none": {a: container{discovery: "DetectedGPUs=0\n", nodes: plain}, b: container{discovery: found("2"), nodes: none},
			want: []string{`DetectedGPUs = "GPU-0000000a, GPU-2"`}, warns: "does the container have the driver's libraries"},
		"there is none": {a: container{discovery: "DetectedGPUs=0\n", nodes: none}, b: container{discovery: found("2"), nodes: none},
			want: []string{`DetectedGPUs = "GPU-2"`, "PodStarterGPUsProblem = "}, wrong: "payload container a has no GPU"},
		"no container": {a: container{broken: errors.New("not found within 15m0s")}, b: container{discovery: found("2"), nodes: none},
			want: []string{`DetectedGPUs = "GPU-2"`, "PodStarterGPUsProblem = "}, wrong: "not found within 15m0s"},
		"neither program runs": {a: container{discovery: "fails: x", nodes: "fails: y"}, b: container{discovery: found("2"), nodes: none},
			want: []string{`DetectedGPUs = "GPU-2"`}, wrong: "ended with wait status"},
		"one name for two": {a: container{discovery: "DetectedGPUs=\"CUDA0\"\nCUDA0=[ id=\"CUDA0\"; DeviceUuid=\"1\" ]", nodes: none},
			b:    container{discovery: "DetectedGPUs=\"CUDA0\"\nCUDA0=[ id=\"CUDA0\"; DeviceUuid=\"2\" ]", nodes: none},
			want: []string{"DetectedGPUs = 0", "PodStarterGPUsProblem = "}, wrong: "GPU_DISCOVERY_EXTRA = -uuid"},
		"without identity": {a: container{discovery: "DetectedGPUs=0", nodes: `{"devices":[{"maker":"amd"},{"maker":"intel"}]}`}, b: container{discovery: found("2"), nodes: none},
			want: []string{`DetectedGPUs = "CUDA0, OCL1, GPU-2"`}, warns: "finds none"},
	} {
		t.Run(name, func(t *testing.T) {
			p, cluster := newPod(t), &pod{uid: "1", has: map[string]container{"a": tt.a, "b": tt.b}}
			var log bytes.Buffer
			err := p.Find(t.Context(), cluster, slog.New(slog.NewTextHandler(&log, nil)))
			if (err == nil) != (tt.wrong == "") || err != nil && !strings.Contains(err.Error(), tt.wrong) {
				t.Errorf("the error is %v, want one with %q", err, tt.wrong)
			}
			text := printed(t, p)
			for _, want := range tt.want {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in what the startd is told:\n%s", want, text)
				}
			}
			if tt.warns != "" && !strings.Contains(log.String(), tt.warns) {
				t.Errorf("no %q in the log:\n%s", tt.warns, &log)
			}
		})
	}
}

// TestFoundOnce: a container that has been looked into is left alone, since a job may have it; another pod is another matter.
func TestFoundOnce(t *testing.T) {
	p := newPod(t)
	cluster := &pod{uid: "1", has: map[string]container{"a": {discovery: found("1"), nodes: none}, "b": {broken: errors.New("it does not come")}}}
	if p.Tried() {
		t.Error("somebody is said to have looked")
	}
	for _, want := range [][]string{{"a", "b"}, {"a", "b", "b"}} {
		if err := p.Find(t.Context(), cluster, discard()); err == nil {
			t.Error("no error although b does not come")
		}
		if diff := cmp.Diff(want, cluster.visited); diff != "" {
			t.Error("visited (-want +got):\n" + diff)
		}
	}
	if !p.Tried() || !strings.Contains(printed(t, p), `DetectedGPUs = "GPU-1"`) {
		t.Errorf("what was found was not published: %s", printed(t, p))
	}
	cluster.has["b"] = container{discovery: found("2"), nodes: none}
	for range 2 {
		if err := p.Find(t.Context(), cluster, discard()); err != nil {
			t.Error(err)
		}
	}
	if n := len(cluster.visited); n != 4 {
		t.Errorf("visited %q", cluster.visited)
	}
	cluster.uid, cluster.has["a"] = "2", container{discovery: found("9"), nodes: none}
	if err := p.Find(t.Context(), cluster, discard()); err != nil || !strings.Contains(printed(t, p), "GPU-9, GPU-2") {
		t.Errorf("in another pod: %v, %s", err, printed(t, p))
	}
	cluster.uid = ""
	if err := p.Find(t.Context(), cluster, discard()); err == nil || !strings.Contains(printed(t, p), "the API server does not answer") {
		t.Errorf("without an API server: %v, %s", err, printed(t, p))
	}
}

func TestHolders(t *testing.T) {
	p := newPod(t)
	cluster := &pod{uid: "1", has: map[string]container{"a": {discovery: found("1"), nodes: none}, "b": {discovery: found("2"), nodes: none}}}
	if err := p.Find(t.Context(), cluster, discard()); err != nil {
		t.Fatal(err)
	}
	for assigned, want := range map[string][]string{"": {"c"}, "GPU-2": {"b"}, "GPU-1": {"a"}, "GPU-1,GPU-2": nil, "GPU-3": nil} {
		got, err := p.Holders(assigned)
		if diff := cmp.Diff(want, got); diff != "" || (err == nil) != (want != nil) {
			t.Errorf("with %q: error %v, containers (-want +got):\n%s", assigned, err, diff)
		}
	}
	p.WithGPUs = nil
	if got, err := p.Holders("GPU-7"); got != nil || err != nil {
		t.Errorf("in a pod without such containers: %v, %v", got, err)
	}
}

// TestHoldersOfUnknown: where nothing was found, jobs without GPUs run, and not in containers that have some.
func TestHoldersOfUnknown(t *testing.T) {
	p := newPod(t)
	got, err := p.Holders("")
	if diff := cmp.Diff([]string{"c"}, got); diff != "" || err != nil {
		t.Errorf("error %v, containers (-want +got):\n%s", err, diff)
	}
	if got, err := p.Holders("GPU-1"); err == nil {
		t.Errorf("a job with a GPU may run in %q", got)
	}
}

func TestPrintDistrusts(t *testing.T) {
	p := newPod(t)
	var out bytes.Buffer
	if err := p.Print(&out); err == nil || !strings.HasPrefix(out.String(), "DetectedGPUs = 0\n") {
		t.Errorf("before anybody has looked: %v, %q", err, &out)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("password"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(p.PublishDir, publishedFile)); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if err := p.Print(&out); err == nil || strings.Contains(out.String(), "password") {
		t.Errorf("a link is followed: %v, %q", err, &out)
	}
	p.WithGPUs = nil
	if got := printed(t, p); got != "DetectedGPUs = 0\n" {
		t.Errorf("a pod without GPUs: %q", got)
	}
}
