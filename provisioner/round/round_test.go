package round

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/provisioner/decision"
	"podstarter/provisioner/demand"
	"podstarter/provisioner/platform"
	"podstarter/provisioner/platform/model"
	"podstarter/provisioner/resources"
	"podstarter/provisioner/supply"
	"podstarter/provisioner/template"
)

// pool is an HTCondor pool in memory.
type pool struct {
	groups    []demand.Group
	slots     map[string]*supply.Pod
	demandErr error
	slotsErr  error
	usersErr  error
	ads       map[string]*classads.Ad
	asked     [][]string // slots whose ads were asked for
	others    []string   // attributes by which jobs were grouped last
	tooMuch   string     // an attribute by which there are too many groups
}

func (p *pool) Demand(_ context.Context, others []string) ([]demand.Group, error) {
	p.others = others
	if p.tooMuch != "" && slices.Contains(others, p.tooMuch) {
		return nil, demand.ErrTooMuch
	}
	return p.groups, p.demandErr
}

func (p *pool) Ads(_ context.Context, slots []string) (map[string]*classads.Ad, error) {
	p.asked = append(p.asked, slots)
	found := map[string]*classads.Ad{}
	for _, name := range slots {
		if ad := p.ads[name]; ad != nil {
			found[name] = ad
		}
	}
	return found, nil
}

func (p *pool) Slots(context.Context) (map[string]*supply.Pod, error)   { return p.slots, p.slotsErr }
func (p *pool) Users(context.Context) (map[string]decision.User, error) { return nil, p.usersErr }

// jobs makes a group of idle jobs.
func jobs(t *testing.T, n int, lines string) demand.Group {
	t.Helper()
	ad, err := classads.ParseOld(lines)
	if err != nil {
		t.Fatal(err)
	}
	return demand.Merge([]demand.Answer{{Source: demand.Source{Name: "ap"}, Rows: []demand.Row{{Ad: ad, User: "alice@x", Jobs: n}}}})[0]
}

const plainJob = "Requirements = TARGET.Memory >= RequestMemory\nRequestMemory = 1000\nRequestCpus = 1"

// site is a provisioner with one template, a pool and a platform in memory.
type site struct {
	t        *testing.T
	now      time.Time
	pool     *pool
	platform *model.Model
	config   Config
	round    *Round
}

// load reads one template, whose manifest nobody looks at here.
func load(t *testing.T, text string) []template.Template {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"a.template.yaml": text, "job.yaml": "kind: Job\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	templates, err := template.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return templates
}

func newSite(t *testing.T) *site {
	t.Helper()
	templates := load(t, "name: plain\nmanifest: job.yaml\npartitionable: true\nshapes:\n- {name: one, cpus: 1, memory: 2Gi, disk: 1Gi}\n- {name: four, cpus: 4, memory: 8Gi, disk: 4Gi}\n")
	s := &site{t: t, now: time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC), pool: &pool{slots: map[string]*supply.Pod{}}}
	clock := func() time.Time { return s.now }
	s.platform = model.New(clock)
	made := 0
	s.config = Config{
		Prefix: "site", Templates: templates, ReportWithin: 10 * time.Minute, Now: clock,
		// A machine that is busy makes no job wait for its turn to be matched.
		Spent:  func() time.Time { return time.Time{} },
		Policy: decision.DefaultPolicy,
		Suffix: func() string { made++; return fmt.Sprint(made) },
	}
	s.restart(s.platform)
	return s
}

// restart loses all that the provisioner remembers.
func (s *site) restart(p platform.Platform) { s.round = New(s.config, s.pool, p) }

func (s *site) run() Report { return s.round.Run(context.Background()) }

// units counts those that are there, by phase.
func (s *site) units() map[platform.Phase]int {
	n := map[platform.Phase]int{}
	units, _ := s.platform.List(context.Background())
	for _, u := range units {
		n[u.Phase]++
	}
	return n
}

// report lets a unit run and report to the collector.
func (s *site) report(name string, free resources.Amount) {
	s.platform.Begin(name)
	s.pool.slots[name] = &supply.Pod{Free: free}
}

// prove makes the template one that has worked.
func (s *site) prove() {
	s.t.Helper()
	s.pool.groups = []demand.Group{jobs(s.t, 1, plainJob)}
	rep := s.run()
	if len(rep.Made) != 1 {
		s.t.Fatalf("%v are made: %+v", rep.Made, rep.Output.Groups)
	}
	s.report(rep.Made[0], resources.Amount{})
	s.pool.slots[rep.Made[0]].Claims = []supply.Claim{{}}
	s.pool.groups = nil
	s.run()
}

func TestPodsComeAndGo(t *testing.T) {
	s := newSite(t)
	s.prove()
	s.pool.groups = []demand.Group{jobs(t, 9, plainJob), jobs(t, 100, "Requirements = TARGET.Nowhere")}
	rep := s.run()
	if rep.Err != nil || len(rep.Made) != 9 {
		t.Fatalf("%v are made, want 9: %v", rep.Made, rep.Err)
	}
	units, _ := s.platform.List(context.Background())
	if u := units[1]; u.User != "alice@x" || u.Template != "plain" || u.Group == "" || !strings.HasPrefix(u.Name, "site-plain-") {
		t.Errorf("a unit is %+v", u)
	}
	if rep := s.run(); len(rep.Made) != 0 {
		t.Errorf("the next round makes %v again", rep.Made)
	}
	// The jobs are removed. Units that run stay, the others go once that has lasted.
	s.platform.Begin(rep.Made[0])
	s.pool.groups = nil
	for range 5 {
		s.now = s.now.Add(time.Minute)
		s.run()
	}
	if diff := cmp.Diff(map[platform.Phase]int{platform.Running: 2}, s.units()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// A template whose units fail is tried rarely, also by a provisioner that starts
// anew.
func TestBrokenTemplate(t *testing.T) {
	s := newSite(t)
	s.pool.groups = []demand.Group{jobs(t, 1000, plainJob)}
	made := 0
	for minute := range 120 {
		s.now = s.now.Add(time.Minute)
		if minute%30 == 29 {
			s.restart(s.platform)
		}
		rep := s.run()
		made += len(rep.Made)
		for _, name := range rep.Made {
			s.platform.Begin(name)
			s.platform.Fail(name)
		}
	}
	if made < 4 || made > 20 {
		t.Errorf("%d units are made in two hours", made)
	}
}

// Units that run and never report are not waited for, and not made in numbers.
func TestSilentUnits(t *testing.T) {
	s := newSite(t)
	s.pool.groups = []demand.Group{jobs(t, 1000, plainJob)}
	made := 0
	for range 120 {
		s.now = s.now.Add(time.Minute)
		rep := s.run()
		made += len(rep.Made)
		for _, name := range rep.Made {
			s.platform.Begin(name)
		}
	}
	if made < 4 || made > 20 {
		t.Errorf("%d units are made in two hours", made)
	}
}

func TestRefusal(t *testing.T) {
	s := newSite(t)
	s.prove()
	s.platform.Deny(true)
	s.pool.groups = []demand.Group{jobs(t, 40, plainJob)}
	rep := s.run()
	if !errors.Is(rep.Err, platform.ErrDenied) {
		t.Errorf("the error is %v", rep.Err)
	}
	s.platform.Deny(false)
	if rep := s.run(); len(rep.Made) != 0 {
		t.Errorf("right after a refusal %v are made", rep.Made)
	}
	s.now = s.now.Add(2 * time.Minute)
	if rep := s.run(); rep.Output.Groups[0].New != 40 || rep.Err != nil {
		t.Errorf("after the wait %d jobs get a pod, want all: %v", rep.Output.Groups[0].New, rep.Err)
	}
}

// limitRange refuses large units, and counts what it is asked.
type limitRange struct {
	platform.Platform
	err   error
	asked int
}

func (l *limitRange) Create(ctx context.Context, spec platform.Spec) error {
	l.asked++
	if spec.Size.CPUs > 1 {
		return l.err
	}
	return l.Platform.Create(ctx, spec)
}

// A shape that is always refused does not keep the jobs of others waiting.
func TestRefusedShape(t *testing.T) {
	s := newSite(t)
	s.prove()
	p := &limitRange{Platform: s.platform, err: platform.ErrDenied}
	s.restart(p)
	s.pool.groups = []demand.Group{jobs(t, 5, strings.ReplaceAll(plainJob, "RequestCpus = 1", "RequestCpus = 4"))}
	for i := range 60 {
		if i == 10 {
			s.pool.groups = append(s.pool.groups, jobs(t, 9, plainJob))
		}
		rep := s.run()
		if i == 10 && len(rep.Made) != 9 {
			t.Errorf("%v are made for the others, want 9", rep.Made)
		}
		s.now = s.now.Add(time.Minute)
	}
	if p.asked < 9+4 || p.asked > 9+10 {
		t.Errorf("the platform is asked %d times in an hour", p.asked)
	}
}

// A platform that does not answer is asked once in a round, whatever the number
// of groups.
func TestPlatformAway(t *testing.T) {
	s := newSite(t)
	s.prove()
	p := &limitRange{Platform: s.platform, err: errors.New("no answer")}
	s.restart(p)
	s.pool.groups = nil
	for i := range 50 {
		s.pool.groups = append(s.pool.groups, jobs(t, 5, fmt.Sprintf("%s\nN = %d", strings.ReplaceAll(plainJob, "RequestCpus = 1", "RequestCpus = 4"), i)))
	}
	if rep := s.run(); p.asked != 1 || rep.Err == nil {
		t.Errorf("the platform is asked %d times, %v", p.asked, rep.Err)
	}
	p.asked, p.err = 0, platform.ErrDenied
	if rep := s.run(); p.asked != 1 || rep.Err == nil {
		t.Errorf("the platform that refuses is asked %d times, %v", p.asked, rep.Err)
	}
}

// Without knowing what is there, nothing is made; without all jobs, nothing is
// withdrawn.
func TestSourcesThatFail(t *testing.T) {
	s := newSite(t)
	s.prove()
	s.pool.groups = []demand.Group{jobs(t, 8, plainJob)}
	s.pool.slots, s.pool.slotsErr = nil, errors.New("the collector is away")
	if rep := s.run(); len(rep.Made) != 0 || !errors.Is(rep.Err, s.pool.slotsErr) {
		t.Errorf("%v are made, %v", rep.Made, rep.Err)
	}
	s.pool.slots = map[string]*supply.Pod{}
	s.pool.slotsErr, s.pool.usersErr = errors.New("one slot cannot be read"), errors.New("the negotiator is away")
	if rep := s.run(); len(rep.Made) != 8 {
		t.Errorf("without priorities %v are made, want 8", rep.Made)
	}
	s.pool.groups, s.pool.demandErr = nil, fmt.Errorf("a schedd is away: %w", demand.ErrPartial)
	for range 10 {
		s.now = s.now.Add(time.Minute)
		if rep := s.run(); len(rep.Withdrawn) != 0 {
			t.Fatalf("%v are withdrawn", rep.Withdrawn)
		}
	}
	s.pool.demandErr = errors.New("a group cannot be read")
	for range 10 {
		s.now = s.now.Add(time.Minute)
		s.run()
	}
	if n := s.units()[platform.Pending]; n != 0 {
		t.Errorf("%d units still wait for jobs that are gone", n)
	}
}

func TestDryRun(t *testing.T) {
	s := newSite(t)
	s.config.DryRun = true
	s.restart(s.platform)
	s.pool.groups = []demand.Group{jobs(t, 2, plainJob)}
	rep := s.run()
	if len(rep.Output.Create) == 0 || len(rep.Made) != 0 || len(s.units()) != 0 {
		t.Errorf("%d creations are decided, %v are made", len(rep.Output.Create), rep.Made)
	}
}

// A unit that cannot begin closes its template for a while, and no others are heaped
// up beside it: neither where no node has room, nor where the pod of a Job is refused.
func TestUnitsThatCannotBegin(t *testing.T) {
	for name, become := range map[string]func(*model.Model, string){"no room": (*model.Model).Stick, "refused": (*model.Model).Refuse} {
		s := newSite(t)
		s.prove()
		s.pool.groups = []demand.Group{jobs(t, 50, plainJob)}
		s.config.Limits.PerRound = 5
		s.restart(s.platform)
		made := 0
		for range 60 {
			rep := s.run()
			made += len(rep.Made)
			for _, unit := range rep.Made {
				become(s.platform, unit)
			}
			s.now = s.now.Add(time.Minute)
		}
		if made < 6 || made > 25 {
			t.Errorf("%s: in an hour %d units are made", name, made)
		}
	}
}

// A unit whose slots left the collector takes no jobs, and its template is not
// blamed.
func TestUnitThatLeavesThePool(t *testing.T) {
	s := newSite(t)
	s.prove()
	s.pool.slots = map[string]*supply.Pod{}
	s.pool.groups = []demand.Group{jobs(t, 1, plainJob)}
	rep := s.run()
	if len(rep.Made) != 1 || rep.Input.Templates[0].AllowanceWhy != "" {
		t.Errorf("%v are made, the template: %q", rep.Made, rep.Input.Templates[0].AllowanceWhy)
	}
}

// killer ends the provisioner at a random call: before it, or after it when the
// answer is lost.
type killer struct {
	platform.Platform
	calls int
	after bool
}

var errKilled = errors.New("killed")

func (k *killer) Create(ctx context.Context, spec platform.Spec) error {
	k.calls--
	switch {
	case k.calls < 0:
		return errKilled
	case k.calls == 0 && k.after:
		if err := k.Platform.Create(ctx, spec); err != nil {
			return err
		}
		return errKilled
	}
	return k.Platform.Create(ctx, spec)
}

// A provisioner that is killed at any point and starts anew makes no pod too many
// and forgets none.
func TestKilledAnywhere(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for try := range 300 {
		s := newSite(t)
		s.prove()
		s.config.Limits.PerRound = 1 + r.IntN(10)
		wanted := 1 + r.IntN(60)
		s.pool.groups = []demand.Group{jobs(t, wanted, plainJob)}
		for range 200 {
			s.now = s.now.Add(time.Minute)
			s.restart(&killer{Platform: s.platform, calls: r.IntN(6), after: r.IntN(2) == 0})
			s.run()
			room := int64(0)
			units, _ := s.platform.List(context.Background())
			for _, u := range units[1:] {
				room += u.Size.CPUs
			}
			if room > int64(wanted) {
				t.Fatalf("try %d: there is room for %d jobs, and %d wait", try, room, wanted)
			}
			if room == int64(wanted) {
				break
			}
		}
		units, _ := s.platform.List(context.Background())
		room := int64(0)
		for _, u := range units[1:] {
			room += u.Size.CPUs
		}
		if room != int64(wanted) {
			t.Fatalf("try %d: there is room for %d jobs, and %d wait", try, room, wanted)
		}
	}
}

// Whoever may advertise can say that a pod has room; it has no more than its
// shape.
func TestSlotThatLies(t *testing.T) {
	s := newSite(t)
	s.prove()
	units, _ := s.platform.List(context.Background())
	s.pool.slots[units[0].Name] = &supply.Pod{Free: resources.Amount{CPUs: 1 << 40, Memory: 1 << 40, Disk: 1 << 40}}
	s.pool.groups = []demand.Group{jobs(t, 9, plainJob)}
	if rep := s.run(); len(rep.Made) != 8 {
		t.Errorf("%v are made for 9 jobs, want 8", rep.Made)
	}
}

// After a restart of the collector, pods with room are unknown until their startds
// come with the next update. Nobody gets another pod meanwhile.
func TestCollectorThatStartsAnew(t *testing.T) {
	s := newSite(t)
	s.prove()
	units, _ := s.platform.List(context.Background())
	known := map[string]*supply.Pod{units[0].Name: {Free: units[0].Size}}
	s.pool.slots = known
	s.pool.groups = []demand.Group{jobs(t, 1, plainJob)}
	s.run()
	s.pool.slots = map[string]*supply.Pod{}
	for range 5 {
		s.now = s.now.Add(time.Minute)
		if rep := s.run(); len(rep.Made) != 0 {
			t.Fatalf("%v are made", rep.Made)
		}
	}
	// One whose startd does not come back takes no job.
	s.now = s.now.Add(2 * time.Minute)
	if rep := s.run(); len(rep.Made) != 1 {
		t.Errorf("%v are made, want one", rep.Made)
	}
}

// slow is a platform whose calls take until something ends them.
type slow struct {
	platform.Platform
	asked int
	// before is called before each call.
	before func(n int)
	hang   bool
}

func (s *slow) Create(ctx context.Context, spec platform.Spec) error {
	s.asked++
	if s.before != nil {
		s.before(s.asked)
	}
	if s.hang {
		<-ctx.Done()
	}
	if ctx.Err() != nil {
		return fmt.Errorf("making %s: %w", spec.Name, ctx.Err())
	}
	return s.Platform.Create(ctx, spec)
}

// A provisioner that is told to end finishes what it is making, and makes nothing
// more.
func TestEndWhileMaking(t *testing.T) {
	s := newSite(t)
	s.prove()
	ctx, cancel := context.WithCancel(t.Context())
	p := &slow{Platform: s.platform, before: func(n int) {
		if n == 3 {
			cancel()
		}
	}}
	s.restart(p)
	s.pool.groups = []demand.Group{jobs(t, 9, plainJob)}
	rep := s.round.Run(ctx)
	if !errors.Is(rep.Err, errEnds) || p.asked != 3 || len(rep.Made) != 3 || s.units()[platform.Pending] != 3 {
		t.Errorf("%d calls, %v are made, %v", p.asked, rep.Made, rep.Err)
	}
}

// A call that gets no answer ends.
func TestCallThatHangs(t *testing.T) {
	s := newSite(t)
	s.prove()
	p := &slow{Platform: s.platform, hang: true}
	s.config.CallTime = 50 * time.Millisecond
	s.restart(p)
	s.pool.groups = []demand.Group{jobs(t, 9, plainJob)}
	if rep := s.run(); !errors.Is(rep.Err, context.DeadlineExceeded) || p.asked != 1 {
		t.Errorf("%d calls, %v", p.asked, rep.Err)
	}
}

// Once another provisioner may begin, nothing is made, and what is being made is
// given up.
func TestLeaseLost(t *testing.T) {
	s := newSite(t)
	s.prove()
	var until time.Time
	s.config.Until = func() time.Time { return until }
	p := &slow{Platform: s.platform}
	s.restart(p)
	s.pool.groups = []demand.Group{jobs(t, 9, plainJob)}
	if rep := s.run(); !errors.Is(rep.Err, errLost) || p.asked != 0 {
		t.Errorf("%d calls without a lease, %v", p.asked, rep.Err)
	}
	p.hang, until = true, time.Now().Add(100*time.Millisecond)
	if rep := s.run(); !errors.Is(rep.Err, context.DeadlineExceeded) || p.asked != 1 || time.Now().Before(until) {
		t.Errorf("%d calls while the lease ends, %v", p.asked, rep.Err)
	}
	p.asked, p.hang, until = 0, false, time.Now().Add(time.Hour)
	p.before = func(n int) {
		if n == 4 {
			until = time.Now()
		}
	}
	if rep := s.run(); !errors.Is(rep.Err, errLost) || p.asked != 4 || len(rep.Made) != 4 {
		t.Errorf("%d calls until the lease is lost, %v are made, %v", p.asked, rep.Made, rep.Err)
	}
}

// A job whose image the pods would refuse gets none, and the reason is said.
func TestImageThatPodsRefuse(t *testing.T) {
	s := newSite(t)
	s.config.Templates = load(t, "name: plain\nmanifest: job.yaml\nimages: {allow: [docker.io/library/*]}\nshapes:\n- {name: one, cpus: 1, memory: 2Gi, disk: 1Gi}\n")
	s.restart(s.platform)
	image := func(n int, name string) demand.Group {
		return jobs(t, n, plainJob+"\nWantDocker = true\nDockerImage = \""+name+"\"")
	}
	s.pool.groups = []demand.Group{image(2, "debian"), image(1, "quay.io/x/y")}
	rep := s.run()
	if len(rep.Made) != 2 {
		t.Errorf("%v are made, want 2", rep.Made)
	}
	for i, g := range rep.Groups {
		if why := rep.Matches[i][0].Why; (g.Idle() == 1) != strings.Contains(why, "is not allowed here") {
			t.Errorf("%d jobs: %q", g.Idle(), why)
		}
	}
}

// What units say of their template is written in labels that others may change: it
// is kept of no template that is not configured.
func TestTemplatesThatAreGone(t *testing.T) {
	s := newSite(t)
	for i := range 100 {
		spec := platform.Spec{Name: fmt.Sprint("x", i), Template: fmt.Sprint("gone", i), Shape: "one"}
		if err := s.platform.Create(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		s.report(spec.Name, resources.Amount{})
		if i%2 == 0 {
			delete(s.pool.slots, spec.Name)
			s.platform.Fail(spec.Name)
		}
	}
	rep := s.run()
	if n := len(s.round.health.templates); n != 1 || len(rep.Failed) != 50 {
		t.Errorf("the back-off of %d templates is kept, and %d failures are reported; want 1 and 50", n, len(rep.Failed))
	}
}

// A unit that runs and never reports is ended after a while; one that has reported
// once is not, whatever the collector knows later, nor one of which that is not
// certain.
func TestUnreportedIsEnded(t *testing.T) {
	s := newSite(t)
	s.config.Templates = slices.Clone(s.config.Templates)
	s.config.Templates[0].EndUnreported = 30 * time.Minute
	s.restart(s.platform)
	s.prove()
	worker := s.units()
	if worker[platform.Running] != 1 {
		t.Fatalf("%v", worker)
	}
	s.pool.groups = []demand.Group{jobs(t, 2, plainJob)}
	silent := s.run().Made
	if len(silent) == 0 {
		t.Fatal("nothing is made")
	}
	for _, name := range silent {
		s.platform.Begin(name)
	}
	s.pool.groups = nil
	var removed []string
	minutes := func(n int) {
		for range n {
			s.now = s.now.Add(time.Minute)
			removed = append(removed, s.run().Removed...)
		}
	}
	// The collector starts anew, and the one that works is unknown to it for long.
	s.pool.slots = map[string]*supply.Pod{}
	minutes(29)
	if len(removed) != 0 {
		t.Errorf("%v are ended within 29 minutes", removed)
	}
	minutes(60)
	slices.Sort(removed)
	slices.Sort(silent)
	if diff := cmp.Diff(silent, removed); diff != "" || s.units()[platform.Running] != 1 {
		t.Errorf("ended: -want +got\n%s", diff)
	}

	for name, meanwhile := range map[string]func(s *site){
		"a provisioner that starts anew": func(s *site) { s.restart(s.platform) },
		"a round without the collector": func(s *site) {
			s.pool.slots, s.pool.slotsErr = nil, errors.New("away")
			s.run()
			s.pool.slots, s.pool.slotsErr = map[string]*supply.Pod{}, nil
		},
		"a template that never ends its pods": func(s *site) { s.config.Templates[0].EndUnreported = 0; s.round.config.Templates[0].EndUnreported = 0 },
	} {
		s = newSite(t)
		s.config.Templates[0].EndUnreported = 30 * time.Minute
		s.restart(s.platform)
		s.pool.groups = []demand.Group{jobs(t, 2, plainJob)}
		made := s.run().Made
		if len(made) == 0 {
			t.Fatalf("%s: nothing is made", name)
		}
		s.platform.Begin(made[0])
		s.run()
		meanwhile(s)
		s.pool.groups, removed = nil, nil
		minutes(120)
		if len(removed) != 0 {
			t.Errorf("%s: %v are ended", name, removed)
		}
	}
}

// ending is a platform whose units take their time to end, or that fails to end and to
// withdraw them.
type ending struct {
	*model.Model
	err   error
	calls int
}

func (e *ending) End(_ context.Context, name string) error {
	if e.calls++; e.err != nil {
		return e.err
	}
	e.Leave(name)
	return nil
}

func (e *ending) Withdraw(ctx context.Context, name string) error {
	if e.err != nil {
		return e.err
	}
	return e.Model.Withdraw(ctx, name)
}

// A unit that is ended and takes its time is ended once; and where ending fails, a
// round goes on after a few calls, each of which may have taken its whole time.
func TestUnreportedIsEndedOnce(t *testing.T) {
	s := newSite(t)
	s.config.Templates[0].EndUnreported = 30 * time.Minute
	e := &ending{Model: s.platform, err: errTrouble}
	s.restart(e)
	s.prove()
	s.pool.groups = []demand.Group{jobs(t, 10, plainJob)}
	silent := s.run().Made
	for _, name := range silent {
		s.platform.Begin(name)
	}
	s.pool.groups = nil
	for range missedOften {
		s.run()
		s.now = s.now.Add(5 * time.Minute)
	}
	s.now = s.now.Add(time.Hour)
	if rep := s.run(); len(rep.Removed) != 0 || e.calls == 0 || e.calls > maxFailures || len(silent) <= maxFailures {
		t.Errorf("of %d units %d are ended by %d calls that fail", len(silent), len(rep.Removed), e.calls)
	}
	e.err = nil
	var removed []string
	for range 5 {
		s.now = s.now.Add(time.Minute)
		removed = append(removed, s.run().Removed...)
	}
	slices.Sort(removed)
	slices.Sort(silent)
	if diff := cmp.Diff(silent, removed); diff != "" {
		t.Errorf("ended: -want +got\n%s", diff)
	}
}

// What cannot be read of the collector's answer may be the slot of a unit that has
// jobs.
func TestUnreportedWhereSlotsCannotBeRead(t *testing.T) {
	s := newSite(t)
	s.config.Templates[0].EndUnreported = 30 * time.Minute
	s.restart(s.platform)
	s.pool.groups = []demand.Group{jobs(t, 2, plainJob)}
	for _, name := range s.run().Made {
		s.platform.Begin(name)
	}
	s.pool.groups, s.pool.slotsErr = nil, errors.New("reading a slot")
	for range 60 {
		s.now = s.now.Add(time.Minute)
		if rep := s.run(); len(rep.Removed) != 0 || rep.Unknown {
			t.Fatalf("%v are ended", rep.Removed)
		}
	}
}
