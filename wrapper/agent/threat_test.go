package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podstarter/payload"
	"podstarter/wrapper/agent/agenttest"
)

// TestPayloadCannotReachWrapper: a hostile payload tries to stop its wrapper, to read its
// secrets, to talk to it and to forge an exit record.
func TestPayloadCannotReachWrapper(t *testing.T) {
	if !agenttest.Root() {
		t.Skip("without root, wrapper and payload are one user")
	}
	w := agenttest.StartWrapper(t, nil)
	c := w.Dial(t)
	s := agenttest.Spec(t)
	s.Path, s.Args = "/bin/sh", []string{"sh", "-c", fmt.Sprintf(`
		w=%d dir=%s
		kill -9 $w && echo killed
		kill -STOP $w && echo stopped
		cat /proc/$w/environ && echo environ
		cat /proc/$w/mem && echo mem
		ls -l /proc/$w/fd/* && echo files
		ls /proc/$w/root/ && echo root
		ls $dir && echo listed
		echo '{}' >$dir/exit.test.json && echo forged
		mv $dir $dir.old && echo moved
		mv $(dirname $dir) $(dirname $dir).old && echo moved above
		for f in /proc/self/fd/*; do case $f in */[012]) ;; *) readlink $f ;; esac; done | grep -v "^/proc/" && echo inherited
		echo end`, w.Cmd.Process.Pid, w.Dir)}
	s.Stderr = "err"
	start(t, c, s)
	exit, err := c.Wait(agenttest.Context(t))
	if err != nil {
		t.Fatal(err)
	}
	if out := agenttest.Output(t, s); out != "end\n" {
		refusals, _ := os.ReadFile(filepath.Join(s.Dir, "err"))
		t.Errorf("%+v\n%s\nrefused:\n%s", exit, out, refusals)
	}
}

// TestSpecOutOfHand makes requests that the wrapper must refuse to everybody.
func TestSpecOutOfHand(t *testing.T) {
	w := agenttest.StartWrapper(t, nil)
	c := w.Dial(t)
	for _, ids := range [][2]int{{0, 0}, {0, 5}, {5, 0}} {
		s := agenttest.Spec(t, "facts")
		s.UID, s.GID = ids[0], ids[1]
		if _, err := c.Start(agenttest.Context(t), s); err == nil || !strings.Contains(err.Error(), payload.StageIdentity) {
			t.Errorf("user %d, group %d: %v", s.UID, s.GID, err)
		}
	}
	if !agenttest.Root() {
		return
	}
	start(t, c, agenttest.Spec(t, "exit", "0"))
	if _, err := c.Wait(agenttest.Context(t)); err != nil {
		t.Fatal(err)
	}
	other := agenttest.Spec(t, "facts")
	other.UID++
	if _, err := c.Start(agenttest.Context(t), other); err == nil || !strings.Contains(err.Error(), "one user") {
		t.Errorf("a second user on one connection: %v", err)
	}
}
