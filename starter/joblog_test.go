package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podstarter/condor/config"
	"podstarter/condor/daemonlog"
	"podstarter/sandbox"
)

// TestJobLog: what a job asked for is in its sandbox, and what lies in wait
// there under the file's name is left alone.
func TestJobLog(t *testing.T) {
	for name, test := range map[string]struct {
		ask    string
		before func(t *testing.T, scratch string)
		want   string // empty for no log
	}{
		"asked for":   {"D_FULLDEBUG,/elsewhere/.starter.log", nil, "a detail"},
		"not asked":   {"", nil, ""},
		"only brief":  {"D_ALWAYS,/elsewhere/.starter.log", nil, "news"},
		"somebody's":  {"D_FULLDEBUG,/elsewhere/.starter.log", func(t *testing.T, scratch string) { link(t, scratch) }, ""},
		"of the site": {"/elsewhere/.starter.log", nil, "news"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			box, err := sandbox.Create(t.Context(), sandbox.Options{Execute: dir, PID: 7, Condor: sandbox.Self(), Payload: sandbox.Self()})
			if err != nil {
				t.Fatal(err)
			}
			if test.before != nil {
				test.before(t, box.Scratch())
			}
			logs, err := daemonlog.Open(daemonlog.Options{Path: filepath.Join(dir, "StarterLog"), Flags: daemonlog.ParseFlags("")})
			if err != nil {
				t.Fatal(err)
			}
			defer logs.Close()
			a := &activation{inv: invocation{jobLog: test.ask}, logs: logs, log: slog.New(logs.Handler()), sandbox: box,
				cfg: config.FromMap(map[string]string{"LOG": dir})}
			a.openJobLog()
			a.log.Debug("a detail")
			a.log.Info("news")
			a.closeJobLog()
			a.log.Info("too late")
			got, err := os.ReadFile(filepath.Join(box.Scratch(), ".starter.log"))
			if (err == nil && len(got) > 0) != (test.want != "") || !strings.Contains(string(got), test.want) || strings.Contains(string(got), "late") {
				t.Errorf("the log is %q, %v; want %q", got, err, test.want)
			}
			if test.want == "news" && strings.Contains(string(got), "detail") {
				t.Errorf("it says more than asked for: %q", got)
			}
			main, err := os.ReadFile(filepath.Join(dir, "StarterLog"))
			if err != nil || !strings.Contains(string(main), "too late") {
				t.Errorf("the starter's own log is %q, %v", main, err)
			}
		})
	}
}

// link lays a link where the log would be.
func link(t *testing.T, scratch string) {
	t.Helper()
	target := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(target, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, filepath.Join(scratch, ".starter.log")); err != nil {
		t.Fatal(err)
	}
}
