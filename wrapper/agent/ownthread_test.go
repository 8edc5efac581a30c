package agent_test

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"podstarter/wrapper/agent"
	"podstarter/wrapper/agent/agenttest"
)

// firstThreadName is the name by which the test binary tries its first thread: no goroutine
// of another test keeps that.
const firstThreadName = "test-first-thread"

func asFirstThread([]string) int {
	if err := agent.TryFirstThread(); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// TestFirstThreadKeepsItsIdentity: kill(2), ptrace(2) and the look for processes of the
// payload check the first thread's user. If that were the payload's, the payload could stop
// and trace its wrapper, and no sweep would ever end.
func TestFirstThreadKeepsItsIdentity(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can become another user")
	}
	cmd := exec.CommandContext(agenttest.Context(t), "/proc/self/exe")
	cmd.Args[0] = firstThreadName
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
