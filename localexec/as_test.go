package localexec_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"podstarter/localexec"
	"podstarter/payload"
	"podstarter/payload/procfamily"
	"podstarter/wrapper/agent/agenttest"
)

// TestAsAUser: a payload that runs as a user of the machine is killed with what it has started, and nothing else of that user is
// touched: no process, no file in shared memory.
func TestAsAUser(t *testing.T) {
	uid, gid := agenttest.Payload()
	as := &localexec.Account{UID: uid, GID: gid, Groups: []int{gid, 54321}}
	options := localexec.Options{Dir: filepath.Join(agenttest.PublicDir(t), "wrapper"), As: as, Mounts: true} // which has no effect
	b, err := localexec.New(options)
	if os.Geteuid() != 0 {
		if err == nil {
			t.Error("a process without root promises to run payloads as somebody else")
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	bystander := exec.Command("sleep", "1000")
	bystander.Dir = "/"
	bystander.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = bystander.Process.Kill()
		_ = bystander.Wait()
	})
	shared, err := os.CreateTemp("/dev/shm", "bystander")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(shared.Name()) })
	if err := shared.Chown(uid, gid); err != nil {
		t.Fatal(err)
	}
	shared.Close()

	l := lease(t, b)
	if u, g := l.Owner(); u != uid || g != gid {
		t.Errorf("the lease is of %d, %d", u, g)
	}
	c := bind(t, l, "job1")
	w := c.Client()
	if got := w.Hello().UID; got != uid {
		t.Errorf("the wrapper runs as user %d, want %d", got, uid)
	}
	spec := payload.Spec{Activation: "job1", UID: uid, GID: gid, Path: "/bin/sh", Args: []string{"sh", "-c", "id -G >groups; setsid sleep 1000 & echo $! >child; exec sleep 1000"}, Dir: agenttest.PublicDir(t),
		Env: []string{"PATH=/usr/bin:/bin"}, Umask: 0o022}
	if err := os.Chmod(spec.Dir, 0o777); err != nil {
		t.Fatal(err)
	}
	started, err := w.Start(agenttest.Context(t), spec)
	if err != nil {
		t.Fatal(err)
	}
	for text := ""; text == ""; {
		read, _ := os.ReadFile(filepath.Join(spec.Dir, "child"))
		text = string(read)
		select {
		case <-time.After(10 * time.Millisecond):
		case <-agenttest.Context(t).Done():
			t.Fatal("the payload has started nothing")
		}
	}
	groups, err := os.ReadFile(filepath.Join(spec.Dir, "groups"))
	if err != nil || !slices.Contains(strings.Fields(string(groups)), "54321") {
		t.Errorf("the payload's groups are %q, %v", groups, err)
	}
	if err := w.Sweep(agenttest.Context(t)); err != nil {
		t.Fatal(err)
	}
	left, err := procfamily.OfDescendants("/proc", w.Hello().PID).Members()
	if err != nil || len(left) > 0 {
		t.Errorf("left of the payload %d: %v, %v", started.PID, left, err)
	}
	if err := l.Release(agenttest.Context(t)); err != nil {
		t.Error(err)
	}
	if p, err := procfamily.Lookup("/proc", bystander.Process.Pid); err != nil || p.Dead() {
		t.Errorf("another process of the user: %+v, %v", p, err)
	}
	if _, err := os.Stat(shared.Name()); err != nil {
		t.Errorf("a file of the user: %v", err)
	}
}

// TestAsAUserAgain: a directory that is there already is not given to a user.
func TestAsAUserAgain(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives directories away; the same test runs as root")
	}
	uid, gid := agenttest.Payload()
	dir := filepath.Join(agenttest.PublicDir(t), "wrapper")
	b, err := localexec.New(localexec.Options{Dir: dir, As: &localexec.Account{UID: uid, GID: gid}})
	if err != nil {
		t.Fatal(err)
	}
	there := filepath.Join(dir, "job1")
	if err := os.Mkdir(there, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := lease(t, b).Bind(agenttest.Context(t), payload.BindRequest{Activation: "job1"}); err == nil {
		t.Error("a wrapper has begun in it")
	}
	info, err := os.Stat(there)
	if os.IsNotExist(err) {
		return // the end of the lease removes it
	}
	if err != nil || info.Sys().(*syscall.Stat_t).Uid != 0 {
		t.Errorf("%+v, %v", info, err)
	}
}

// TestAsRoot: nobody's jobs run as root.
func TestAsRoot(t *testing.T) {
	for _, as := range []*localexec.Account{{}, {UID: 0, GID: 1000}, {UID: 1000, GID: 0}} {
		if _, err := localexec.New(localexec.Options{Dir: t.TempDir(), As: as}); err == nil {
			t.Errorf("%+v is accepted", as)
		}
	}
}
