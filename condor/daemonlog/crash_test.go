package daemonlog

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestCrash: what the runtime says when the process dies is in the log, in the file
// that is the log then.
func TestCrash(t *testing.T) {
	const dir = "TEST_CRASH_DIR"
	if at := os.Getenv(dir); at != "" {
		log, err := Open(Options{Path: filepath.Join(at, "Log"), Flags: ParseFlags(""), MaxSize: 64, Crash: true})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			slog.New(log.Handler()).Info(strings.Repeat("x", 100))
		}
		done := make(chan struct{})
		go func() { panic("the end") }()
		<-done
	}
	at := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestCrash$")
	cmd.Env = append(os.Environ(), dir+"="+at)
	if err := cmd.Run(); err == nil {
		t.Fatal("it has not crashed")
	}
	old, _ := os.ReadFile(filepath.Join(at, "Log.old"))
	now, err := os.ReadFile(filepath.Join(at, "Log"))
	if err != nil || len(old) == 0 || strings.Contains(string(old), "the end") {
		t.Errorf("the log set aside is %q; %v", old, err)
	}
	if s := string(now); !strings.Contains(s, "panic: the end") || !strings.Contains(s, "TestCrash.func") {
		t.Errorf("the log is %q", s)
	}
}
