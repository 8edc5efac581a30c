package localexec_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"podstarter/localexec"
	"podstarter/localexec/apptainer"
	"podstarter/payload"
	"podstarter/wrapper/agent/agenttest"
)

// TestRuntime: the runtime is tried as a job's user and without the starter's variables, and what it leaves running is
// killed.
func TestRuntime(t *testing.T) {
	t.Setenv("SECRET_OF_THE_STARTER", "1")
	const version = `[ "$1" = --version ] && { echo apptainer version 1.4.5; exit 0; }` + "\n"
	const user = `[ "$(id -u)" = UID ] || { echo "FATAL: I am $(id -u)"; exit 1; }` + "\n"
	for name, tt := range map[string]struct {
		script string // "": there is none
		image  string
		works  bool
		err    string
		grade  payload.Grade
		says   string
	}{
		"works":         {script: version + user + `[ -z "$SECRET_OF_THE_STARTER" ] || exit 1; grep -q "NoNewPrivs:.1" /proc/self/status || exit 2; sleep 1000 & exit 37`, works: true, says: "run by apptainer version 1.4.5"},
		"is broken":     {script: version + "echo 'INFO: x'; echo 'FATAL: no user namespaces' >&2; exit 255", grade: payload.Bad, says: "runs none of HTCondor's own: FATAL: no user namespaces"},
		"hangs":         {script: version + "exec sleep 1000", grade: payload.Bad, says: "did not end in time"},
		"lacks squash":  {script: version + `case "$*" in *.sif*) exit 1;; esac; exit 37`, works: true, grade: payload.Warn, says: "not /x.sif"},
		"is no program": {script: "exit 3", err: "ended with status 3", grade: payload.Bad, says: "ended with status 3"},
		"is not there":  {err: "there is no such program", says: "do not run here"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := agenttest.PublicDir(t)
			uid, _ := agenttest.Payload()
			program := filepath.Join(dir, "apptainer")
			if tt.script != "" {
				script := "#!/bin/bash\n" + strings.ReplaceAll(tt.script, "UID", strconv.Itoa(uid)) + "\n"
				if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			b, err := localexec.New(localexec.Options{Dir: filepath.Join(dir, "private"), UID: uid, Users: 1, Runtime: localexec.Runtime{
				Site: apptainer.Site{Program: program}, Images: apptainer.Images{Sandbox: "/sandbox", SIF: "/x.sif", Timeout: 3 * time.Second},
			}})
			if err != nil {
				t.Fatal(err)
			}
			report, err := b.Probe(agenttest.Context(t))
			if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Fatal(err)
			}
			if report.Works() != tt.works || tt.script == "" && !errors.Is(err, localexec.ErrNoRuntime) {
				t.Errorf("%+v, %v", report, err)
			}
			found := b.Audit(agenttest.Context(t))
			last := found[len(found)-1]
			if last.Grade != tt.grade || !strings.Contains(last.Detail, tt.says) || (last.Fix != "") != (tt.grade != payload.OK) {
				t.Errorf("%+v", last)
			}
			lease(t, b) // the probe has given its user back
		})
	}
}

// TestTry: a program of the machine is tried as a job's user.
func TestTry(t *testing.T) {
	dir := agenttest.PublicDir(t)
	uid, _ := agenttest.Payload()
	b, err := localexec.New(localexec.Options{Dir: filepath.Join(dir, "private"), UID: uid, Users: 1})
	if err != nil {
		t.Fatal(err)
	}
	status, output, err := b.Try(agenttest.Context(t), []string{"/bin/sh", "-c", "id -u; echo words >&2; exit 3"})
	if want := strconv.Itoa(uid) + "\nwords\n"; err != nil || status != 3 || string(output) != want {
		t.Errorf("status %d, output %q, %v, want 3 and %q", status, output, err, want)
	}
	if _, _, err := b.Try(agenttest.Context(t), []string{"/no/such/program"}); err == nil {
		t.Error("a program that is not there was run")
	}
}
