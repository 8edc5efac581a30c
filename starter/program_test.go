package main

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

	"podstarter/sandbox"
)

// siteProgram makes a script that anybody may run.
func siteProgram(t *testing.T, text string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "program")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "program")
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755)); err != nil {
		t.Fatal(err)
	}
	return path
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
			p := program{path: siteProgram(t, tt.text), args: []string{"arg"}, env: []string{"NAME=value", "PATH=/usr/bin:/bin"}, dir: "/", stdin: []byte(tt.stdin), as: tt.as, limit: tt.limit}
			o, err := p.run(t.Context(), tt.combined)
			if err != nil {
				t.Fatal(err)
			}
			if o.late != tt.late || tt.signal != 0 && (!o.status.Signaled() || o.status.Signal() != tt.signal) || tt.signal == 0 && o.status.ExitStatus() != tt.code {
				t.Errorf("%s", o.describe())
			}
			if tt.stdout == "?" {
				pid, err := strconv.Atoi(strings.TrimSpace(string(o.stdout)))
				if err != nil {
					t.Fatal(err)
				}
				waitDead(t, pid)
				return
			}
			if string(o.stdout) != tt.stdout || string(o.stderr) != tt.stderr {
				t.Errorf("wrote %q and %q, want %q and %q", o.stdout, o.stderr, tt.stdout, tt.stderr)
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
	p := program{path: siteProgram(t, "head -c 9000000 /dev/zero; head -c 100000 /dev/zero >&2"), env: []string{"PATH=/usr/bin:/bin"}, dir: "/", as: sandbox.Self()}
	o, err := p.run(t.Context(), false)
	if err != nil || len(o.stdout) != maxProgramOutput || len(o.stderr) != maxProgramErrors || !o.cut {
		t.Errorf("%d and %d bytes, cut %v, %v", len(o.stdout), len(o.stderr), o.cut, err)
	}
}

func TestProgramThatIsNotThere(t *testing.T) {
	_, err := program{path: "/no/such/program", dir: "/", as: sandbox.Self()}.run(t.Context(), false)
	if !errors.Is(err, errNotRun) || !strings.Contains(err.Error(), "/no/such/program") {
		t.Error(err)
	}
}

// TestProgramEndsWithItsContext: an order to end the job ends its hook.
func TestProgramEndsWithItsContext(t *testing.T) {
	why := errors.New("the reason")
	ctx, cancel := context.WithCancelCause(t.Context())
	begun := filepath.Join(t.TempDir(), "begun")
	p := program{path: siteProgram(t, "echo $$ >"+begun+".new; mv "+begun+".new "+begun+"; exec sleep 1000"), env: []string{"PATH=/usr/bin:/bin"}, dir: "/", as: sandbox.Self()}
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
	if _, err := p.run(ctx, false); !errors.Is(err, why) {
		t.Error(err)
	}
	text, _ := os.ReadFile(begun)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	waitDead(t, pid)
}

// TestUsesNoImage: what would execute something of the image is found out.
func TestUsesNoImage(t *testing.T) {
	dynamic, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	// A header alone: 64 bits, little-endian, for amd64, no program headers.
	static := make([]byte, 64)
	copy(static, "\x7fELF\x02\x01\x01")
	copy(static[16:], []byte{2, 0, 62, 0, 1})
	static[52] = 64
	for name, tt := range map[string]struct {
		file  []byte
		words string
	}{
		"static":  {static, ""},
		"dynamic": {dynamic, "dynamically"},
		"script":  {[]byte("#!/bin/sh\n"), "interpreter"},
		"nothing": {nil, "not an ELF"},
		"text":    {[]byte("hello"), "not an ELF"},
	} {
		err := usesNoImage(tt.file)
		if (err == nil) != (tt.words == "") || err != nil && !strings.Contains(err.Error(), tt.words) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzUsesNoImage: a file that is no program is refused and does no harm.
func FuzzUsesNoImage(f *testing.F) {
	f.Add([]byte("#!"))
	f.Add([]byte("\x7fELF\x02\x01\x01"))
	f.Fuzz(func(t *testing.T, file []byte) {
		if usesNoImage(file) == nil && !strings.HasPrefix(string(file), "\x7fELF") {
			t.Errorf("%q is taken for a static program", file)
		}
	})
}
