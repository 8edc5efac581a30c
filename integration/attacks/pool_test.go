//go:build pool

package attacks

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"podstarter/integration/harness"
	"podstarter/integration/images/probe/facts"
)

// What every test uses; set once, before the first.
var (
	pool     *harness.Pool
	probe    harness.File
	variants *builder
	targets  map[bool]*target // by whether the pod is the open one
)

// patience is how long anything may take that a test waits for.
const patience = 3 * time.Minute

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if pool, err = harness.Open(ctx); err != nil {
		return 1, err
	}
	if probe, err = pool.Probe(ctx); err != nil {
		return 1, err
	}
	if variants, err = newBuilder(ctx); err != nil {
		return 1, err
	}
	defer os.RemoveAll(variants.dir)
	if err = removeTargets(ctx); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, removeTargets(context.Background())) }()
	if _, err = pool.Kubectl(ctx, strings.NewReader(rights), "apply", "-f", "-"); err != nil {
		return 1, err
	}
	built := make(chan struct{})
	go func() {
		defer close(built)
		variants.all()
	}()
	defer func() { cancel(); <-built }()
	closed, open := (*target)(nil), (*target)(nil)
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		closed, err = makeTarget(gctx, "attacked", nil)
		return err
	})
	g.Go(func() (err error) {
		open, err = makeTarget(gctx, "attacked-open", openPod)
		return err
	})
	if err = g.Wait(); err != nil {
		return 1, err
	}
	targets = map[bool]*target{false: closed, true: open}
	return m.Run(), nil
}

// TestAttacks tries every attack in every setting.
func TestAttacks(t *testing.T) {
	for open, w := range targets {
		t.Run(string(w.side), func(t *testing.T) {
			t.Parallel()
			for _, s := range Settings {
				if s.Open == open {
					t.Run(strings.ReplaceAll(s.Name, " ", "-"), func(t *testing.T) { w.attackIn(t, s) })
				}
			}
		})
	}
}

// attackIn tries every attack in one setting, and compares what came of each
// with what must.
func (w *target) attackIn(t *testing.T, s Setting) {
	w.set(t, s)
	if s.Victim {
		w.keepTreasure(t)
	}
	a := w.attacker(t, s)
	if s.Second {
		var before []string
		for _, p := range w.wrappers(t) {
			before = append(before, containerOf(t, p))
		}
		next := w.submit(t, "next", "attack="+LeftBehind)
		w.mustEnd(t, next)
		a.read(t, next)
		a.got(StopSignal, w.hadToBeKilled(t, before)...)
	}
	if s.Pipe {
		w.sendPipe(t, a)
	}
	if s.Killed {
		w.killStarter(t, s, a)
	}
	for _, attack := range Attacks {
		if !attack.tries(s) {
			continue
		}
		result, ok := a.results[attack.Name]
		if !ok {
			t.Errorf("%s: nobody tried it", attack.Name)
			continue
		}
		switch must := attack.falls(s.off()); {
		case must && len(result.Got) == 0:
			t.Errorf("%s must get through without %q, or the test shows nothing; it was refused:\n  %s", attack.Name, s.off(), strings.Join(result.Refused, "\n  "))
		case !must && len(result.Got) > 0:
			t.Errorf("%s got through: %s", attack.Name, strings.Join(result.Got, ", "))
		case !must && len(result.Refused) == 0 && len(attack.Falls) > 0 && !nothingToRefuse[attack.Name]:
			t.Errorf("%s found nothing to try", attack.Name)
		}
	}
}

// nothingToRefuse are attacks that look at what there is: nobody says no.
var nothingToRefuse = map[string]bool{
	"groups": true, "descriptors": true, "environment": true, PluginPrefix + "environment": true, PluginPrefix + "survivors": true,
	Arguments: true, GoDebug: true, Loot: true, LootBelow: true, Survivors: true, Orphans: true, StopSignal: true, Pipe: true,
}

// attempts are what came of the attacks in one setting.
type attempts struct{ results map[string]facts.Attempt }

func (a *attempts) got(attack string, what ...string) {
	a.results[attack] = facts.Attempt{Attack: attack, Got: what}
}

// read takes the lines of a job's output.
func (a *attempts) read(t *testing.T, job harness.Job) {
	t.Helper()
	f, err := os.Open(filepath.Join(job.Dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var one facts.Attempt
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			t.Fatalf("job %s said %q: %v", job.ID(), lines.Text(), err)
		}
		a.results[one.Attack] = one
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

// password is where the pilot keeps the pool's.
const password = "/etc/condor/passwords.d/POOL"

// attacker runs the job that tries what can be tried from within, and looks at
// what it has brought about.
func (w *target) attacker(t *testing.T, s Setting) *attempts {
	t.Helper()
	var names, plugins []string
	for _, attack := range Attacks {
		switch {
		case !attack.tries(s):
		case attack.Plugin:
			plugins = append(plugins, attack.Name)
		case !attack.Outside || attack.Name == Arguments:
			names = append(names, attack.Name)
		}
	}
	w.inPilot(t, nil, "test", "-s", password) // or there is nothing to loot
	before := w.wrappers(t)
	job := w.submit(t, "attacker",
		"attack="+strings.Join(names, ",")+" leave="+facts.Leftover+" link="+Loot+":"+password+" link="+LootBelow+":"+filepath.Dir(password)+" rename=/run/podstarter:/run/gone detach=2 stopped=2 hydra=1 cat="+tried,
		"transfer_input_files = hostile://h/"+tried,
		`environment = "HOSTILE_ATTACKS=`+strings.Join(plugins, ",")+`"`,
		"transfer_plugins = hostile="+hostilePlugin.Name,
		"transfer_output_files = "+Loot+", "+LootBelow+"/"+filepath.Base(password))
	end := w.mustEnd(t, job)
	wrapper := w.newWrapper(t, before)
	a := &attempts{results: map[string]facts.Attempt{}}
	a.read(t, job)
	a.got(Arguments, w.secrets(t, a.results[Arguments].Got)...)
	a.got(GoDebug, goSettings(t, wrapper)...)
	for attack, arrives := range map[string]string{Loot: Loot, LootBelow: filepath.Base(password)} {
		a.got(attack)
		if loot, err := os.ReadFile(filepath.Join(job.Dir, arrives)); err == nil && len(loot) > 0 {
			a.got(attack, fmt.Sprintf("%d bytes of %s", len(loot), password))
		}
	}
	// A link that leads out is an output file that cannot be sent.
	if arrived := len(a.results[Loot].Got) > 0; arrived == end.Held {
		t.Errorf("the link's target arrived: %v, and yet the job ended so: %s", arrived, end)
	}
	a.got(Survivors, w.survivors(t, lookUp(Survivors).falls(s.off()))...)
	return a
}

// secrets picks the arguments that must not be seen.
func (w *target) secrets(t *testing.T, seen []string) []string {
	t.Helper()
	if !slices.ContainsFunc(seen, func(s string) bool { return strings.Contains(s, "condor_master") }) {
		t.Errorf("the attacker saw no arguments of others: %q", seen)
	}
	var secret []string
	for _, path := range []string{"/etc/podstarter/credentials/pool_password", "/var/run/secrets/kubernetes.io/serviceaccount/token"} {
		text, err := pool.EP(t.Context(), w.side, "cat", path)
		if err != nil || text == "" {
			t.Fatalf("%s: %q, %v", path, text, err)
		}
		secret = append(secret, strings.TrimSpace(text))
	}
	return slices.DeleteFunc(seen, func(args string) bool {
		return !claimID.MatchString(args) && !slices.ContainsFunc(secret, func(s string) bool { return strings.Contains(args, s) })
	})
}

// claimID is what lets its owner command a slot: an address, numbers and a
// secret (HTCondor src/condor_utils/condor_claimid_parser.h).
var claimID = regexp.MustCompile(`<[^>]*>#\d+#\d+#`)

// wrappers are those of the pod.
func (w *target) wrappers(t *testing.T) []harness.Process {
	t.Helper()
	inside := pool.Inside(w.side)
	found, err := harness.Processes(func(p harness.Process) bool {
		return inside(p) && p.Comm == harness.WrapperComm && p.UID == 0
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// newWrapper is the one that was not there before.
func (w *target) newWrapper(t *testing.T, before []harness.Process) harness.Process {
	t.Helper()
	found := slices.DeleteFunc(w.wrappers(t), func(p harness.Process) bool {
		return slices.ContainsFunc(before, func(b harness.Process) bool { return b.PID == p.PID })
	})
	if len(found) != 1 {
		t.Fatalf("new wrappers: %v, want that of the attacker", found)
	}
	return found[0]
}

// goSettings are the variables in the environment of a wrapper that steer Go's
// runtime.
func goSettings(t *testing.T, wrapper harness.Process) []string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", wrapper.PID))
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(strings.Split(string(text), "\x00"), func(v string) bool { return !strings.HasPrefix(v, "GODEBUG=") })
}

// victims are the main processes of neighbours that run.
func (w *target) victims(t *testing.T) []harness.Process {
	t.Helper()
	inside := pool.Inside(w.side)
	found, err := harness.Processes(func(p harness.Process) bool { return inside(p) && slices.Contains(p.Args, facts.Keeper) })
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// keepTreasure runs a neighbour that has something to lose until the test ends.
func (w *target) keepTreasure(t *testing.T) {
	t.Helper()
	w.submit(t, "victim", fmt.Sprintf("file=%s:gold leave=%[1]s ready forever -- %s", facts.Treasure, facts.Keeper))
	w.ready(t, facts.Keeper)
}

// ready waits for a job that has reached its step "ready" and has this argument.
func (w *target) ready(t *testing.T, argument string) harness.Process {
	t.Helper()
	inside := pool.Inside(w.side)
	found, err := harness.WaitSome(soon(t, patience), 1, func(p harness.Process) bool {
		return inside(p) && p.Comm == facts.Ready && slices.Contains(p.Args, argument)
	})
	if err != nil {
		t.Fatal(err)
	}
	return found[0]
}

// onlyOnce is true of a job that has never run.
const onlyOnce = "(NumJobStarts ?: 0) < 1"

// starters are those that run, but for some.
func (w *target) starters(t *testing.T, but []harness.Process) []harness.Process {
	t.Helper()
	starters := pool.Starters(w.side)
	found, err := harness.Processes(func(p harness.Process) bool {
		return starters(p) && !slices.ContainsFunc(but, func(b harness.Process) bool { return b.PID == p.PID })
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// killStarter kills the starter under a job, and looks for what it leaves.
func (w *target) killStarter(t *testing.T, s Setting, a *attempts) {
	t.Helper()
	const argument = "orphan"
	before := w.starters(t, nil)
	// Or the next run would end what is left of this one.
	job := w.submitWhere(t, argument, onlyOnce, "detach=2 forever -- "+argument)
	inside := pool.Inside(w.side)
	ours := func(p harness.Process) bool {
		return inside(p) && (slices.Contains(p.Args, argument) || slices.Contains(p.Args, "linger"))
	}
	if _, err := harness.WaitSome(soon(t, patience), 3, ours); err != nil {
		t.Fatal(err)
	}
	found := w.starters(t, before)
	if len(found) != 1 {
		t.Fatalf("starters of job %s: %v", job.ID(), found)
	}
	if err := harness.Kill(found[0], unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.starterGone(t)
	a.got(Orphans, w.leftOf(t, lookUp(Orphans).falls(s.off()), ours)...)
}
