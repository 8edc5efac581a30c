package agent_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"podstarter/wrapper/agent/agenttest"
)

// TestNoGroup: a wrapper whose payload is to have a control group that is not there ends before it says that it can be reached.
func TestNoGroup(t *testing.T) {
	for name, group := range map[string]string{"not there": filepath.Join(t.TempDir(), "x.slice"), "not a slice": t.TempDir(), "not absolute": "x.slice"} {
		w := agenttest.StartWrapper(t, func(cmd *exec.Cmd) { cmd.Args = append(cmd.Args, "-companion", "-group", group) })
		w.WaitEnd(t)
		if got := w.Cmd.ProcessState.ExitCode(); got != 1 || w.Log.String() == "" {
			t.Errorf("%s: exit code %d: %s", name, got, w.Log)
		}
		if made, err := os.ReadDir(w.Dir); len(made) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: it made %v, %v", name, made, err)
		}
	}
}
