package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"podstarter/integration/harness"
)

// TestCost counts a child and a grandchild of this process, and leaves out others.
func TestCost(t *testing.T) {
	const name = "bench-sh"
	shell := filepath.Join(t.TempDir(), name)
	data, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(shell, data, 0o755); err != nil {
		t.Fatal(err)
	}
	// A fork that has the shell's name does the work.
	burn := exec.Command(shell, "-c", "(while :; do :; done) & wait")
	idle := exec.Command("sleep", "600")
	for _, cmd := range []*exec.Cmd{burn, idle} {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	}
	c, err := newCost(func(p harness.Process) bool { return p.PID == os.Getpid() }, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for pid, u := range c.seen {
			if p, err := os.FindProcess(pid); err == nil && u.name == name {
				_ = p.Kill()
			}
		}
	})
	for deadline := time.Now().Add(time.Minute); c.cpu(name) < 10*time.Millisecond; {
		c.look(true)
		if time.Now().After(deadline) {
			t.Fatalf("a child that works used nothing: %v", c.seen)
		}
	}
	if len(c.seen) != 2 || c.peak(name) <= 0 {
		t.Errorf("%d processes, peak %d KiB; want the shell and its child", len(c.seen), c.peak(name))
	}
	if c.cpu("sleep") != 0 {
		t.Error("a process of another name was counted")
	}
}
