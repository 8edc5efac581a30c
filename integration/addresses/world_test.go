//go:build pool

package addresses

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"podstarter/integration/pool/upstreamroot"
)

var keep = flag.String("keep", "", "`directory` for the daemons' logs, which stay there; empty: a temporary one")

//go:embed testdata/world.sh
var worldScript string

//go:embed testdata/ep.sh
var epScript string

//go:embed testdata/common.conf
var common string

// ourStarter is our starter's program, as the daemons see it; stockStarter is HTCondor's.
const (
	ourStarter   = "/site/condor_pod_starter"
	stockStarter = "/usr/sbin/condor_starter"
)

// A world is a root file system with access points in one network namespace, and execution points in others.
type world struct {
	site   string // the directory that is /site inside
	root   string // the root file system, in the keeper's mount namespace
	keeper int    // the process that holds the namespaces

	mu   sync.Mutex
	last int // number of the last execution point
}

// newWorld makes a world that ends with the test.
func newWorld(t *testing.T) *world {
	t.Helper()
	lower, err := upstreamroot.Make(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	w := &world{site: filepath.Join(dir, "site"), root: filepath.Join(dir, "root"), last: 10}
	if *keep != "" {
		w.site = filepath.Join(*keep, t.Name())
		if err := os.RemoveAll(w.site); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(w.site, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(w.site), 0o755); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", filepath.Join(w.site, filepath.Base(ourStarter)), "./starter")
	build.Dir, build.Env = filepath.Join("..", ".."), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build our starter: %v\n%s", err, out)
	}
	var said bytes.Buffer
	// The kernel ends all of the world's processes with unshare's child, and that with this program.
	cmd := exec.Command("unshare", "--mount", "--pid", "--fork", "--kill-child", "--net", "--uts", "--ipc", "sh", "-c", worldScript, "world", lower, dir, w.site)
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	await(t, "the world", func() bool {
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("make a root file system with namespaces: %v\n%s", err, said.String())
		default:
		}
		_, err := os.Stat(filepath.Join(w.site, "made"))
		return err == nil
	})
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	if w.keeper, err = strconv.Atoi(strings.TrimSpace(string(children))); err != nil {
		t.Fatal(err)
	}
	return w
}

// patience is long, since a test that passes never uses it up.
const patience = 4 * time.Minute

// await waits until something is so that nobody announces.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	if err := wait(t.Context(), patience, is); err != nil {
		t.Fatalf("wait for %s: %v", what, err)
	}
}

func wait(ctx context.Context, most time.Duration, is func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, most, fmt.Errorf("not after %s", most))
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// inRoot runs a command as root.
func (w *world) inRoot(ctx context.Context, stdin string, args ...string) (string, error) {
	all := slices.Concat([]string{"--target=" + strconv.Itoa(w.keeper), "--mount", "--pid", "--net", "--uts", "--ipc",
		"chroot", w.root, "env", "-i", "PATH=/usr/bin:/usr/sbin:/bin:/sbin", "HOME=/"}, args)
	cmd := exec.CommandContext(ctx, "nsenter", all...)
	cmd.Stdin = strings.NewReader(stdin)
	var words bytes.Buffer
	cmd.Stdout, cmd.Stderr = &words, &words
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) { // daemons may keep the pipe
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(words.String()))
	}
	return words.String(), err
}

// as runs one of HTCondor's programs as the user of the daemons that are called so, with their configuration.
func (w *world) as(ctx context.Context, daemons, network string, args ...string) (string, error) {
	all := []string{"runuser", "-u", upstreamroot.Tester, "--", "env", "CONDOR_CONFIG=/site/" + daemons + "/config", "HOME=/site"}
	if network != "" {
		all = append([]string{"ip", "netns", "exec", network}, all...)
	}
	return w.inRoot(ctx, "", append(all, args...)...)
}

// daemons starts a master with that configuration, in a network namespace, or beside the access points.
func (w *world) daemons(t *testing.T, name, network, config string) {
	t.Helper()
	dir := filepath.Join(w.site, name)
	for _, sub := range []string{"log", "spool", "execute", "lock", "run"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	config = fmt.Sprintf("LOCAL_DIR = /site/%s\n%sMASTER_NAME = %[1]s\n%[3]s\n", name, common, config)
	if err := os.WriteFile(filepath.Join(dir, "config"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := w.inRoot(t.Context(), "", "chown", "-R", upstreamroot.Tester+":", "/site/"+name); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// Its output goes into a file, so that it keeps no pipe.
	if _, err := w.as(t.Context(), name, network, "sh", "-c", "exec condor_master >/site/"+name+"/log/output 2>&1 </dev/null"); err != nil {
		t.Fatal(err)
	}
}

// network makes the network namespace of an execution point, and returns its number, which its addresses end with.
func (w *world) network(t *testing.T, name, which string) int {
	t.Helper()
	w.mu.Lock()
	w.last++
	number := w.last
	w.mu.Unlock()
	if out, err := w.inRoot(t.Context(), epScript, "sh", "-s", name, strconv.Itoa(number), which); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return number
}

// read returns a file of /site, or nothing.
func (w *world) read(path ...string) string {
	text, err := os.ReadFile(filepath.Join(append([]string{w.site}, path...)...))
	if err != nil {
		return ""
	}
	return string(text)
}
