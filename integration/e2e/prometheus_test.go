//go:build pool

package e2e

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// prometheusProgram is a program of Debian's package prometheus, which is fetched once for
// this machine and not installed.
func prometheusProgram(t *testing.T, name string) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "podstarter", "prometheus")
	program := filepath.Join(dir, "usr", "bin", name)
	if _, err := os.Stat(program); err == nil {
		return program
	} else if !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "prometheus-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(tmp)
	for _, script := range []string{"apt-get download -q prometheus || { apt-get update -q && apt-get download -q prometheus; }", "dpkg -x prometheus_*.deb root"} {
		cmd := exec.CommandContext(soon(t, patience), "sh", "-c", script)
		cmd.Dir = tmp
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("fetch Debian's package prometheus: %v\n%s", err, out)
		}
	}
	if err := os.Rename(filepath.Join(tmp, "root"), dir); err != nil && !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
	return program
}

// daemon runs a program until the test ends.
func daemon(t *testing.T, program string, args ...string) {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		stop := time.AfterFunc(promptly, func() { _ = cmd.Process.Kill() })
		defer stop.Stop()
		_ = cmd.Wait()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("%s:\n%.4000s", filepath.Base(program), text)
		}
		log.Close()
	})
}

// told runs a program with a standard input and gives all that it says.
func told(t *testing.T, program string, stdin io.Reader, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdin = stdin
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func escape(s string) string { return url.QueryEscape(s) }

// promptly is how long a program may take to end.
const promptly = 10 * time.Second
