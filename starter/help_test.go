package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podstarter/internal/buildinfo"
	"podstarter/starter/activation"
)

// TestHelpIsComplete: the help names every errand and every option that counts.
func TestHelpIsComplete(t *testing.T) {
	var text strings.Builder
	if err := help(t.Context(), &text, nil); err != nil {
		t.Fatal(err)
	}
	options := append([]string{"-check", "-classad", "-version", "-help", "-a", "-a2", "-local-name", "-slot-name"}, errands...)
	for _, option := range options {
		if !strings.Contains(text.String(), "\n  "+option+" ") {
			t.Errorf("the help does not explain %s:\n%s", option, text.String())
		}
	}
}

// TestVersion: the lines are those of the stock starter, and one of ours; where
// HTCondor cannot be asked, ours alone.
func TestVersion(t *testing.T) {
	dir := t.TempDir()
	tool := "#!/bin/sh\nprintf 'CONDOR_VERSION = 25.14.1\\n # at: <Default>\\n'\n"
	if err := os.WriteFile(filepath.Join(dir, "condor_config_val"), []byte(tool), 0o755); err != nil {
		t.Fatal(err)
	}
	ours := buildinfo.Line() + "\n"
	tests := map[string]struct {
		path, want string
	}{
		"with HTCondor":    {dir, "$CondorVersion: 25.14.1 podstarter " + buildinfo.Version() + " $\n" + platform() + "\n" + ours},
		"without HTCondor": {t.TempDir(), ours},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("PATH", tt.path+":/bin:/usr/bin")
			t.Setenv("CONDOR_CONFIG", "/nonexistent") // for a tool that is installed
			var text strings.Builder
			if err := sayVersion(t.Context(), &text, os.Environ()); err != nil {
				t.Fatal(err)
			}
			if text.String() != tt.want {
				t.Errorf("-version says:\n%swant:\n%s", text.String(), tt.want)
			}
		})
	}
}

// TestQuestions: each is answered on standard output, without a log or a startd.
func TestQuestions(t *testing.T) {
	t.Setenv("CONDOR_CONFIG", "/nonexistent")
	standard := os.Stdout
	t.Cleanup(func() { os.Stdout = standard })
	for question, want := range map[string]string{
		"-help": "usage: condor_pod_starter", "-h": "usage: condor_pod_starter", "--help": "usage: condor_pod_starter",
		"-version": buildinfo.Line(), "-v": buildinfo.Line(), "--version": buildinfo.Line(),
	} {
		out, err := os.Create(filepath.Join(t.TempDir(), "out"))
		if err != nil {
			t.Fatal(err)
		}
		os.Stdout = out
		code := run([]string{question}, os.Environ())
		os.Stdout = standard
		text, err := os.ReadFile(out.Name())
		if err != nil || code != activation.ExitNormal || !strings.Contains(string(text), want) {
			t.Errorf("%s says %q with exit code %d, %v; want %q", question, text, code, err, want)
		}
		out.Close()
	}
}
