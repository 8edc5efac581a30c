package localjob

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"podstarter/internal/cedar"
	"podstarter/payload/procfamily"
)

// TestWrapperInTheOwnersHands: the owner can stop, kill or end the wrapper. None of that keeps a job from being ended, nor saves any of
// its processes.
func TestWrapperInTheOwnersHands(t *testing.T) {
	for _, sig := range []string{"STOP", "KILL", "TERM"} {
		t.Run(sig, func(t *testing.T) {
			w := newWorld(t, script(`setsid sh -c "sleep 1000 & wait" & echo $! >child; echo $PPID >wrapper; until [ -e go ]; do sleep 0.02; done; kill -`+sig+` $PPID; sleep 1000`), nil, nil)
			code := make(chan int, 1)
			go func() { code <- w.run(t) }()
			var child int
			for child == 0 {
				select {
				case c := <-code:
					t.Fatalf("exit code %d before the job began", c)
				case <-time.After(20 * time.Millisecond):
					if strings.HasSuffix(w.read("wrapper"), "\n") {
						child, _ = strconv.Atoi(strings.TrimSpace(w.read("child")))
					}
				}
			}
			_, address, _ := strings.Cut(w.read("log"), "on host: ")
			address, _, _ = strings.Cut(address, "\n")
			if err := os.WriteFile(w.dir+"/go", nil, 0o644); err != nil {
				t.Fatal(err)
			}
			if sig == "STOP" {
				wrapper, _ := strconv.Atoi(strings.TrimSpace(w.read("wrapper")))
				for p := (procfamily.Process{}); p.State != 'T'; p, _ = procfamily.Lookup("/proc", wrapper) {
					<-time.After(10 * time.Millisecond)
				}
				w.schedd.Signal(t, address, cedar.DCSigSoftKill)
				w.schedd.Signal(t, address, cedar.DCSigHardKill)
			}
			select {
			case c := <-code:
				if c != ExitRequeue {
					t.Errorf("exit code %d, want %d", c, ExitRequeue)
				}
			case <-time.After(60 * time.Second):
				t.Fatal("the starter does not end")
			}
			if p, err := procfamily.Lookup("/proc", child); err == nil && !p.Dead() {
				t.Errorf("process %d of the job is left: %+v", child, p)
			}
		})
	}
}

// TestWrapperStoppedByAScript: a script of the owner's that stops the wrapper does not keep the job from being ended either.
func TestWrapperStoppedByAScript(t *testing.T) {
	w := newWorld(t, script("exit 0"), map[string]string{"STARTER_ALLOW_JOB_PRE_AND_POST_CMD": "true"}, nil)
	post := filepath.Join(w.dir, "post")
	if err := os.WriteFile(post, []byte("#!/bin/sh\necho $$ $PPID >stopped\nkill -STOP $PPID\nexec sleep 1000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.ad += fmt.Sprintf("PostCmd = %q\n", post)
	code := make(chan int, 1)
	go func() { code <- w.run(t) }()
	var script, wrapper int
	for p := (procfamily.Process{}); p.State != 'T'; {
		select {
		case c := <-code:
			t.Fatalf("exit code %d before the script ran", c)
		case <-time.After(20 * time.Millisecond):
			if n, _ := fmt.Sscan(w.read("stopped"), &script, &wrapper); n == 2 {
				p, _ = procfamily.Lookup("/proc", wrapper)
			}
		}
	}
	w.signal(t, cedar.DCSigSoftKill)
	w.signal(t, cedar.DCSigHardKill)
	select {
	case c := <-code:
		if c != ExitCompleted {
			t.Errorf("exit code %d, want %d", c, ExitCompleted)
		}
	case <-time.After(60 * time.Second):
		_ = syscall.Kill(wrapper, syscall.SIGKILL)
		t.Errorf("the starter does not end, but for its wrapper's end: exit code %d", <-code)
	}
	if p, err := procfamily.Lookup("/proc", script); err == nil && !p.Dead() {
		t.Errorf("the script is left: %+v", p)
	}
}
