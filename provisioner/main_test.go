package main

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"podstarter/internal/buildinfo"
	"podstarter/provisioner/platform"
	"podstarter/provisioner/platform/model"
	"podstarter/provisioner/settings"
	"podstarter/provisioner/template"
)

// site writes a configuration, a template and HTCondor's tools, which tell of
// three idle jobs. It returns the arguments that name them, and the cluster.
func site(t *testing.T) ([]string, *model.Model) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"provisioner.yaml":    "name: site\nschedds: [ap]\ninterval: 10s\n",
		"plain.template.yaml": "name: plain\nmanifest: pod.yaml\nshapes:\n- {name: one, cpus: 1, memory: 2Gi, disk: 1Gi}\n",
		"pod.yaml":            "kind: Pod\n",
		"condor_q":            "#!/bin/sh\nprintf 'Requirements = TARGET.Cpus >= 1\\nUser = \"alice@x\"\\nJobCount = 3\\nJobIds = \"1.0 ... 1.2\"\\n\\n'\n",
		"condor_status":       "#!/bin/sh\nexit 0\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return []string{"-config", filepath.Join(dir, "provisioner.yaml"), "-templates", dir}, model.New(time.Now)
}

// start runs the program with a cluster in memory.
func start(ctx context.Context, m *model.Model, args ...string) (out, words string, err error) {
	var o, w strings.Builder
	err = run(ctx, args, &o, &w, func(context.Context, settings.Settings, []template.Template) (platform.Platform, error) {
		return m, nil
	})
	return o.String(), w.String(), err
}

func count(t *testing.T, m *model.Model) int {
	t.Helper()
	units, err := m.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return len(units)
}

func TestVersion(t *testing.T) {
	if out, _, err := start(t.Context(), nil, "-version"); err != nil || out != buildinfo.Version()+"\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestArgumentsThatAreWrong(t *testing.T) {
	args, m := site(t)
	empty := t.TempDir()
	for want, wrong := range map[string][]string{
		`"now" is no option`: append(args, "now"),
		"-loud":              {"-loud"},
		"reading the configuration " + empty + "/none": {"-config", empty + "/none"},
		"no file ends in .template.yaml":               {args[0], args[1], "-templates", empty},
		`explaining the group "none"`:                  append(args, "-explain", "none"),
	} {
		if _, _, err := start(t.Context(), m, wrong...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error is %v, want one with %q", wrong, err, want)
		}
	}
	if _, words, err := start(t.Context(), m, "-help"); !errors.Is(err, flag.ErrHelp) || !strings.Contains(words, "-dry-run") {
		t.Errorf("-help says %q, %v", words, err)
	}
	if n := count(t, m); n != 0 {
		t.Errorf("%d pods are made", n)
	}
}

func TestClusterAway(t *testing.T) {
	args, _ := site(t)
	away := errors.New("the cluster is away")
	err := run(t.Context(), args, &strings.Builder{}, &strings.Builder{}, func(context.Context, settings.Settings, []template.Template) (platform.Platform, error) {
		return nil, away
	})
	if !errors.Is(err, away) {
		t.Errorf("the error is %v", err)
	}
}

func TestDryRun(t *testing.T) {
	args, m := site(t)
	out, _, err := start(t.Context(), m, append(args, "-dry-run")...)
	if err != nil || !strings.Contains(out, "make 3 of plain/one for alice@x\n") {
		t.Fatalf("%q, %v", out, err)
	}
	lines := strings.Split(out, "\n")
	id, _, _ := strings.Cut(lines[1], " ")
	out, _, err = start(t.Context(), m, append(args, "-explain", id)...)
	if err != nil || !strings.Contains(out, "3 idle jobs of alice@x (ap: 1.0 ... 1.2)\n") || !strings.Contains(out, "plain/one: matches") {
		t.Errorf("%q, %v", out, err)
	}
	if n := count(t, m); n != 0 {
		t.Errorf("a dry run makes %d pods", n)
	}
}

func TestOnce(t *testing.T) {
	args, m := site(t)
	_, words, err := start(t.Context(), m, append(args, "-once")...)
	if err != nil || count(t, m) != 3 || strings.Count(words, `"A pod is made"`) != 3 || !strings.Contains(words, `"idle":3`) {
		t.Errorf("%d pods, %v\n%s", count(t, m), err, words)
	}
}

// The program goes on until it is told to end, and leaves the pods.
func TestService(t *testing.T) {
	args, m := site(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var words strings.Builder
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, args, &strings.Builder{}, writer(func(p []byte) {
			words.Write(p)
			if strings.Contains(string(p), "A round is done") {
				cancel()
			}
		}), func(context.Context, settings.Settings, []template.Template) (platform.Platform, error) {
			return m, nil
		})
	}()
	select {
	case err := <-done:
		if err != nil || count(t, m) != 3 || !strings.Contains(words.String(), "The provisioner ends") {
			t.Errorf("%d pods, %v\n%s", count(t, m), err, words.String())
		}
	case <-time.After(60 * time.Second):
		t.Error("it does not end")
	}
}

type writer func(p []byte)

func (w writer) Write(p []byte) (int, error) {
	w(p)
	return len(p), nil
}
