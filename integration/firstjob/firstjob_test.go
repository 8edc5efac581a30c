//go:build pool

package firstjob

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"podstarter/integration/harness"
)

// namespace is the administrator's own.
const namespace = "physics"

// patience is how long all of the page may take: much longer than it does.
const patience = 6 * time.Minute

// TestFirstJob follows the page.
func TestFirstJob(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	pool, err := harness.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if !pool.Controllers || pool.Network != harness.NATNetwork {
		t.Fatal("the pool has no scheduler, or pods without networks of their own; start it with: pool up --network nat --controllers --slots 1")
	}
	text, err := os.ReadFile(filepath.Join(pool.Root, "docs", "admin", "first-job.md"))
	if err != nil {
		t.Fatal(err)
	}
	if err := pool.GiveDisk(ctx); err != nil {
		t.Fatal(err)
	}
	page, err := blocks(string(text))
	if err != nil {
		t.Fatal(err)
	}
	a := newAdministrator(ctx, t, pool)
	values := map[string]string{"NAMESPACE": namespace, "POOL": a.collector(ctx), "DOMAIN": "pool.invalid"}
	for name, image := range map[string]string{"PILOT": "pilot", "DEFAULT": "debian"} {
		reference := pool.Image(image)
		colon := strings.LastIndex(reference, ":")
		values[name], values[name+"_TAG"] = reference[:colon], reference[colon+1:]
	}
	var said string
	for _, b := range page {
		switch b.where {
		case centralManager:
			token := a.kubectl(ctx, "-n", harness.Namespace, "exec", "pool", "--", "sh", "-ec", strings.ReplaceAll(b.text, "example.org", values["DOMAIN"]))
			a.write("glidein.token", token)
		case names:
			filled, err := filledIn(b.text, values)
			if err != nil {
				t.Fatal(err)
			}
			a.say(filled)
		case here:
			a.run(ctx, b.text)
		case accessPoint:
			script := "cd $(mktemp -d)\nIMAGE=" + pool.Image("debian") + "\n" + b.text
			if said, err = pool.AP(ctx, "sh", "-ec", script); err != nil {
				t.Fatalf("on the access point: %v\n%s", err, said)
			}
		default:
			t.Fatalf("nobody knows where %q is", b.where)
		}
	}
	if !strings.Contains(said, "Debian") {
		t.Errorf("the job does not say which system it ran in: %q", said)
	}
}

// administrator has rights in one namespace, a directory with the folder deploy, and kubectl.
type administrator struct {
	t    *testing.T
	pool *harness.Pool
	dir  string
	env  []string
	said string // so far, which later commands build on
}

func newAdministrator(ctx context.Context, t *testing.T, pool *harness.Pool) *administrator {
	t.Helper()
	a := &administrator{t: t, pool: pool, dir: t.TempDir()}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
		defer cancel()
		if err := pool.RemoveNamespace(ctx, namespace); err != nil {
			t.Error(err)
		}
		if err := pool.Up(ctx); err != nil {
			t.Error(err)
		}
	})
	// The page's pod has the place in the network of the pool's own execution point.
	a.kubectl(ctx, "-n", harness.Namespace, "delete", "pod", harness.Ours.PodName(), "--timeout=1m")
	kubeconfig, err := pool.Administrator(ctx, namespace)
	if err != nil {
		t.Fatal(err)
	}
	a.write("kubeconfig", string(kubeconfig))
	if err := os.CopyFS(filepath.Join(a.dir, "deploy"), os.DirFS(filepath.Join(pool.Root, "deploy"))); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(a.dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	a.write("bin/kubectl", fmt.Sprintf("#!/bin/sh\nexec '%s' kubectl --kubeconfig '%s' \"$@\"\n", filepath.Join(pool.State, "bin", "pool"), filepath.Join(a.dir, "kubeconfig")))
	if err := os.Chmod(filepath.Join(a.dir, "bin", "kubectl"), 0o755); err != nil {
		t.Fatal(err)
	}
	a.env = append(os.Environ(), "PATH="+filepath.Join(a.dir, "bin")+":"+os.Getenv("PATH"), "PODSTARTER_STATE="+pool.State)
	return a
}

// kubectl does what others than the administrator have done before.
func (a *administrator) kubectl(ctx context.Context, argv ...string) string {
	a.t.Helper()
	out, err := a.pool.Kubectl(ctx, nil, argv...)
	if err != nil {
		a.t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// collector is where the pool's own pods find theirs.
func (a *administrator) collector(ctx context.Context) string {
	return a.kubectl(ctx, "-n", harness.Namespace, "exec", "pool", "--", "condor_config_val", "COLLECTOR_HOST")
}

func (a *administrator) write(name, text string) {
	a.t.Helper()
	if err := os.WriteFile(filepath.Join(a.dir, name), []byte(text), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// say is for commands without an effect of their own.
func (a *administrator) say(commands string) { a.said += commands }

// run runs commands in the administrator's shell.
func (a *administrator) run(ctx context.Context, commands string) {
	a.t.Helper()
	cmd := exec.CommandContext(ctx, "sh", "-ec", a.said+commands)
	cmd.Dir, cmd.Env = a.dir, a.env
	out, err := cmd.CombinedOutput()
	a.t.Logf("%s%s", commands, out)
	if err != nil {
		a.t.Fatal(err)
	}
}
