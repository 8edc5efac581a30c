//go:build pool

package attacks

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"podstarter/integration/harness"
	"podstarter/integration/images/probe/facts"
)

var (
	guestFlag    = flag.Bool("guest", false, "only the settings for a guest")
	variantsFlag = flag.String("variants", "", "a directory in which ./attacks/variants has built the programs for these")
)

// What every test uses; set once, before the first.
var (
	pool     *harness.Pool
	probe    harness.File
	variants *builder
	targets  map[string]*target // by the pod's name
)

// patience is how long a test waits for anything.
const patience = 3 * time.Minute

func TestMain(m *testing.M) {
	flag.Parse()
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
	dir := *variantsFlag
	if dir == "" {
		if dir, err = os.MkdirTemp("", "attacks-"); err != nil {
			return 1, err
		}
		defer os.RemoveAll(dir)
	}
	variants = newBuilder(ctx, pool.Root, dir)
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
		// One after the other: the tests start with the first.
		for _, need := range needed(pool.Mode, *guestFlag) {
			_, _ = variants.get(need.program, need.off) // who needs it is told of the failure
		}
	}()
	defer func() { cancel(); <-built }()
	if targets, err = makeTargets(ctx); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// makeTargets makes the pods that the settings need.
func makeTargets(ctx context.Context) (map[string]*target, error) {
	pods := podsOf(pool.Mode, chosenSettings(pool.Mode, *guestFlag))
	made := make([]*target, len(pods))
	g, ctx := errgroup.WithContext(ctx)
	for i, p := range pods {
		g.Go(func() (err error) {
			made[i], err = makeTarget(ctx, p)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	all := map[string]*target{}
	for _, w := range made {
		all[w.pod.Name] = w
	}
	return all, nil
}

// TestAttacks tries every attack in every setting of the mode.
func TestAttacks(t *testing.T) {
	settings := chosenSettings(pool.Mode, *guestFlag)
	for _, p := range podsOf(pool.Mode, settings) {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			for _, s := range settings {
				if s.Pod == p.Name {
					t.Run(strings.ReplaceAll(s.Name, " ", "-"), func(t *testing.T) { targets[p.Name].attackIn(t, s) })
				}
			}
		})
	}
}

// attackIn tries every attack in one setting, and compares the result of each with the
// table.
func (w *target) attackIn(t *testing.T, s Setting) {
	w.set(t, s)
	if w.pod.Spares > 0 {
		// When it has ended, it is known what its image is: containers can be made ahead with it.
		w.mustEnd(t, w.submit(t, "before", "sleep=5s"))
	}
	if s.Victim && len(w.slots()) > 1 {
		w.keepTreasure(t)
	}
	w.awaitSpares(t)
	a := w.attacker(t, s)
	if s.Second {
		told := w.ends(t)
		next := w.submit(t, "next", "attack="+LeftBehind+","+CutOff, "docker_network_type = none")
		w.mustEnd(t, next)
		a.read(t, next)
		a.got(StopSignal, w.hadToBeKilled(t, told)...)
	}
	if s.Pipe {
		w.sendPipe(t, a)
	}
	if s.Killed {
		w.killStarter(t, s, a)
	}
	if slices.Contains(s.Also, Behind) {
		w.behind(t, a)
	}
	if slices.Contains(s.Also, ForkBomb) {
		w.bomb(t, a)
	}
	off := s.off(pool.Mode)
	for _, attack := range Attacks {
		if !attack.tries(s, pool.Mode) {
			continue
		}
		result, ok := a.results[attack.Name]
		if !ok {
			t.Errorf("%s: the job did not try it", attack.Name)
			continue
		}
		switch must := attack.falls(pool.Mode, off); {
		case must && len(result.Got) == 0:
			t.Errorf("%s must get through without %q, or the test shows nothing; it was refused:\n  %s", attack.Name, off, strings.Join(result.Refused, "\n  "))
		case !must && len(result.Got) > 0:
			t.Errorf("%s got through: %s", attack.Name, strings.Join(result.Got, ", "))
		case !must && len(result.Refused) == 0 && !nothingToRefuse[attack.Name] && !unseen(attack, off):
			t.Errorf("%s found nothing to try", attack.Name)
		}
	}
}

// nothingToRefuse are attacks that only look at what there is: nothing refuses them.
var nothingToRefuse = map[string]bool{
	HookLoot: true, HookRuns: true, SitePlugin: true, ForkBomb: true, Behind: true,
	"groups": true, "descriptors": true, "environment": true, PluginPrefix + "environment": true, PluginSurvivors: true, PluginFlood: true,
	Arguments: true, GoDebug: true, Loot: true, LootBelow: true, Survivors: true, Orphans: true, StopSignal: true, Pipe: true,
}

// unseen reports whether an attack has no target because a defence hides it: the job
// sees no process of another container, or there is no neighbour.
func unseen(attack Attack, off []string) bool {
	for _, name := range []string{Namespace, OneContainer} {
		if in(pool.Mode, defence(name).In) && !slices.Contains(off, name) &&
			slices.ContainsFunc(attack.waysIn(pool.Mode), func(w Way) bool { return slices.Contains(w.Without, name) }) {
			return true
		}
	}
	return false
}

// attempts are the results of the attacks in one setting.
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

// password is where the pilot keeps the pool's password.
func password() string {
	if pool.Mode == harness.Rootless {
		return "/var/lib/condor/etc/passwords.d/POOL"
	}
	return "/etc/condor/passwords.d/POOL"
}

// namesOf are the attacks of a setting that the job, or its plugin, reports on.
func namesOf(s Setting, plugin bool) string {
	var names []string
	for _, attack := range Attacks {
		if attack.tries(s, pool.Mode) && attack.Plugin == plugin && (!attack.Outside || attack.Name == Arguments) {
			names = append(names, attack.Name)
		}
	}
	return strings.Join(names, ",")
}

// attacker runs the job that tries the attacks from within, and looks at their effects.
func (w *target) attacker(t *testing.T, s Setting) *attempts {
	t.Helper()
	off := s.off(pool.Mode)
	if text, err := os.ReadFile(w.visible(t, password())); err != nil || len(text) == 0 {
		t.Fatalf("there is nothing to steal: %v", err)
	}
	a := &attempts{results: map[string]facts.Attempt{}}
	steps := meet + "attack=" + namesOf(s, false) + siteSteps() + " leave=" + facts.Leftover + " link=" + Loot + ":" + password() + " link=" + LootBelow + ":" + filepath.Dir(password()) +
		" rename=/run/podstarter:/run/gone detach=2 stopped=2 hydra=1"
	commands := []string{"transfer_output_files = done, " + Loot + ", " + LootBelow + "/" + filepath.Base(password())}
	brings := pool.Mode != harness.Rootless || slices.Contains(off, JobPlugins)
	if brings {
		steps += " cat=" + facts.Tried
		commands = append(commands, pluginCommands()...)
	} else {
		w.refusedPlugin(t, a)
	}
	starters := w.starters(t, nil)
	job := w.submitWhere(t, "attacker", anyPlugins, steps, append(commands, siteCommands(s)...)...)
	main := w.met(t, job)
	if brings {
		w.lookAtPlugin(t, a, w.starters(t, starters))
	}
	wrapper := w.wrapperOf(t, main)
	leave := w.visit(t, job)
	w.meetHook(t)
	w.goOn(t, main, w.starterSockets(t))
	end := w.mustEnd(t, job)
	leave()
	w.lookAtHooks(t, a, off, job)
	a.read(t, job)
	a.got(Arguments, w.secrets(t, a.results[Arguments].Got, unseen(lookUp(Arguments), off))...)
	a.got(GoDebug, goSettings(t, wrapper)...)
	for attack, arrives := range map[string]string{Loot: Loot, LootBelow: filepath.Base(password())} {
		a.got(attack)
		if loot, err := os.ReadFile(filepath.Join(job.Dir, arrives)); err == nil && len(loot) > 0 {
			a.got(attack, fmt.Sprintf("%d bytes of %s", len(loot), password()))
		}
	}
	// A link that leads out of the sandbox is an output file that cannot be sent.
	if arrived := len(a.results[Loot].Got) > 0; arrived == end.Held {
		t.Errorf("the link's target arrived: %v, and yet the job ended so: %s", arrived, end)
	}
	if lookUp(Survivors).tries(s, pool.Mode) {
		a.got(Survivors, w.survivors(t, lookUp(Survivors).falls(pool.Mode, off))...)
	}
	return a
}

// victims are the main processes of neighbours that run.
func (w *target) victims(t *testing.T) []harness.Process {
	t.Helper()
	inside := pool.InPod(w.side)
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
	inside := pool.InPod(w.side)
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

// starters are those that run, except some.
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
	inside := pool.InPod(w.side)
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
	a.got(Orphans, w.leftOf(t, lookUp(Orphans).falls(pool.Mode, s.off(pool.Mode)), ours)...)
}
