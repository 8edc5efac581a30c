package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"podstarter/integration/pool/internal/statedir"
)

// TestMain lets the test's own binary be the program that Start runs again.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Verb {
		fmt.Fprintln(os.Stderr, Exec(os.Args[2:]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func newSet(t *testing.T) Set {
	dir := t.TempDir()
	return Set{Records: filepath.Join(dir, "run"), Logs: filepath.Join(dir, "log")}
}

func TestStartStop(t *testing.T) {
	set := newSet(t)
	spec := Spec{Name: "sleeper", Args: []string{"sleep", "1000"}, Inputs: []string{"a"}}
	start := func(want bool) Record {
		t.Helper()
		started, err := set.Start(t.Context(), spec)
		if err != nil || started != want {
			t.Fatalf("Start = %v, %v; want %v", started, err, want)
		}
		r, ok := set.Running("sleeper")
		if !ok {
			t.Fatal("it does not run")
		}
		return r
	}
	t.Cleanup(func() { _ = set.Stop(t.Context(), "sleeper", time.Second) })
	first := start(true)
	if again := start(false); again != first {
		t.Errorf("an unchanged daemon was %+v and is %+v", first, again)
	}
	spec.Inputs = []string{"b"}
	second := start(true)
	if second.PID == first.PID || first.Alive() {
		t.Errorf("a changed input leaves the old process %+v", first)
	}
	if err := set.Stop(t.Context(), "sleeper", time.Second); err != nil {
		t.Fatal(err)
	}
	if second.Alive() {
		t.Error("it runs after it was stopped")
	}
	if names, err := set.Names(); err != nil || len(names) > 0 {
		t.Errorf("names left: %v, %v", names, err)
	}
}

func TestStopIsFirm(t *testing.T) {
	set := newSet(t)
	if _, err := set.Start(t.Context(), Spec{Name: "deaf", Args: []string{"sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done"}}); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for ready := false; !ready; <-tick.C {
		text, err := os.ReadFile(set.Log("deaf"))
		if err != nil {
			t.Fatal(err)
		}
		ready = strings.Contains(string(text), "ready")
	}
	r, _ := set.Running("deaf")
	if err := set.Stop(t.Context(), "deaf", 50*time.Millisecond); err != nil || r.Alive() {
		t.Errorf("Stop: %v; alive: %v", err, r.Alive())
	}
}

func TestStartSaysWhy(t *testing.T) {
	set := newSet(t)
	if _, err := set.Start(t.Context(), Spec{Name: "absent", Args: []string{"/no/such/program"}}); err == nil {
		// The record may be seen before the program is found missing; then the process must at least end.
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for runs := true; runs; <-tick.C {
			_, runs = set.Running("absent")
		}
	}
}

// A record whose process id now belongs to somebody else must not get that one killed.
func TestOthersAreSpared(t *testing.T) {
	set := newSet(t)
	boot, err := bootID()
	if err != nil {
		t.Fatal(err)
	}
	start, _, err := startTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]Record{
		"another start": {PID: os.Getpid(), Start: start + 1, Boot: boot},
		"another boot":  {PID: os.Getpid(), Start: start, Boot: "x"},
		"no process":    {PID: 1 << 30, Start: start, Boot: boot},
	} {
		t.Run(name, func(t *testing.T) {
			if r.Alive() {
				t.Error("Alive says yes")
			}
			if err := statedir.WriteJSON(set.record("x"), r); err != nil {
				t.Fatal(err)
			}
			if err := set.Stop(t.Context(), "x", time.Second); err != nil {
				t.Error(err)
			}
		})
	}
	if !(Record{PID: os.Getpid(), Start: start, Boot: boot}).Alive() {
		t.Error("this process is not alive")
	}
}

func TestParseStat(t *testing.T) {
	tail := " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20 21"
	for _, tc := range []struct {
		name, text string
		want       uint64
		zombie     bool
		fail       bool
	}{
		{name: "plain", text: "7 (cat)" + tail, want: 4242},
		{name: "name like a field", text: "7 (a) Z 1 (b)" + tail, want: 4242},
		{name: "zombie", text: "7 (cat)" + strings.Replace(tail, "S", "Z", 1), want: 4242, zombie: true},
		{name: "short", text: "7 (cat) S 1", fail: true},
		{name: "no name", text: "7 cat S 1", fail: true},
		{name: "empty", fail: true},
		{name: "no number", text: "7 (cat)" + strings.Replace(tail, "4242", "x", 1), fail: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, zombie, err := parseStat([]byte(tc.text))
			if (err != nil) != tc.fail {
				t.Fatalf("error %v, want one: %v", err, tc.fail)
			}
			if err == nil && (got != tc.want || zombie != tc.zombie) {
				t.Errorf("parseStat = %d, %v; want %d, %v", got, zombie, tc.want, tc.zombie)
			}
		})
	}
}

// A program that does not hand the verb to Exec does not start itself without end.
func TestStartInADaemon(t *testing.T) {
	args := os.Args
	defer func() { os.Args = args }()
	os.Args = []string{args[0], Verb, "record", "key", "sleep"}
	if started, err := newSet(t).Start(t.Context(), Spec{Name: "again", Args: []string{"true"}}); started || err == nil {
		t.Errorf("Start = %v, %v", started, err)
	}
}
