package batch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/provisioner/backoff"
	"podstarter/provisioner/platform"
	"podstarter/provisioner/resources"
	"podstarter/provisioner/template"
)

func list(t *testing.T, s *System) []platform.Unit {
	t.Helper()
	units, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return units
}

// The name of a user cannot add anything to what is submitted, and comes back as
// it was.
func TestHostileUser(t *testing.T) {
	for _, user := range []string{
		"alice@example.org\nqueue 1000", "--wrap=reboot", "a b;reboot", `"$(reboot)"`, "{note}", "a,b,c", "%41", "", "\x00\xff", strings.Repeat("long", 100),
	} {
		w := newWorld(t)
		spec := spec1
		spec.User, spec.Group = user, user
		if err := w.system.Create(t.Context(), spec); err != nil {
			t.Fatalf("%q: %v", user, err)
		}
		text, err := os.ReadFile(filepath.Join(w.dir, "text"))
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(text), "\n")
		if len(lines) != 4 || lines[0] != "cpus=2" || strings.ContainsAny(lines[2], " \"$;{}\x00,`'\\") || strings.HasPrefix(lines[2], "owner=-") || lines[2] == "owner=" {
			t.Errorf("%q: submitted was %q", user, text)
		}
		units := list(t, w.restart())
		if len(units) != 1 {
			t.Fatalf("%q: there are %+v", user, units)
		}
		if diff := cmp.Diff(spec, units[0].Spec); diff != "" {
			t.Errorf("%q: -want +got\n%s", user, diff)
		}
	}
}

// A name so long that the note keeps only a part of it does no harm.
func TestHugeUser(t *testing.T) {
	w := newWorld(t)
	spec := spec1
	spec.User = strings.Repeat("\n", 1<<20)
	if err := w.system.Create(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if units := list(t, w.system); len(units) != 1 || units[0].User != spec.User {
		t.Error("the user is another while the provisioner remembers")
	}
	if units := list(t, w.restart()); len(units) != 1 || units[0].User != spec.User[:maxUser] {
		t.Errorf("after a restart there are %d units", len(units))
	}
}

// An answer that was lost does not make a second job: the name counts, and is
// looked up before it is tried again.
func TestLostAnswer(t *testing.T) {
	w := newWorld(t)
	w.file.Timeout = "1s"
	w.system = w.restart()
	w.write("lose", "")
	if err := w.system.Create(t.Context(), spec1); err == nil || !strings.Contains(err.Error(), "has not ended after 1s") {
		t.Fatalf("the error is %v", err)
	}
	w.remove("lose")
	if err := w.system.Create(t.Context(), spec1); err != nil {
		t.Fatal(err)
	}
	if n := w.submitted(); n != 1 {
		t.Errorf("it was submitted %d times", n)
	}
	// So it is if nobody remembers.
	if err := w.restart().Create(t.Context(), spec1); err != nil {
		t.Fatal(err)
	}
	if n := w.submitted(); n != 1 {
		t.Errorf("after a restart it was submitted %d times", n)
	}
}

// A unit whose submission was lost before it was made counts for a minute, and can
// be made then or before.
func TestLostSubmission(t *testing.T) {
	w := newWorld(t)
	w.file.Timeout = "1s"
	w.system = w.restart()
	w.write("hang", "")
	if err := w.system.Create(t.Context(), spec1); err == nil {
		t.Fatal("a submission that hangs is no error")
	}
	w.remove("hang")
	if units := list(t, w.system); len(units) != 1 || units[0].Phase != platform.Pending {
		t.Errorf("the one that may be there must count: %+v", units)
	}
	if err := w.system.Create(t.Context(), spec1); err != nil || w.submitted() != 1 {
		t.Errorf("it was submitted %d times, %v", w.submitted(), err)
	}
	lost := spec1
	lost.Name = "p-plain-2"
	w.write("hang", "")
	if err := w.system.Create(t.Context(), lost); err == nil {
		t.Fatal("a submission that hangs is no error")
	}
	later := time.Now().Add(2 * unseen)
	w.system.now = func() time.Time { return later }
	if units := list(t, w.system); len(units) != 1 || units[0].Name != spec1.Name {
		t.Errorf("a unit that is not there still counts: %+v", units)
	}
}

// What certainly was not made does not count.
func TestNothingMade(t *testing.T) {
	w := newWorld(t)
	w.file.Submit[0] = "/no/such/program"
	w.system = w.restart()
	if err := w.system.Create(t.Context(), spec1); err == nil || errors.Is(err, platform.ErrDenied) {
		t.Errorf("the error is %v", err)
	}
	bad := spec1
	bad.Name = "p-plain-1\n"
	if err := w.system.Create(t.Context(), bad); err == nil || !strings.Contains(err.Error(), "is no name of a unit") {
		t.Errorf("the error is %v", err)
	}
	bad = spec1
	bad.Template = "other"
	if err := w.system.Create(t.Context(), bad); err == nil || !strings.Contains(err.Error(), "no template other") {
		t.Errorf("the error is %v", err)
	}
	if units := list(t, w.system); len(units) != 0 {
		t.Errorf("there are %+v", units)
	}
}

// Two jobs with one name are one unit, and are withdrawn together.
func TestTwoJobsOfOneUnit(t *testing.T) {
	w := newWorld(t)
	for range 2 {
		if _, _, err := w.system.submit(t.Context(), w.system.templates["plain"], spec1); err != nil {
			t.Fatal(err)
		}
	}
	if units := list(t, w.system); len(units) != 1 {
		t.Errorf("there are %+v", units)
	}
	if err := w.system.Withdraw(t.Context(), spec1.Name); err != nil {
		t.Fatal(err)
	}
	if units := list(t, w.system); len(units) != 0 {
		t.Errorf("after the withdrawal there are %+v", units)
	}
}

// A job that begins between the look and the cancellation is one that has begun.
func TestBeginsMeanwhile(t *testing.T) {
	w := newWorld(t)
	if err := w.system.Create(t.Context(), spec1); err != nil {
		t.Fatal(err)
	}
	w.write("begin", "")
	if err := w.system.Withdraw(t.Context(), spec1.Name); !errors.Is(err, platform.ErrBegun) {
		t.Errorf("the error is %v", err)
	}
}

// Without its status a round must not think that nothing is there.
func TestStatusThatFails(t *testing.T) {
	w := newWorld(t)
	if err := w.system.Create(t.Context(), spec1); err != nil {
		t.Fatal(err)
	}
	w.write("fail", "")
	if units, err := w.system.List(t.Context()); err == nil || units != nil {
		t.Errorf("%+v, %v", units, err)
	}
	if err := w.restart().Create(t.Context(), spec1); err == nil || w.submitted() != 1 {
		t.Errorf("without knowing what is there, it was submitted %d times, %v", w.submitted(), err)
	}
	w.remove("fail")
	w.set(spec1.Name, func(f []string) []string { f[2] = "ZOMBIE"; return f })
	if _, err := w.system.List(t.Context()); err == nil || !strings.Contains(err.Error(), `is in the state "ZOMBIE"; add to batch.states what that means`) {
		t.Errorf("the error is %v", err)
	}
}

// A unit that vanishes without a word has come to nothing, unless it was
// withdrawn or had ended before.
func TestVanished(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"p-plain-1", "p-plain-2", "p-plain-3"} {
		spec := spec1
		spec.Name = name
		if err := w.system.Create(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
	}
	w.Begin("p-plain-1")
	w.Finish("p-plain-2")
	list(t, w.system)
	if err := w.system.Withdraw(t.Context(), "p-plain-3"); err != nil {
		t.Fatal(err)
	}
	w.remove("p-plain-1.1.job")
	w.remove("p-plain-2.2.job")
	// A status that misses it once says nothing: commands in a pipe, and servers that
	// start anew, print nothing and end well.
	units := list(t, w.system)
	if len(units) != 1 || units[0].Name != "p-plain-1" || units[0].Phase != platform.Running {
		t.Errorf("there are %+v", units)
	}
	soon := time.Now().Add(unseen)
	w.system.now = func() time.Time { return soon }
	units = list(t, w.system)
	if len(units) != 1 || units[0].Name != "p-plain-1" || units[0].Phase != platform.Ended || units[0].Trouble != backoff.Failed || units[0].Detail != goneDetail || units[0].Ended.IsZero() {
		t.Errorf("there are %+v", units)
	}
	later := time.Now().Add(2 * remember)
	w.system.now = func() time.Time { return later }
	if units := list(t, w.system); len(units) != 0 {
		t.Errorf("it is never forgotten: %+v", units)
	}
}

// A status that is empty for a moment makes no unit twice.
func TestStatusThatIsEmptyOnce(t *testing.T) {
	w := newWorld(t)
	if err := w.system.Create(t.Context(), spec1); err != nil {
		t.Fatal(err)
	}
	w.Begin(spec1.Name)
	at := time.Now()
	w.system.now = func() time.Time { return at }
	list(t, w.system)
	name := filepath.Join(w.dir, spec1.Name+".1.job")
	for range 3 {
		if err := os.Rename(name, name+".away"); err != nil {
			t.Fatal(err)
		}
		at = at.Add(2 * unseen)
		if units := list(t, w.system); len(units) != 1 || units[0].Phase != platform.Running {
			t.Fatalf("while the status shows nothing there are %+v", units)
		}
		if err := os.Rename(name+".away", name); err != nil {
			t.Fatal(err)
		}
		at = at.Add(2 * unseen)
		if units := list(t, w.system); len(units) != 1 || units[0].Phase != platform.Running {
			t.Fatalf("after that there are %+v", units)
		}
	}
}

// A batch system that starts anew at the same time as the provisioner lists nothing
// for a moment: jobs that are alive would be made again.
func TestStatusThatIsEmptyAfterARestart(t *testing.T) {
	w := newWorld(t)
	if err := w.system.Create(t.Context(), spec1); err != nil {
		t.Fatal(err)
	}
	w.Begin(spec1.Name)
	name := filepath.Join(w.dir, spec1.Name+".1.job")
	if err := os.Rename(name, name+".away"); err != nil {
		t.Fatal(err)
	}
	again := w.restart()
	var paused []time.Duration
	again.pause = func(_ context.Context, d time.Duration) error {
		paused = append(paused, d)
		if len(paused) == 1 {
			return os.Rename(name+".away", name)
		}
		return nil
	}
	if units := list(t, again); len(units) != 1 || units[0].Phase != platform.Running {
		t.Errorf("there are %+v", units)
	}
	// Where there is none, the second answer counts, and is asked for once.
	w.remove(spec1.Name + ".1.job")
	none := w.restart()
	none.pause = again.pause
	if units := list(t, none); len(units) != 0 {
		t.Errorf("there are %+v", units)
	}
	list(t, none)
	if !slices.Equal(paused, []time.Duration{unseen, unseen}) {
		t.Errorf("it has waited for %v", paused)
	}
	// A provisioner that is to end does not wait.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c, err := w.file.Parse()
	if err != nil {
		t.Fatal(err)
	}
	ends, err := New("p", c, []template.Template{plain()})
	if err != nil {
		t.Fatal(err)
	}
	if err := ends.pause(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}

// A unit whose note was changed counts; one of another provisioner does not.
func TestNotes(t *testing.T) {
	w := newWorld(t)
	if err := w.system.Create(t.Context(), spec1); err != nil {
		t.Fatal(err)
	}
	w.set(spec1.Name, func(f []string) []string { f[3] = "(null)"; return f })
	w.write("p-b-plain-1.9.job", "p-b-plain-1 9 R "+note("p-b", spec1)+" 0 0 0 -\n")
	w.write("p_.10.job", "p-_;x 10 R - 0 0 0 -\n")
	units := list(t, w.restart())
	if len(units) != 1 || units[0].Name != spec1.Name || units[0].Template != "plain" || units[0].Size != (resources.Amount{}) {
		t.Errorf("there are %+v", units)
	}
}

// What is submitted is the whole unit, in a file if the site wants one.
func TestSubmission(t *testing.T) {
	w := newWorld(t)
	w.file.Submit = append(w.file.Submit, "{file}")
	c, err := w.file.Parse()
	if err != nil {
		t.Fatal(err)
	}
	tpl := plain()
	tpl.Slots = 3
	tpl.Manifest = "{cpus} {memory} {disk} {gpus} {slots} {lifetime} {minutes} {provisioner} {template} {shape} {user} {group} ${{HOME}}\n"
	if w.system, err = New("p", c, []template.Template{tpl}); err != nil {
		t.Fatal(err)
	}
	w.system.pause = func(context.Context, time.Duration) error { return nil }
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	if err := w.system.Create(t.Context(), spec1); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(w.dir, "text"))
	if want := "6 6144 3145728 3 3 3600 60 p plain small a@b g ${HOME}\n"; err != nil || string(text) != want {
		t.Errorf("submitted was %q, want %q, %v", text, want, err)
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) != 0 {
		t.Errorf("the file is left: %v, %v", left, err)
	}
}

// Commands that print for ever, or leave a child that keeps the pipe, hold nobody.
func TestCommandsThatMisbehave(t *testing.T) {
	begin := time.Now()
	if out, _, err := run(t.Context(), time.Minute, 1000, "", []string{"sh", "-c", "yes"}); !errors.Is(err, errTooMuch) || len(out) != 1000 {
		t.Errorf("%d bytes, %v", len(out), err)
	}
	if out, _, err := run(t.Context(), time.Minute, 1000, "", []string{"sh", "-c", "sleep 1000 & echo id"}); err != nil || string(out) != "id\n" {
		t.Errorf("%q, %v", out, err)
	}
	if _, _, err := run(t.Context(), time.Second, 1000, strings.Repeat("x", 1<<20), []string{"sh", "-c", "sleep 1000; true"}); err == nil {
		t.Error("a command that hangs has no error")
	}
	if took := time.Since(begin); took > 40*time.Second {
		t.Errorf("it took %s", took)
	}
	_, words, err := run(t.Context(), time.Minute, 1000, "", []string{"sh", "-c", "yes error | head -c 1000000 >&2; exit 3"})
	if err == nil || len(words) != maxWords || len(err.Error()) > 2000 {
		t.Errorf("%d bytes of words, and an error of %d bytes", len(words), len(err.Error()))
	}
}
