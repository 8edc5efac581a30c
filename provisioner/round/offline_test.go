package round

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"podstarter/classads"
	"podstarter/provisioner/advert"
	"podstarter/provisioner/decision"
	"podstarter/provisioner/platform"
	"podstarter/provisioner/platform/model"
	"podstarter/provisioner/resources"
	"podstarter/provisioner/supply"
	"podstarter/provisioner/template"
)

// market is a collector and a negotiator in memory. Jobs of one CPU wait.
type market struct {
	now       func() time.Time
	templates []template.Template
	ads       map[string]*classads.Ad
	until     map[string]time.Time
	cycle     time.Time
	err       error
	// before is called before ads are taken back, and before new ones come.
	beforeTake, beforeSend func() error
}

func (m *market) Offers(context.Context) ([]advert.Offer, error) {
	if m.err != nil {
		return nil, m.err
	}
	var text strings.Builder
	for name, ad := range m.ads {
		if m.now().After(m.until[name]) {
			delete(m.ads, name)
			continue
		}
		text.WriteString(ad.FormatOld() + "\n")
	}
	return advert.Read(strings.NewReader(text.String()), "site", m.templates)
}

func (m *market) Cycle(context.Context) (time.Time, error) { return m.cycle, nil }

func (m *market) Advertise(_ context.Context, ads []*classads.Ad) error {
	if m.beforeSend != nil {
		if err := m.beforeSend(); err != nil {
			return err
		}
	}
	for _, ad := range ads {
		name := ad.StringOr("Name", "")
		m.ads[name] = ad
		m.until[name] = m.now().Add(time.Duration(ad.IntOr("ClassAdLifetime", 0)) * time.Second)
	}
	return nil
}

func (m *market) Invalidate(_ context.Context, ads []*classads.Ad) error {
	if m.beforeTake != nil {
		if err := m.beforeTake(); err != nil {
			return err
		}
	}
	for _, ad := range ads {
		delete(m.ads, ad.StringOr("Name", ""))
	}
	return nil
}

// negotiate matches so many jobs of one CPU with the ads, as the negotiator does: the
// best rank first, and each ad as long as it has CPUs.
func (m *market) negotiate(t *testing.T, jobs int) {
	t.Helper()
	type slot struct {
		name string
		rank float64
		left int64
	}
	var slots []slot
	for name, ad := range m.ads {
		rank, ok := ad.Eval("Rank", classads.Env{My: ad}).Number()
		if !ok {
			t.Fatalf("the Rank of %s is no number", name)
		}
		slots = append(slots, slot{name, rank, ad.IntOr("Cpus", 0)})
	}
	slices.SortFunc(slots, func(a, b slot) int {
		if a.rank != b.rank {
			if a.rank > b.rank {
				return -1
			}
			return 1
		}
		return strings.Compare(a.name, b.name)
	})
	for _, s := range slots {
		for ; s.left > 0 && jobs > 0; jobs, s.left = jobs-1, s.left-1 {
			m.ads[s.name].SetInt("MachineLastMatchTime", m.now().Unix())
		}
	}
	m.cycle = m.now()
}

// offlineSite is a site whose pods are made for matches.
func offlineSite(t *testing.T) (*site, *market) {
	t.Helper()
	s := newSite(t)
	s.config.Templates = load(t, "name: plain\nmanifest: job.yaml\npartitionable: true\nshapes:\n- {name: two, cpus: 2, memory: 2Gi, disk: 1Gi}\n")
	m := &market{now: func() time.Time { return s.now }, templates: s.config.Templates, ads: map[string]*classads.Ad{}, until: map[string]time.Time{}}
	s.config.Offline = &Offline{Market: m, Spare: 3, Lifetime: 6 * time.Minute}
	s.restart(s.platform)
	return s, m
}

// minute lets a minute pass in which jobs wait for a place, and does a round.
func (s *site) minute(m *market, jobs int) Report {
	s.t.Helper()
	s.now = s.now.Add(30 * time.Second)
	m.negotiate(s.t, jobs)
	s.now = s.now.Add(30 * time.Second)
	rep := s.run()
	if rep.Err != nil {
		s.t.Fatal(rep.Err)
	}
	return rep
}

func TestOfflineAds(t *testing.T) {
	s, m := offlineSite(t)
	rep := s.run()
	if rep.Err != nil || len(rep.Made) != 0 || len(m.ads) != 3 || rep.Published != 3 {
		t.Fatalf("%d ads are published, want 3: %+v", len(m.ads), rep)
	}
	rep = s.minute(m, 3)
	if len(rep.Made) != 2 {
		t.Fatalf("for three jobs of a CPU %v are made, want two of two CPUs", rep.Made)
	}
	one, two := rep.Made[0], rep.Made[1]
	// The jobs wait for their pods, and match again in each cycle.
	for range 10 {
		if rep := s.minute(m, 3); len(rep.Made) != 0 || len(rep.Withdrawn) != 0 {
			t.Fatalf("made again %v, withdrawn %v", rep.Made, rep.Withdrawn)
		}
	}
	s.restart(s.platform)
	if rep := s.minute(m, 3); len(rep.Made) != 0 || len(rep.Withdrawn) != 0 {
		t.Fatalf("after a restart %v are made and %v withdrawn", rep.Made, rep.Withdrawn)
	}
	s.report(one, resources.Amount{})
	s.minute(m, 1)
	for name := range m.ads {
		if strings.Contains(name, one) {
			t.Errorf("%s is there although its pod has reported", name)
		}
	}
	// The jobs that waited for the other one are gone.
	withdrawn := 0
	for range 10 {
		withdrawn += len(s.minute(m, 0).Withdrawn)
	}
	if n := s.units(); withdrawn != 1 || n[platform.Pending] != 0 || n[platform.Running] != 1 {
		t.Errorf("%d are withdrawn, and there are %v; want %s withdrawn", withdrawn, n, two)
	}
	// It has worked, so that now there may be as many as there are spare ads.
	if rep := s.minute(m, 100); len(rep.Made) != 3 {
		t.Errorf("for 100 jobs %v are made, want one for each spare ad", rep.Made)
	}
	if err := s.round.End(context.Background()); err != nil || len(m.ads) != 0 {
		t.Errorf("at the end there are %d ads, %v", len(m.ads), err)
	}
}

// A job that matches another ad each time before a round has looked gets two pods,
// and no more: their ads come first from then on.
func TestOfflineAdsBeforeARoundHasLooked(t *testing.T) {
	s, m := offlineSite(t)
	s.run()
	m.negotiate(t, 1)
	if rep := s.minute(m, 1); len(rep.Made) != 1 {
		t.Errorf("for one job %v are made", rep.Made)
	}
}

func TestOfflineAdsOfABrokenSite(t *testing.T) {
	s, m := offlineSite(t)
	s.run()
	rep := s.minute(m, 9)
	if len(rep.Made) != 3 {
		t.Fatalf("%v are made", rep.Made)
	}
	for _, u := range rep.Made {
		s.platform.Fail(u)
	}
	s.minute(m, 9)
	if len(m.ads) != 0 {
		t.Errorf("there are %d ads of pods that would fail", len(m.ads))
	}
	s.now = s.now.Add(2 * time.Minute)
	s.run()
	if len(m.ads) != 1 {
		t.Errorf("there are %d ads after the wait, want one to try", len(m.ads))
	}
}

func TestOfflineAdsThatAreRefused(t *testing.T) {
	s, m := offlineSite(t)
	s.run()
	s.platform.Deny(true)
	s.now = s.now.Add(time.Minute)
	m.negotiate(t, 2)
	rep := s.run()
	if !errors.Is(rep.Err, platform.ErrDenied) || len(rep.Made) != 0 {
		t.Errorf("%v are made, %v", rep.Made, rep.Err)
	}
	if rep := s.run(); len(m.ads) != 0 || rep.Err != nil {
		t.Errorf("there are %d ads of pods that are refused, %v", len(m.ads), rep.Err)
	}
}

// What is not known must not be made twice.
func TestOfflineAdsUnknown(t *testing.T) {
	s, m := offlineSite(t)
	s.run()
	m.negotiate(t, 2)
	m.err = errors.New("no answer")
	if rep := s.run(); len(rep.Made) != 0 || rep.Err == nil {
		t.Errorf("%v are made, %v", rep.Made, rep.Err)
	}
	m.err, s.pool.slots, s.pool.slotsErr = nil, nil, errors.New("no answer")
	if rep := s.run(); len(rep.Made) != 0 || rep.Err == nil {
		t.Errorf("%v are made, %v", rep.Made, rep.Err)
	}
	s.pool.slots, s.pool.slotsErr = map[string]*supply.Pod{}, nil
	if rep := s.run(); len(rep.Made) != 1 || rep.Err != nil {
		t.Errorf("%v are made, %v", rep.Made, rep.Err)
	}
}

// A collector that loses everything, and one in which the ads are out of date.
func TestOfflineAdsThatAreLost(t *testing.T) {
	s, m := offlineSite(t)
	s.run()
	if rep := s.minute(m, 2); len(rep.Made) != 1 {
		t.Fatalf("%v are made", rep.Made)
	}
	clear(m.ads)
	if rep := s.minute(m, 2); len(rep.Made) != 0 || len(m.ads) != 3 {
		t.Errorf("%v are made, and there are %d ads", rep.Made, len(m.ads))
	}
	for range 20 {
		if rep := s.minute(m, 2); len(rep.Made) != 0 || len(rep.Withdrawn) != 0 || len(m.ads) != 3 {
			t.Fatalf("%v are made, %v withdrawn, and there are %d ads", rep.Made, rep.Withdrawn, len(m.ads))
		}
	}
	s.now = s.now.Add(time.Hour)
	if rep := s.run(); len(rep.Made) != 0 || len(m.ads) != 3 {
		t.Errorf("%v are made, and there are %d ads after an hour", rep.Made, len(m.ads))
	}
}

// dying is a platform whose provisioner is killed before or after it did something.
type dying struct {
	*model.Model
	left *int
}

func (d dying) step() {
	if *d.left--; *d.left < 0 {
		panic(errKilled)
	}
}

func (d dying) Create(ctx context.Context, s platform.Spec) error {
	d.step()
	defer d.step()
	return d.Model.Create(ctx, s)
}

func (d dying) Withdraw(ctx context.Context, name string) error {
	d.step()
	defer d.step()
	return d.Model.Withdraw(ctx, name)
}

// Wherever it is killed, nothing is made twice, limits hold, and in the end there
// are as many units as before.
func TestOfflineAdsOfOneThatIsKilled(t *testing.T) {
	for step := range 16 {
		t.Run(fmt.Sprint(step), func(t *testing.T) {
			s, m := offlineSite(t)
			s.config.Limits = decision.Limits{Pods: 4}
			left := step
			p := dying{s.platform, &left}
			m.beforeTake, m.beforeSend = func() error { p.step(); return nil }, func() error { p.step(); return nil }
			s.restart(p)
			killed := false
			run := func() (err error) {
				defer func() {
					if r := recover(); r == errKilled { //nolint:errorlint // it is the very one
						killed, left = true, 1000
						s.restart(p)
					} else if r != nil {
						panic(r)
					}
				}()
				return s.run().Err
			}
			for i := range 12 {
				s.now = s.now.Add(time.Minute)
				m.negotiate(t, []int{0, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4}[i])
				if err := run(); err != nil {
					t.Fatal(err)
				}
				if n := s.units(); n[platform.Pending] > 2 {
					t.Fatalf("after round %d there are %v for four jobs of one CPU", i, n)
				}
			}
			if n := s.units(); n[platform.Pending] != 2 || !killed {
				t.Errorf("in the end there are %v, want two of two CPUs (killed %v)", n, killed)
			}
		})
	}
}

// A job that matches the ads and not the slots that come would get one pod after
// another for ever.
func TestOfflineAdsThatLie(t *testing.T) {
	s, m := offlineSite(t)
	s.run()
	total := 0
	for range 120 {
		rep := s.minute(m, 1)
		total += len(rep.Made)
		for _, name := range rep.Made {
			s.report(name, resources.Amount{CPUs: 2})
		}
	}
	if total < inARow || total > inARow+20 {
		t.Errorf("in two hours %d pods are made of which the job takes none, want some %d", total, inARow)
	}
}

// A unit that never reports is ended in this mode, too.
func TestOfflineUnreported(t *testing.T) {
	s, m := offlineSite(t)
	s.config.Templates[0].EndUnreported = 30 * time.Minute
	s.restart(s.platform)
	s.run()
	m.negotiate(t, 1)
	made := s.run().Made
	if len(made) != 1 {
		t.Fatalf("%v are made", made)
	}
	s.platform.Begin(made[0])
	var removed []string
	for range 60 {
		removed = append(removed, s.minute(m, 0).Removed...)
	}
	if !slices.Equal(removed, made) {
		t.Errorf("%v are ended, want %v", removed, made)
	}
}

// While a round does not know what there is, a unit may report and be known no
// longer: such a unit is not ended, in this mode either.
func TestOfflineRoundsThatDoNotKnow(t *testing.T) {
	for name, away := range map[string]func(s *site, m *market, err error){
		"the slots":       func(s *site, _ *market, err error) { s.pool.slotsErr = err },
		"the offline ads": func(_ *site, m *market, err error) { m.err = err },
	} {
		s, m := offlineSite(t)
		s.config.Templates[0].EndUnreported = 30 * time.Minute
		s.restart(s.platform)
		s.run()
		m.negotiate(t, 1)
		made := s.run().Made
		if len(made) != 1 {
			t.Fatalf("%s: %v are made", name, made)
		}
		s.platform.Begin(made[0])
		s.run()
		slots := s.pool.slots
		s.pool.slots = nil
		away(s, m, errors.New("no answer"))
		if rep := s.run(); !rep.Unknown {
			t.Fatalf("%s: the round knows what there is", name)
		}
		s.pool.slots = slots
		away(s, m, nil)
		for range 60 {
			if rep := s.minute(m, 0); len(rep.Removed) != 0 {
				t.Fatalf("%s: %v are ended", name, rep.Removed)
			}
		}
	}
}

// Without the lease, another provisioner may have published its own ads: they are left
// alone, at the end, too.
func TestOfflineAdsWithoutTheLease(t *testing.T) {
	s, m := offlineSite(t)
	until := time.Now().Add(time.Hour)
	s.config.Until = func() time.Time { return until }
	s.restart(s.platform)
	if s.run(); len(m.ads) != 3 {
		t.Fatalf("%d ads are published", len(m.ads))
	}
	until = time.Now()
	if err := s.round.End(t.Context()); err != nil || len(m.ads) != 3 {
		t.Errorf("%d ads are left, %v", len(m.ads), err)
	}
	sent := 0
	m.beforeSend = func() error { sent++; return nil }
	m.beforeTake = m.beforeSend
	s.now = s.now.Add(5 * time.Minute)
	if rep := s.run(); sent != 0 || !errors.Is(rep.Err, errLost) {
		t.Errorf("%d calls change ads, %v", sent, rep.Err)
	}
}
