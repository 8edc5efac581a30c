package hostprog

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"podstarter/condor/shadow"
	"podstarter/sandbox"
	"podstarter/starter/failure"
	"podstarter/starter/hostprog/hostprogtest"
)

// TestNotBegun: a pod without room for another process is not the program's fault, nor the job's,
// which goes back to the queue.
func TestNotBegun(t *testing.T) {
	for errno, noRoom := range map[syscall.Errno]bool{syscall.EAGAIN: true, syscall.ENOMEM: true, syscall.ENOENT: false, syscall.EACCES: false} {
		err := notBegun("/program", &os.PathError{Op: "fork/exec", Path: "/program", Err: errno})
		if requeued := failure.Of(err).Code == shadow.VacateContainerError; requeued != noRoom || errors.Is(err, ErrNotRun) == noRoom || !errors.Is(err, errno) {
			t.Errorf("%v: %v", errno, err)
		}
	}
}

func TestProgram(t *testing.T) {
	self := sandbox.Self()
	for name, tt := range map[string]struct {
		text           string
		stdin          string
		limit          time.Duration
		as             sandbox.Owner
		combined       bool
		code           int
		signal         syscall.Signal
		stdout, stderr string
		late           bool
	}{
		"all of it":           {text: `read line; echo "$1 $line $NAME $(pwd)"; echo oh >&2; exit 3`, stdin: "input\n", code: 3, stdout: "arg input value /\n", stderr: "oh\n"},
		"both streams in one": {text: "echo a; echo b >&2; echo c", combined: true, stdout: "a\nb\nc\n"},
		"input not read":      {text: "exit 0", stdin: strings.Repeat("x", 1<<20)},
		"killed":              {text: "kill -9 $$", signal: syscall.SIGKILL},
		"too long":            {text: "echo begun; exec sleep 1000", limit: 500 * time.Millisecond, late: true, signal: syscall.SIGKILL, stdout: "begun\n"},
		"leaves something":    {text: "sleep 1000 & echo $!", stdout: "?"},
		"leaves its group":    {text: "setsid sleep 3 & echo begun", stdout: "begun\n"},
		"the payload's user":  {text: "id -u; id -g; id -G", as: sandbox.Owner{UID: 4711, GID: 4711}, stdout: "4711\n65534\n65534\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.as.UID == 0 {
				tt.as = self
			} else if os.Getuid() != 0 {
				t.Skip("needs root")
			}
			p := Program{Path: hostprogtest.Script(t, tt.text), Args: []string{"arg"}, Env: []string{"NAME=value", "PATH=/usr/bin:/bin"}, Dir: "/", Stdin: []byte(tt.stdin), As: tt.as, Limit: tt.limit}
			o, err := p.Run(t.Context(), tt.combined)
			if err != nil {
				t.Fatal(err)
			}
			if o.Late != tt.late || tt.signal != 0 && (!o.Status.Signaled() || o.Status.Signal() != tt.signal) || tt.signal == 0 && o.Status.ExitStatus() != tt.code {
				t.Errorf("%s", o.Describe())
			}
			if tt.stdout == "?" {
				pid, err := strconv.Atoi(strings.TrimSpace(string(o.Stdout)))
				if err != nil {
					t.Fatal(err)
				}
				waitDead(t, pid)
				return
			}
			if string(o.Stdout) != tt.stdout || string(o.Stderr) != tt.stderr {
				t.Errorf("wrote %q and %q, want %q and %q", o.Stdout, o.Stderr, tt.stdout, tt.stderr)
			}
		})
	}
}

// waitDead waits until a process is gone, or nobody has waited for it yet.
func waitDead(t *testing.T, pid int) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for time.Now().Before(deadline) {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		<-time.After(10 * time.Millisecond)
	}
	t.Errorf("process %d lives on", pid)
}

func TestProgramOutputIsBounded(t *testing.T) {
	p := Program{Path: hostprogtest.Script(t, "head -c 9000000 /dev/zero; head -c 100000 /dev/zero >&2"), Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/", As: sandbox.Self()}
	o, err := p.Run(t.Context(), false)
	if err != nil || len(o.Stdout) != maxProgramOutput || len(o.Stderr) != maxProgramErrors || !o.Cut {
		t.Errorf("%d and %d bytes, cut %v, %v", len(o.Stdout), len(o.Stderr), o.Cut, err)
	}
}

func TestProgramThatIsNotThere(t *testing.T) {
	_, err := Program{Path: "/no/such/program", Dir: "/", As: sandbox.Self()}.Run(t.Context(), false)
	if !errors.Is(err, ErrNotRun) || !strings.Contains(err.Error(), "/no/such/program") {
		t.Error(err)
	}
}

// TestProgramEndsWithItsContext: an order to end the job ends its hook.
func TestProgramEndsWithItsContext(t *testing.T) {
	why := errors.New("the reason")
	ctx, cancel := context.WithCancelCause(t.Context())
	begun := filepath.Join(t.TempDir(), "begun")
	p := Program{Path: hostprogtest.Script(t, "echo $$ >"+begun+".new; mv "+begun+".new "+begun+"; exec sleep 1000"), Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/", As: sandbox.Self()}
	go func() {
		for {
			if _, err := os.Stat(begun); err == nil {
				cancel(why)
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	if _, err := p.Run(ctx, false); !errors.Is(err, why) {
		t.Error(err)
	}
	text, _ := os.ReadFile(begun)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	waitDead(t, pid)
}
