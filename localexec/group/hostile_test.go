package group

import (
	"bufio"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/payload"
)

// as starts a shell script in the group as the payload's user, who has the group's rights, and waits until it says that it is done.
func as(t *testing.T, g *Group, uid uint32, script string) *exec.Cmd {
	t.Helper()
	f, err := os.Open(scope(g))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Dir = g.Path()
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(f.Fd()), Credential: &syscall.Credential{Uid: uid, Gid: uid}, Setsid: true}
	words, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(words).ReadString('\n')
	if err != nil || line != "done\n" {
		t.Fatalf("the script says %q, %v", line, err)
	}
	return cmd
}

// TestHostile: whatever the payload's user does with its group, its processes end and the group goes.
func TestHostile(t *testing.T) {
	const uid = 12345
	for name, script := range map[string]string{
		"other groups":     `mkdir -p a/cgroup.kill2 b; sleep 1000 & echo $! >a/cgroup.procs; echo $$ >b/cgroup.procs; rmdir *.scope; echo done; sleep 1000`,
		"frozen":           `mkdir a; sleep 1000 & echo $! >a/cgroup.procs; echo 1 >a/cgroup.freeze; echo done; sleep 1000`,
		"stopped":          `sleep 1000 & kill -STOP $!; echo done; kill -STOP $$`,
		"no rights":        `mkdir -p a/b/c; echo $$ >a/b/c/cgroup.procs; chmod 0 a/b/c a/b a .; echo done; sleep 1000`,
		"threads":          `mkdir -p a/b; echo $$ >a/cgroup.procs; echo threaded >a/b/cgroup.type; sleep 1000 & echo $! >a/b/cgroup.procs; echo done; sleep 1000`,
		"a thousand":       `i=0; while [ $i -lt 998 ] && mkdir g$i; do i=$((i+1)); done; echo done; sleep 1000`,
		"hopping":          `hop() { hop & }; for i in 1 2 3 4; do (hop) & done; echo done; sleep 1000`,
		"moving":           `mkdir a b; sleep 1000 & p=$!; echo done; while :; do echo $p >a/cgroup.procs; echo $p >b/cgroup.procs; done`,
		"making":           `echo done; while :; do mkdir a b a/a b/b; rmdir a/a b/b a; done 2>/dev/null`,
		"a user namespace": `exec unshare -Urm --fork --kill-child sh -c 'echo done; sleep 1000' 2>/dev/null || { echo done; sleep 1000; }`,
	} {
		for _, file := range []string{killFile, "cgroup.kill.before.5.14"} {
			t.Run(name+", "+file, func(t *testing.T) {
				p, _ := hierarchy(t)
				g, err := p.Make(t.Context(), payload.Group{Name: "slot1"}, uid, uid, slog.New(slog.DiscardHandler))
				if err != nil {
					t.Fatal(err)
				}
				as(t, g, uid, script)
				began := time.Now()
				if err := g.end(t.Context(), file); err != nil {
					t.Errorf("%v", err)
				}
				if took := time.Since(began); took > killTime/2 {
					t.Errorf("it took %v", took)
				}
				if _, err := os.Stat(g.Path()); err == nil {
					t.Error("it is there")
					_ = g.Remove(t.Context())
				}
			})
		}
	}
}

// TestRightsTakenAway: without root, the payload has the starter's user, and can take the rights from it as well. The group goes all the same.
func TestRightsTakenAway(t *testing.T) {
	const uid = 12345
	p, _ := hierarchy(t)
	if err := p.root.Mkdir(p.base, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := p.root.Chown(p.base, uid, uid); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread has that user's rights to files
		done <- func() error {
			if err := errors.Join(unix.Setfsgid(uid), unix.Setfsuid(uid)); err != nil {
				return err
			}
			g, err := p.Make(t.Context(), payload.Group{Name: "slot1"}, uid, uid, slog.New(slog.DiscardHandler))
			if err != nil {
				return err
			}
			at := g.Path()
			if err := os.MkdirAll(at+"/a/b/c", 0o755); err != nil {
				return err
			}
			if err := os.Chmod(at+"/a/b", 0o555); err != nil {
				return err
			}
			for _, file := range []string{"/a", "/cgroup.kill", "/cgroup.procs", "/cgroup.events", ""} {
				if err := os.Chmod(at+file, 0); err != nil {
					return err
				}
			}
			return g.Remove(t.Context())
		}()
	}()
	if err := <-done; err != nil {
		t.Error(err)
		_ = (&Group{place: p, slice: p.base + "/slot1.slice"}).Remove(t.Context())
	}
}
