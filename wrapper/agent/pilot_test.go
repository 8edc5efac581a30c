package agent_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"podstarter/payload"
	"podstarter/wrapper/agent"
	"podstarter/wrapper/agent/agenttest"
)

// pilotName is the name by which the test binary is a pilot without root: it runs a payload
// of its own user with the given supplementary groups, and prints the result.
const pilotName = "test-pilot"

func asPilot(args []string) int {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	dir := args[0]
	c, err := payload.Dial(ctx, payload.Options{Dir: dir})
	if err != nil {
		fmt.Println("dial:", err)
		return 1
	}
	s := payload.Spec{Activation: "test", UID: os.Geteuid(), GID: os.Getegid(), Path: "/bin/sh", Args: []string{"sh", "-c", "exit 3"}, Dir: "/"}
	for _, text := range args[1:] {
		group, _ := strconv.Atoi(text)
		s.Groups = append(s.Groups, group)
	}
	if _, err := c.Start(ctx, s); err != nil {
		fmt.Println("start:", err)
		return 1
	}
	if _, err := c.Wait(ctx); err != nil {
		fmt.Println("wait:", err)
		return 1
	}
	// As after the loss of the connection.
	exit, err := payload.ReadExit(dir, "test")
	if err != nil {
		fmt.Println("record:", err)
		return 1
	}
	fmt.Println("exit", syscall.WaitStatus(exit.WaitStatus).ExitStatus())
	if err := os.WriteFile(filepath.Join(dir, "exit.forged.json"), nil, 0o600); err == nil {
		fmt.Println("the control directory is writable")
	}
	return 0
}

// TestPilotWithoutRoot: of two processes of one user, the one in the group can run
// payloads; the other, like a payload, has no access.
func TestPilotWithoutRoot(t *testing.T) {
	if !agenttest.Root() {
		t.Skip("needs root")
	}
	uid, gid := agenttest.Payload()
	group := uint32(gid) + 1
	flag := fmt.Sprintf("%d:%d", uid, group)
	w := agenttest.StartWrapper(t, func(cmd *exec.Cmd) {
		cmd.Args = append(cmd.Args, "-pilot", flag)
		// It kills all processes of that user that it sees.
		inOwnNamespaces(cmd)
	})
	w.Dial(t).Close() // it is there
	run := func(groups []uint32, args ...string) string {
		cmd := exec.Command(agenttest.Program(), append([]string{w.Dir}, args...)...)
		cmd.Args[0] = pilotName
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid), Groups: groups}}
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		_ = cmd.Run() // it says why
		return out.String()
	}
	pilot := []uint32{group}
	if out := run(nil); !strings.Contains(out, "permission denied") {
		t.Errorf("a process that is not in the group: %s", out)
	}
	if out := run(pilot, strconv.Itoa(int(group))); !strings.Contains(out, "may enter the control directory") {
		t.Errorf("a payload in the group: %s", out)
	}
	if out := run(pilot); !strings.HasPrefix(out, "exit 3\n") || strings.Contains(out, "writable") {
		t.Errorf("the pilot: %s", out)
	}
	for path, want := range map[string]os.FileMode{
		filepath.Dir(w.Dir): 0o750, w.Dir: 0o750,
		filepath.Join(w.Dir, payload.SocketName): 0o660, filepath.Join(w.Dir, payload.ExitRecordName("test")): 0o640,
	} {
		info, err := os.Lstat(path)
		if err != nil {
			t.Error(err)
			continue
		}
		if got := info.Mode().Perm(); got != want || info.Sys().(*syscall.Stat_t).Gid != group || info.Sys().(*syscall.Stat_t).Uid != 0 {
			t.Errorf("%s: %v of %+v, want %v of root and group %d", path, got, info.Sys(), want, group)
		}
	}
}

func TestPilotFlag(t *testing.T) {
	for _, text := range []string{"", "1000", "0:1000", "1000:0", "-1:5", "a:b", "1:2:3", "99999999999:1"} {
		var log bytes.Buffer
		cmd := exec.Command(agenttest.Program(), "-control", filepath.Join(agenttest.PublicDir(t), "c", "d"), "-pilot", text)
		cmd.Args[0] = agent.WrapperName
		cmd.Stderr = &log
		if err := cmd.Run(); err == nil || !strings.Contains(log.String(), "pilot") {
			t.Errorf("-pilot %q: %v, %s", text, err, &log)
		}
	}
}
