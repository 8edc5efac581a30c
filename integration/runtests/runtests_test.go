package main

import (
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestRunTests: the exit code, the last lines and the names of what failed.
func TestRunTests(t *testing.T) {
	const (
		note  = `printf 'conformance plain\n    slow\n' >>"$PODSTARTER_FIRST_FAILURES"`
		none  = "No case was tried again.\n"
		again = "Failed at first, and passed when tried again:\nconformance plain\n    slow\n"
	)
	// Reasons are cut after two lines; a test that passed is none.
	const fails = `cat <<-'END'
	--- FAIL: TestA (1.00s)
	    --- FAIL: TestA/one (0.50s)
	        a_test.go:1: got 2
	            want 3
	            and so on
	    --- PASS: TestA/three (0.50s)
	        a_test.go:3: fine
	    --- FAIL: TestA/two (0.50s)
	        a_test.go:2: late
	FAIL
	END
	exit 1`
	const unable = `echo "  0.1 s  guest's system: failed"; echo "pool: this machine cannot run guests: linux: no" >&2; exit 77`
	first, second, guest := firstLane("pool"), secondLane("pool"), guestLane("pool", "/state-guest")
	const leftOut = "LEFT OUT: guest lane, so nothing ran with cgroup v2, and the container runtime of a guest: pool: this machine cannot run guests: linux: no\n"
	tests := map[string]struct {
		pool, goCommand string // for each call of it
		args            []string
		end             string
		failed          []string
		code            int // without anything that failed
		notice          string
	}{
		"all pass": {end: none},
		"some in turn": {goCommand: `case "$lane$*" in conformance*|*" -case"*) ;; *./conformance*) printf 'conformance: 2 ran\n' >>"$PODSTARTER_IN_TURN" ;; esac`,
			end: "conformance: 2 ran\n" + none},
		"one at second try":  {goCommand: `case "$*" in *conformance*-case*) ;; *conformance*) ` + note + ` ;; esac`, end: again},
		"in the second lane": {goCommand: `case "$*" in *conformance*-case*) [ -e "$0.done" ] || { : >"$0.done"; ` + note + `; } ;; esac`, end: again},
		"one fails":          {goCommand: `case "$lane$*" in chaos*) exit 1 ;; esac`, end: none, failed: []string{"chaos lane: chaos -v -jobs 40: exit status 1"}},
		"both": {goCommand: `case "$lane$*" in chaos*) ` + note + `; exit 1 ;; esac`, end: again,
			failed: []string{"chaos lane: chaos -v -jobs 40: exit status 1"}},
		"tests that fail": {goCommand: `case "$lane$*" in chaos*) ` + fails + ` ;; esac`, end: none,
			failed: []string{"chaos lane: chaos -v -jobs 40: exit status 1\n    --- FAIL: TestA (1.00s)\n        --- FAIL: TestA/one (0.50s)\n            a_test.go:1: got 2\n                want 3\n        --- FAIL: TestA/two (0.50s)\n            a_test.go:2: late"}},
		"killed by a signal": {goCommand: `case "$lane$*" in chaos*) kill -KILL $$ ;; esac`, end: none,
			failed: []string{"chaos lane: chaos -v -jobs 40: signal: killed"}},
		"the first pool": {pool: `case "$lane$1" in up) exit 3 ;; esac`, end: none,
			failed: []string{"first lane: " + first[0].name + ": exit status 3", "first lane: it ended early; not run: " + stepNames(first[1:])}},
		"a later pool": {pool: `case "$lane$*" in "second up --condor 23.9") exit 1 ;; esac`, end: none,
			failed: []string{"second lane: pool up --condor 23.9: exit status 1", "second lane: it ended early; not run: " + stepNames(second[3:])}},
		"a pool is killed": {pool: `case "$lane$*" in "second up --condor 23.9") kill -TERM $$ ;; esac`, end: none,
			failed: []string{"second lane: pool up --condor 23.9: signal: terminated", "second lane: it ended early; not run: " + stepNames(second[3:])}},
		"second pool stays": {pool: `case "$lane$1" in "second up") mkdir -p "$PODSTARTER_STATE" ;; *down) exit 1 ;; esac`, end: none,
			failed: []string{"second lane: pool down: exit status 1"}},
		"no guests here": {pool: `case "$lane$*" in "guest up --guest"*) ` + unable + ` ;; esac`, end: none, notice: leftOut},
		"no guests here, and a failure": {
			pool: `case "$lane$*" in "guest up --guest"*) ` + unable + ` ;; "second up --condor 23.9") exit 77 ;; esac`, end: none, notice: leftOut,
			failed: []string{"second lane: pool up --condor 23.9: exit status 77", "second lane: it ended early; not run: " + stepNames(second[3:])}},
		"no guest comes up": {pool: `case "$lane$1" in "guest up") exit 1 ;; esac`, end: none,
			failed: []string{"guest lane: " + guest[0].name + ": exit status 1", "guest lane: it ended early; not run: " + stepNames(guest[1:])}},
		"a test in the guest": {goCommand: `case "$lane$*" in guest*podfailures*) exit 1 ;; esac`, end: none,
			failed: []string{"guest lane: " + guest[3].name + ": exit status 1"}},
		"a test in the guest has this exit code": {goCommand: `case "$lane$*" in guest*podfailures*) exit 77 ;; esac`, end: none,
			failed: []string{"guest lane: " + guest[3].name + ": exit status 77"}},
		"one lane":     {args: []string{"-lane", "second"}, pool: `case "$lane" in second*) ;; *) exit 1 ;; esac`, end: none},
		"no such lane": {args: []string{"-lane", "third"}, end: "run-tests: there is no lane \"third\"; name one of first, second, attacks, guest, rules, early, faults, failures, rounds, late, chaos, pods\n", code: 1},
		"some tests":   {args: []string{"-run", "TestVacate"}, end: none},
		"some tests, failing": {goCommand: "exit 1", args: []string{"-run", "TestVacate"}, end: none,
			failed: []string{"first lane: e2e -condor 25.14 -run TestVacate: exit status 1"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCheckout(t, tt.pool, tt.goCommand, tt.args...)
			if err := c.script.Start(); err != nil {
				t.Fatal(err)
			}
			want := tt.code
			if len(tt.failed) > 0 {
				want = 1
			}
			end := tt.end
			for _, line := range tt.failed {
				end += "failed: " + line + "\n"
			}
			end += tt.notice
			if code := c.end(t); code != want || !strings.HasSuffix(c.said.String(), end) {
				t.Errorf("exit code %d, want %d; want this end:\n%s\ngot:\n%s", code, want, end, &c.said)
			}
		})
	}
}

// TestLaneEndsWithItsPool: nothing is run without a pool, the other lane is run to its
// end, and of the second pool nothing stays.
func TestLaneEndsWithItsPool(t *testing.T) {
	c := newCheckout(t, `
case "$1" in
up) [ -z "$lane" ] || mkdir -p "$PODSTARTER_STATE"; [ "$*" != "up --slots 1" ] || exit 1 ;;
esac`, "")
	if err := c.script.Start(); err != nil {
		t.Fatal(err)
	}
	c.end(t)
	want := []string{"pool up", "conformance", "pool up", "conformance", "pool up", "pool down"}
	if diff := cmp.Diff(want, c.calls(t, "second")); diff != "" {
		t.Errorf("second lane (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"pool up", "pool ap", "conformance", "classads", "pool up", "e2e"}, c.calls(t, "")); diff != "" {
		t.Errorf("first lane (-want +got):\n%s", diff)
	}
	if _, err := os.Lstat(filepath.Join(c.root, "integration", ".state-second")); err == nil {
		t.Error("the second pool's state is left")
	}
}

// TestGuestLaneIsLeftOut: where no guest can run, its lane runs nothing and leaves nothing, and
// the other lanes do not notice.
func TestGuestLaneIsLeftOut(t *testing.T) {
	c := newCheckout(t, `case "$lane$1" in "guest up") mkdir -p "$PODSTARTER_STATE"; echo no >&2; exit 77 ;; esac`, "")
	if err := c.script.Start(); err != nil {
		t.Fatal(err)
	}
	c.end(t)
	if diff := cmp.Diff([]string{"pool up", "pool down"}, c.calls(t, "guest")); diff != "" {
		t.Errorf("guest lane (-want +got):\n%s", diff)
	}
	if _, err := os.Lstat(filepath.Join(c.root, "integration", ".state-guest")); err == nil {
		t.Error("the guest's state is left")
	}
	if n := strings.Count(c.said.String(), "LEFT OUT"); n != 1 {
		t.Errorf("the end says %d times that a lane was left out", n)
	}
	if calls := c.calls(t, "second"); len(calls) < len(secondLane("pool")) {
		t.Errorf("second lane: %q", calls)
	}
}

// TestGuestsConsole: what the guest's kernel said last is shown if something failed in the guest,
// before its state is removed.
func TestGuestsConsole(t *testing.T) {
	for code, want := range map[string]bool{"1": true, "0": false} {
		c := newCheckout(t, `case "$lane$1" in "guest up") mkdir -p "$PODSTARTER_STATE/log"; echo Kernel panic >"$PODSTARTER_STATE/log/guests.log" ;; esac`,
			`case "$lane$*" in guest*attacks*) exit `+code+` ;; esac`)
		if err := c.script.Start(); err != nil {
			t.Fatal(err)
		}
		c.end(t)
		if got := strings.Contains(c.said.String(), "guest: Kernel panic\n"); got != want {
			t.Errorf("exit code %s: the guest's last words are shown: %t, want %t", code, got, want)
		}
		if calls := c.calls(t, "guest"); calls[len(calls)-1] != "pool down" {
			t.Errorf("exit code %s: the guest's pool stays: %q", code, calls)
		}
	}
}

// TestNotInTime: after the time of a run no step of the lanes in turn begins, the end of the run says so, and nothing has failed.
func TestNotInTime(t *testing.T) {
	const hour = "-for 1h"
	for args, want := range map[string]int{"-for 0s": 0, hour: len(attacksLane("pool"))} {
		c := newCheckout(t, "", "", strings.Fields(args)...)
		if err := c.script.Start(); err != nil {
			t.Fatal(err)
		}
		if code := c.end(t); code != 0 {
			t.Errorf("%s: exit code %d:\n%s", args, code, &c.said)
		}
		if calls := c.calls(t, "attacks"); len(calls) != want {
			t.Errorf("%s: calls of a lane in turn: %q, want %d", args, calls, want)
		}
		if calls := c.calls(t, "second"); len(calls) != len(secondLane("pool")) {
			t.Errorf("%s: calls of a lane of each run: %q", args, calls)
		}
		said := strings.Contains(c.said.String(), "\nNot in time: attacks lane: "+stepNames(attacksLane("pool"))+"; to run it: integration/run-tests -lane attacks\n")
		if said != (want == 0) {
			t.Errorf("%s: what is not in time is said: %t:\n%s", args, said, &c.said)
		}
	}
}

// TestLateSteps: a lane whose time ends while it runs has the rest left, and removes its pool.
func TestLateSteps(t *testing.T) {
	l := besideFirst("chaos", "pool", t.TempDir(), nil)
	l.out, l.errs, l.before, l.after = io.Discard, io.Discard, nil, nil
	l.until = time.Now().Add(50 * time.Millisecond)
	l.steps = []step{{name: "slow", argv: []string{"sleep", "0.1"}}, {name: "rest", argv: []string{"false"}}}
	l.run(t.Context())
	if stepNames(l.late) != "rest" || len(l.took) != 1 || !l.ended || len(l.failures()) > 0 {
		t.Errorf("late: %s, took %v, failures %q", stepNames(l.late), l.took, l.failures())
	}
}

// TestTurns: each lane in turn is the first of them in some hour.
func TestTurns(t *testing.T) {
	const always = 2
	now, firsts, n := time.Date(2026, 11, 1, 12, 30, 0, 0, time.UTC), map[string]bool{}, 0
	for i := range 24 {
		lanes := lanesAt(t, now.Add(time.Duration(i)*time.Hour))
		firsts[lanes[always].name], n = true, len(lanes)-always
	}
	if len(firsts) != n {
		t.Errorf("first of %d lanes in turn: %q", n, slices.Collect(maps.Keys(firsts)))
	}
}

// lanesAt are those of a run that begins then.
func lanesAt(t *testing.T, now time.Time) []*lane {
	t.Helper()
	t.Setenv(inTurn, filepath.Join(t.TempDir(), "turn"))
	if err := os.WriteFile(os.Getenv(inTurn), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	lanes, err := chosen("", nil, now)
	if err != nil {
		t.Fatal(err)
	}
	return lanes
}

// TestTimes: every step's time is said when it ends, and in the list of its lane.
func TestTimes(t *testing.T) {
	c := newCheckout(t, "", `case "$lane$*" in guest*podfailures*) exit 1 ;; esac`)
	if err := c.script.Start(); err != nil {
		t.Fatal(err)
	}
	c.end(t)
	for name, steps := range map[string][]step{"first": firstLane("pool"), "second": secondLane("pool"), "guest": guestLane("pool", "/state-guest")} {
		head := regexp.MustCompile(`(?m)^` + name + ` lane, \d+s in all:\n((?: +\d+s  .*\n)+)`).FindStringSubmatch(c.said.String())
		if head == nil {
			t.Fatalf("the %s lane's times are not in:\n%s", name, &c.said)
		}
		var listed []string
		for line := range strings.Lines(head[1]) {
			_, step, _ := strings.Cut(strings.TrimSpace(line), "  ")
			listed = append(listed, step)
		}
		if diff := cmp.Diff(stepNames(steps), strings.Join(listed, "; ")); diff != "" {
			t.Errorf("%s lane (-want +got):\n%s", name, diff)
		}
		for _, s := range steps {
			result := "passed"
			if name == "guest" && strings.HasPrefix(s.name, "podfailures") {
				result = "exit status 1"
			}
			if !regexp.MustCompile(`(?m)^(second: |guest: )?` + name + ` lane, after \d+s: ` + regexp.QuoteMeta(s.name+": "+result) + `$`).MatchString(c.said.String()) {
				t.Errorf("%s lane: nobody says how long %q took, or how it ended", name, s.name)
			}
		}
	}
}

// TestRuntimeRules: the rules of kubeletrules/ that go by the source of containerd or runc are
// those that run in the guest.
func TestRuntimeRules(t *testing.T) {
	files, err := filepath.Glob("../kubeletrules/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^// Source: (.*)\n(?://.*\n)*func (Test\w+)`).FindAllStringSubmatch(string(text), -1) {
			if regexp.MustCompile(`containerd|runc`).MatchString(m[1]) {
				want = append(want, m[2])
			}
		}
	}
	got := strings.Split(runtimeRules, "|")
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rules of containerd and runc (-want +got):\n%s", diff)
	}
}

// TestPoolOfKilledRun: the second lane removes the pool of a run that was killed before it
// starts its own; if it cannot, it says so and ends.
func TestPoolOfKilledRun(t *testing.T) {
	const left = "integration/.state-second/settings.json"
	c := newCheckout(t, `case "$lane$1" in "second up") [ ! -e "$PODSTARTER_STATE/settings.json" ] ;; esac`, "")
	c.write(t, left, "{}")
	if err := c.script.Start(); err != nil {
		t.Fatal(err)
	}
	if code := c.end(t); code != 0 {
		t.Errorf("exit code %d:\n%s", code, &c.said)
	}
	if calls := c.calls(t, "second"); calls[0] != "pool down" || calls[1] != "pool up" {
		t.Errorf("the second lane begins with %q", calls[:2])
	}

	c = newCheckout(t, `case "$1" in down) exit 1 ;; esac`, "")
	c.write(t, left, "{}")
	if err := c.script.Start(); err != nil {
		t.Fatal(err)
	}
	c.end(t)
	failed := strings.Join(c.failed(), "\n")
	if !strings.HasPrefix(failed, "second lane: pool down: exit status 1\n") || !strings.Contains(failed, "second lane: it ended early; not run: removing ") {
		t.Errorf("failed:\n%s", failed)
	}
	if slices.Contains(c.calls(t, "second"), "pool up") {
		t.Error("a pool was started over the other")
	}
}

// TestInterrupted: after a signal nothing that the run started goes on, the pools of all lanes
// but the first are removed, and the lanes count as failed.
func TestInterrupted(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		t.Run(signal.String(), func(t *testing.T) {
			// Lanes wait in a process that one of their own has started, with this pipe open.
			c := newCheckout(t, `[ "$1" != up ] || [ -z "$lane" ] || mkdir -p "$PODSTARTER_STATE"`, `exec 3>"$0.alive"; sh -c 'echo >&3; sleep 1000; :'`)
			pipe := filepath.Join(c.root, "bin", "go.alive")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := c.script.Start(); err != nil {
				t.Fatal(err)
			}
			alive, err := os.Open(pipe)
			if err != nil {
				t.Fatal(err)
			}
			defer alive.Close()
			lanes := lanesAt(t, time.Now())
			begun := min(atOnce(runtime.NumCPU()), len(lanes))
			if _, err := io.ReadFull(alive, make([]byte, begun)); err != nil {
				t.Fatal(err)
			}
			if err := c.script.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			if code := c.end(t); code != 130 {
				t.Errorf("exit code %d, want 130:\n%s", code, &c.said)
			}
			if n := len(c.failed()); n != begun+len(lanes) {
				t.Errorf("failed: %q; want what each lane did, and what it did not", c.failed())
			}
			if calls := c.calls(t, "second"); calls[len(calls)-1] != "pool down" {
				t.Errorf("second lane: %q", calls)
			}
			// The end of the pipe is that of the last process.
			if _, err := io.ReadAll(alive); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// withoutPool reports whether the tests of a round start all that they need.
func withoutPool(r round) bool {
	return !slices.ContainsFunc(r.steps, func(s step) bool {
		return !slices.ContainsFunc([]string{"./addresses", "./standby", "./statuspage", "./provisionfaults", "./vmuniverse"}, func(pkg string) bool { return slices.Contains(s.argv, pkg) })
	})
}

// TestRounds: a run has one of the rounds, each has its turn, and `-lane rounds` has all.
func TestRounds(t *testing.T) {
	t.Setenv(inTurn, filepath.Join(t.TempDir(), "turn"))
	if err := os.WriteFile(os.Getenv(inTurn), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	all := roundsOf("pool")
	left := map[string]bool{}
	for _, r := range all {
		first := slices.IndexFunc(r.steps, func(s step) bool { return s.name != "pool down" })
		begins := first >= 0 && first < len(r.steps)-1 && strings.HasPrefix(r.steps[first].name, "pool up ")
		if r.name == "" || left[stepNames(r.steps)] || !begins && !withoutPool(r) {
			t.Errorf("round %q: %s", r.name, stepNames(r.steps))
		}
		left[stepNames(r.steps)] = true
	}
	now := time.Date(2026, 11, 1, 12, 30, 0, 0, time.UTC)
	// The hours go by the next prime number.
	for i := range 2 * len(all) {
		got, err := roundAt(now.Add(time.Duration(i)*time.Hour), "pool")
		if err != nil {
			t.Fatal(err)
		}
		delete(left, stepNames(got))
	}
	if len(left) > 0 {
		t.Errorf("never run: %q", slices.Collect(maps.Keys(left)))
	}
	noted, err := os.ReadFile(os.Getenv(inTurn))
	if err != nil || !strings.Contains(string(noted), ": "+all[0].name+"; others") {
		t.Errorf("%v, noted:\n%s", err, noted)
	}

	c := newCheckout(t, "", "", "-lane", "rounds")
	if err := c.script.Start(); err != nil {
		t.Fatal(err)
	}
	if code := c.end(t); code != 0 {
		t.Errorf("exit code %d:\n%s", code, &c.said)
	}
	if n, calls := len(slices.Concat(steps(all)...)), c.calls(t, "rounds"); len(calls) != n {
		t.Errorf("%d calls, want %d: %q", len(calls), n, calls)
	}
}

// TestLanesAtOnce: so many lanes run at the same time, in their order.
func TestLanesAtOnce(t *testing.T) {
	const n = 2
	began, release := make(chan string, 9), make(chan struct{})
	var lanes []*lane
	for _, name := range []string{"a", "b", "c", "d"} {
		lanes = append(lanes, &lane{name: name, out: io.Discard, errs: io.Discard, before: func() []step {
			began <- name
			<-release
			return nil
		}})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runAll(t.Context(), lanes, n)
	}()
	two := []string{<-began, <-began}
	slices.Sort(two)
	if diff := cmp.Diff([]string{"a", "b"}, two); diff != "" {
		t.Errorf("the lanes that begin (-want +got):\n%s", diff)
	}
	select {
	case name := <-began:
		t.Errorf("the lane %s began, too", name)
	default:
	}
	release <- struct{}{}
	if name := <-began; name != "c" {
		t.Errorf("then the lane %s begins, want c", name)
	}
	close(release)
	<-done
	for _, l := range lanes {
		if !l.ended {
			t.Errorf("the lane %s has not come to its end", l.name)
		}
	}
	if got := []int{atOnce(1), atOnce(2), atOnce(16)}; !cmp.Equal(got, []int{2, 2, 16}) {
		t.Errorf("lanes on 1, 2 and 16 processors: %v", got)
	}
}
