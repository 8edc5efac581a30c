package localjob

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"podstarter/internal/cedar"
	"podstarter/payload/procfamily"
)

// TestWrapperInTheOwnersHands: the owner can stop or kill the wrapper. Neither keeps a job from being ended, nor saves any of
// its processes.
func TestWrapperInTheOwnersHands(t *testing.T) {
	for _, sig := range []string{"STOP", "KILL"} {
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
