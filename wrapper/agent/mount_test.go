package agent_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"podstarter/payload"
	"podstarter/wrapper/agent/agenttest"
)

// ownNamespace starts a wrapper as localexec does on a machine.
func ownNamespace(cmd *exec.Cmd) {
	cmd.Args = append(cmd.Args, "-companion", "-own-mounts")
	cmd.SysProcAttr.Cloneflags = unix.CLONE_NEWNS
}

// mountedSandbox is a sandbox with directories of the payload's user, which sees it under a path that nothing is mounted over.
func mountedSandbox(t *testing.T, dirs ...string) string {
	t.Helper()
	uid, gid := agenttest.Payload()
	sandbox := agenttest.PublicDir(t)
	for _, dir := range append([]string{""}, dirs...) {
		if err := errors.Join(os.MkdirAll(sandbox+dir, 0o755), os.Chown(sandbox+dir, uid, gid)); err != nil {
			t.Fatal(err)
		}
	}
	return sandbox
}

// runHere runs a script as the payload, and returns what it printed.
func runHere(t *testing.T, c *payload.Client, name string, m *payload.Mounts, script string) (string, error) {
	t.Helper()
	uid, gid := agenttest.Payload()
	ctx := agenttest.Context(t)
	_, err := c.Start(ctx, payload.Spec{Activation: name, UID: uid, GID: gid, Path: "/bin/sh", Args: []string{"sh", "-c", script},
		Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/", Umask: 0o022, Capture: payload.MaxCapture, Mounts: m})
	if err != nil {
		return "", err
	}
	exit, err := c.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return string(exit.Output), nil
}

// TestMounts: the payload, its next run and a process beside it have directories of the sandbox in place of the machine's, and shared memory
// of their own. The machine sees none of it, and sends its own later mounts.
func TestMounts(t *testing.T) {
	if !agenttest.Root() {
		t.Skip("only root can mount; the same test runs as root")
	}
	later := agenttest.PublicDir(t)
	machine := later + "/machine"
	if err := unix.Mount("shared", later, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(later, unix.MNT_DETACH) })
	if err := errors.Join(unix.Mount("", later, "", unix.MS_SHARED, ""), os.Mkdir(later+"/x", 0o755), os.Mkdir(machine, 0o755)); err != nil {
		t.Fatal(err)
	}
	again := later + "/again" // another name for it, which changes nothing
	sandbox := mountedSandbox(t, append(parents(machine), again)...)
	if err := errors.Join(os.WriteFile(machine+"/machine", nil, 0o644), os.Symlink(machine, again)); err != nil {
		t.Fatal(err)
	}
	w := agenttest.StartWrapper(t, ownNamespace)
	c := w.Dial(t)
	if !c.Hello().OwnMounts {
		t.Fatal("the wrapper does not say that it can mount")
	}
	m := &payload.Mounts{Sandbox: sandbox, Dirs: []string{machine, again}, SharedMemory: true}
	out, err := runHere(t, c, "first", m, "ls "+machine+" /dev/shm; stat -c %a /dev/shm; echo mine >"+machine+"/mine; echo mine >/dev/shm/mine")
	if err != nil || out != "/dev/shm:\n\n"+machine+":\n1777\n" {
		t.Fatalf("the payload found %q, %v", out, err)
	}
	if err := unix.Mount("later", later+"/x", "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(later+"/x", unix.MNT_DETACH) })
	out, err = runHere(t, c, "second", m, "cat "+machine+"/mine /dev/shm/mine; grep -c 'later' /proc/self/mountinfo")
	if err != nil || out != "mine\nmine\n1\n" {
		t.Errorf("the next run found %q, %v", out, err)
	}
	uid, gid := agenttest.Payload()
	p := newPipes(t)
	session := payload.Spec{Activation: "session", UID: uid, GID: gid, Dir: "/", Env: []string{"PATH=/usr/bin:/bin"}, Umask: 0o022}
	x := execute(t, c, beside(session, "cat "+machine+"/mine /dev/shm/mine"), p.ExecFiles)
	if status := execEnded(t, x); status != 0 {
		t.Errorf("beside it, status %#x", status)
	}
	if text, err := os.ReadFile(sandbox + machine + "/mine"); err != nil || string(text) != "mine\n" {
		t.Errorf("the sandbox has %q, %v", text, err)
	}
	for _, file := range []string{machine + "/mine", "/dev/shm/mine"} {
		if _, err := os.Lstat(file); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the machine has %s: %v", file, err)
		}
	}
	other := &payload.Mounts{Sandbox: sandbox, Dirs: []string{machine}}
	if _, err := runHere(t, c, "third", other, "true"); !failedAt(err, payload.StageMount) {
		t.Errorf("mounts have changed: %v", err)
	}
	if info, err := os.ReadFile("/proc/self/mountinfo"); err != nil || strings.Contains(string(info), machine) {
		t.Errorf("the machine sees mounts: %v\n%s", err, info)
	}
}

// TestMountsAfterLeftovers: what an earlier process of the payload's user left in the machine's shared memory is removed, although this payload
// has its own.
func TestMountsAfterLeftovers(t *testing.T) {
	if !agenttest.Root() {
		t.Skip("only root can mount; the same test runs as root")
	}
	uid, gid := agenttest.Payload()
	left, err := os.CreateTemp("/dev/shm", "left")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(left.Name()) })
	if err := errors.Join(left.Chown(uid, gid), left.Close()); err != nil {
		t.Fatal(err)
	}
	c := agenttest.StartWrapper(t, ownNamespace).Dial(t)
	m := &payload.Mounts{Sandbox: mountedSandbox(t), SharedMemory: true}
	if out, err := runHere(t, c, "job", m, "ls "+"/dev/shm"); err != nil || out != "" {
		t.Errorf("the payload found %q, %v", out, err)
	}
	if _, err := os.Lstat(left.Name()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the machine still has what was left: %v", err)
	}
}

// TestMountsRefused: root follows no link of the payload, and mounts nothing over what it needs.
func TestMountsRefused(t *testing.T) {
	if !agenttest.Root() {
		t.Skip("only root can mount; the same test runs as root")
	}
	machine := agenttest.PublicDir(t)
	for name, tt := range map[string]struct {
		prepare func(sandbox string) error
		dir     string // "": machine
		stage   string
	}{
		"no directory": {stage: payload.StageScratch},
		"a file": {prepare: func(s string) error {
			return errors.Join(os.MkdirAll(s+filepath.Dir(machine), 0o755), os.WriteFile(s+machine, nil, 0o644))
		}, stage: payload.StageScratch},
		"a link": {prepare: func(s string) error {
			return errors.Join(os.MkdirAll(s+filepath.Dir(machine), 0o755), os.Symlink("/root", s+machine))
		}, stage: payload.StageScratch},
		"a link in the sandbox": {prepare: func(s string) error {
			up := strings.Repeat("../", strings.Count(machine, "/")-1)
			uid, gid := agenttest.Payload()
			return errors.Join(os.MkdirAll(s+filepath.Dir(machine), 0o755), os.Mkdir(s+"/own", 0o755), os.Chown(s+"/own", uid, gid), os.Symlink(up+"own", s+machine))
		}, stage: payload.StageScratch},
		"a link above":          {prepare: func(s string) error { return os.Symlink("/", s+"/"+strings.Split(machine, "/")[1]) }, stage: payload.StageScratch},
		"a directory of root":   {prepare: func(s string) error { return os.MkdirAll(s+machine, 0o755) }, stage: payload.StageScratch},
		"over /proc":            {dir: "/proc", stage: payload.StageMount},
		"below /proc":           {dir: "/proc/sys", stage: payload.StageMount},
		"over /dev":             {dir: "/dev", stage: payload.StageMount},
		"not on this machine":   {dir: "/no-such-directory", stage: payload.StageMount},
		"a file of the machine": {dir: "/etc/passwd", stage: payload.StageMount},
		"a link to /proc":       {dir: "LINK", stage: payload.StageMount},
	} {
		t.Run(name, func(t *testing.T) {
			dir := tt.dir
			switch dir {
			case "":
				dir = machine
			case "LINK":
				dir = agenttest.PublicDir(t) + "/link"
				if err := os.Symlink("/proc", dir); err != nil {
					t.Fatal(err)
				}
			}
			sandbox := mountedSandbox(t)
			if tt.dir != "" {
				sandbox = mountedSandbox(t, parents(dir)...)
			}
			if tt.prepare != nil {
				if err := tt.prepare(sandbox); err != nil {
					t.Fatal(err)
				}
			}
			c := agenttest.StartWrapper(t, ownNamespace).Dial(t)
			m := &payload.Mounts{Sandbox: sandbox, Dirs: []string{dir}, SharedMemory: true}
			if out, err := runHere(t, c, "job", m, "echo ran"); !failedAt(err, tt.stage) {
				t.Errorf("%q, %v", out, err)
			}
			if out, err := runHere(t, c, "job", nil, "cat /proc/self/mountinfo"); err != nil || strings.Contains(out, sandbox) {
				t.Errorf("something was mounted: %s, %v", out, err)
			}
		})
	}
}

// TestMountsOverTheSandbox: nothing is mounted over the directory in which the sandbox is by another name.
func TestMountsOverTheSandbox(t *testing.T) {
	if !agenttest.Root() {
		t.Skip("only root can mount; the same test runs as root")
	}
	uid, gid := agenttest.Payload()
	machine, links, other := agenttest.PublicDir(t), agenttest.PublicDir(t), agenttest.PublicDir(t)+"/links"
	sandbox := machine + "/sandbox"
	if err := errors.Join(os.Mkdir(sandbox, 0o755), os.Chown(sandbox, uid, gid), os.Symlink(machine, links+"/link"), os.Symlink(links, other)); err != nil {
		t.Fatal(err)
	}
	for _, dir := range append(parents(machine), append(parents(other), sandbox)...) {
		if err := errors.Join(os.MkdirAll(sandbox+dir, 0o755), os.Chown(sandbox+dir, uid, gid)); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{machine, other, sandbox} {
		c := agenttest.StartWrapper(t, ownNamespace).Dial(t)
		m := &payload.Mounts{Sandbox: links + "/link/sandbox", Dirs: []string{dir}}
		if out, err := runHere(t, c, "job", m, "echo ran"); !failedAt(err, payload.StageMount) {
			t.Errorf("%s: %q, %v", dir, out, err)
		}
	}
}

// TestMountsElsewhere: a wrapper that shares its mounts with others makes none.
func TestMountsElsewhere(t *testing.T) {
	c := agenttest.StartWrapper(t, nil).Dial(t)
	if c.Hello().OwnMounts {
		t.Error("it says that it has mounts of its own")
	}
	m := &payload.Mounts{Sandbox: mountedSandbox(t, "/srv"), Dirs: []string{"/srv"}}
	if _, err := runHere(t, c, "job", m, "true"); !failedAt(err, payload.StageMount) {
		t.Errorf("%v", err)
	}
}

func failedAt(err error, stage string) bool {
	s := (*payload.StartError)(nil)
	return errors.As(err, &s) && s.Stage == stage && s.Detail != "" && s.Path != ""
}

// parents are the directories above a path, and itself.
func parents(path string) []string {
	var all []string
	for i, c := range path {
		if c == '/' && i > 0 {
			all = append(all, path[:i])
		}
	}
	return append(all, path)
}
