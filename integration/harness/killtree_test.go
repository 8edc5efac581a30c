package harness

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"
)

// TestKillTree: a loop in a subshell ends, too.
func TestKillTree(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	command := exec.CommandContext(ctx, "sh", "-c", `said=$(sh -c 'echo begun >&2; while :; do sleep 0.1; done'); echo "$said"`)
	said, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	if err := said.(*os.File).SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(said)
	if _, err := lines.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if err := killTree(command.Process.Pid); err != nil {
		t.Error(err)
	}
	// The end of the pipe is that of the last process.
	if _, err := io.ReadAll(lines); err != nil {
		t.Error(err)
	}
	_ = command.Wait()
	if ctx.Err() != nil {
		t.Error("it went on")
	}
}
