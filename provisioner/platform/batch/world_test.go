package batch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"podstarter/provisioner/platform"
	"podstarter/provisioner/platform/platformtest"
	"podstarter/provisioner/resources"
	"podstarter/provisioner/template"
)

// world is the batch system of testdata/batch.sh.
type world struct {
	t      *testing.T
	dir    string
	file   File
	system *System
}

func site(t *testing.T, dir string) File {
	t.Helper()
	script, err := filepath.Abs("testdata/batch.sh")
	if err != nil {
		t.Fatal(err)
	}
	return File{
		Submit: []string{"sh", script, dir, "submit", "{name}", "{note}"},
		ID:     `queue: (\S+)\.\n`,
		Denied: "quota",
		Status: []string{"sh", script, dir, "status"},
		Fields: []string{"name", "id", "state", "note", "created", "began", "ended", "reason"},
		States: map[string]string{"Q": "pending", "W": "unschedulable", "H": "held", "R": "running", "C": "ended", "F": "failed", "X": "gone"},
		Cancel: []string{"sh", script, dir, "cancel", "{id}"},
	}
}

const manifestText = "cpus={cpus}\nmemory={memory}\nowner={user}\n"

func plain() template.Template {
	return template.Template{Name: "plain", File: "job", Manifest: manifestText, Slots: 1, Shapes: []template.Shape{{Name: "small", Lifetime: time.Hour}}}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir()}
	w.file = site(t, w.dir)
	w.system = w.restart()
	return w
}

func (w *world) restart() *System {
	w.t.Helper()
	c, err := w.file.Parse()
	if err != nil {
		w.t.Fatal(err)
	}
	s, err := New("p", c, []template.Template{plain()})
	if err != nil {
		w.t.Fatal(err)
	}
	s.pause = func(context.Context, time.Duration) error { return nil }
	return s
}

func (w *world) Platform() platform.Platform { return w.system }
func (w *world) Restart() platform.Platform  { return w.restart() }

// set writes the line of a job anew.
func (w *world) set(name string, change func(fields []string) []string) {
	w.t.Helper()
	files, err := filepath.Glob(filepath.Join(w.dir, name+".*.job"))
	if err != nil || len(files) != 1 {
		w.t.Fatalf("%s has the files %q, %v", name, files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		w.t.Fatal(err)
	}
	w.write("changed", strings.Join(change(strings.Fields(string(text))), " ")+"\n")
	if err := os.Rename(filepath.Join(w.dir, "changed"), files[0]); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) write(name, text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) remove(name string) {
	w.t.Helper()
	if err := os.Remove(filepath.Join(w.dir, name)); err != nil {
		w.t.Fatal(err)
	}
}

// submitted is how many jobs were made.
func (w *world) submitted() int {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(w.dir, "submitted"))
	if err != nil && !os.IsNotExist(err) {
		w.t.Fatal(err)
	}
	return strings.Count(string(text), "\n")
}

func now() string { return fmt.Sprint(time.Now().Unix()) }

func (w *world) Begin(name string) {
	w.set(name, func(f []string) []string { f[2], f[5] = "R", now(); return f })
}

func (w *world) Fail(name string) {
	w.set(name, func(f []string) []string { f[2], f[6] = "F", now(); return append(f[:7], "exit code 1") })
}

func (w *world) Finish(name string) {
	w.set(name, func(f []string) []string { f[2], f[6] = "C", now(); return f })
}

func (w *world) Stick(name string) {
	w.set(name, func(f []string) []string { f[2] = "W"; return append(f[:7], "no node has room") })
}

func (w *world) Deny(deny bool) {
	if deny {
		w.write("deny", "")
	} else {
		w.remove("deny")
	}
}

func TestPlatform(t *testing.T) {
	platformtest.Run(t, func(t *testing.T) platformtest.World { return newWorld(t) })
}

// A batch system that tells no times and no reasons is enough.
func TestPlatformWithoutTimes(t *testing.T) {
	platformtest.Run(t, func(t *testing.T) platformtest.World {
		w := newWorld(t)
		w.file.Fields = []string{"name", "id", "state", "note", "-"}
		w.system = w.restart()
		return w
	})
}

var spec1 = platform.Spec{Name: "p-plain-1", Template: "plain", Shape: "small", Size: resources.Amount{CPUs: 2, Memory: 2048, Disk: 1 << 20, GPUs: 1}, User: "a@b", Group: "g"}
