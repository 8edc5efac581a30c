package flock

import (
	"bufio"
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/provisioner/demand"
)

// ads reads what condor_status printed.
func ads(t testing.TB, name string) []*classads.Ad {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var all []*classads.Ad
	for ad, err := range classads.NewReader(bufio.NewReader(strings.NewReader(string(text))), classads.FormatLong, classads.Parser{}).All() {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, ad)
	}
	return all
}

// recorded is what the collector of HTCondor 25.14.1 had while two schedds of another
// pool flocked: home@, and two@ with FLOCK_BY_DEFAULT = False and an ACCOUNTING_DOMAIN.
func recorded(t testing.TB) (all []Ad, submitters []Submitter) {
	t.Helper()
	for _, ad := range ads(t, "schedds.ads") {
		a, ok := ReadSchedd(ad)
		if !ok {
			t.Fatalf("no schedd: %s", ad)
		}
		all = append(all, a)
	}
	for _, ad := range ads(t, "submitters.ads") {
		s, ok := ReadSubmitter(ad)
		if !ok {
			t.Fatalf("no submitter: %s", ad)
		}
		submitters = append(submitters, s)
	}
	return all, submitters
}

func rows(t testing.TB, name string) []demand.Row {
	t.Helper()
	f, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := demand.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestRecorded(t *testing.T) {
	b := NewBook(recorded(t))
	own, away := b.All()
	if len(own) != 1 || own[0].Name != "ours@" || own[0].Flocks() || own[0].Address != "" {
		t.Errorf("the schedds of this pool are %+v", own)
	}
	var got []string
	for _, s := range away {
		file := "home.ads"
		if s.Name == "two@" {
			file = "two.ads"
		}
		for _, r := range s.Bound(rows(t, file)) {
			got = append(got, fmt.Sprintf("%s: %d of %s, FlockTo %q", s, r.Jobs, r.User, r.FlockTo))
		}
	}
	// two@ asks for four jobs: it does not count the job that names the pool, which is
	// the only one that it would let run, nor those of the accounting group.
	want := []string{
		`home@ of the pool 127.0.0.1:22618: 3 of slotu2@home.invalid, FlockTo ""`,
		`home@ of the pool 127.0.0.1:22618: 3 of slotu1@home.invalid, FlockTo ""`,
		`two@ of the pool 127.0.0.1:22618: 1 of slotu1@acct.invalid, FlockTo "127.0.0.1:21618"`,
		`two@ of the pool 127.0.0.1:22618: 3 of slotu1@acct.invalid, FlockTo "DEFAULT"`,
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if a := away[0].Address; !strings.HasPrefix(a, "<127.0.0.1:8851?") {
		t.Errorf("the address is %q", a)
	}
}

const (
	here  = "" // SubmitterTag in a schedd's own pool
	there = "cm.example.org"
)

func TestBook(t *testing.T) {
	ads := []Ad{{"ap", "<1>", "cm"}, {"guest", "<2>", "cm.guest"}, {"quiet", "<3>", "cm.quiet"}, {"idle", "<4>", "cm.idle"}}
	submitters := []Submitter{
		{"alice@x", "ap", "<1>", here, 0}, {"bob@g", "guest", "<2>", there, 5}, {"bob@g", "idle", "<4>", there, 0},
		{"eve@g", "unknown", "<5>", there, 3},
	}
	b := NewBook(ads, submitters)
	if _, away := NewBook([]Ad{{"guest", "", "cm"}}, []Submitter{{"a@x", "guest", "", there, 1}}).All(); len(away) > 0 {
		t.Errorf("a schedd without an address is asked: %+v", away)
	}
	own, away := b.All()
	names := func(all []Schedd) (text string) {
		for _, s := range all {
			text += s.String() + " " + s.Address + ";"
		}
		return text
	}
	if got := names(own); got != "ap ;" {
		t.Errorf("of this pool: %s", got)
	}
	if got := names(away); got != "guest of the pool cm.guest <2>;" {
		t.Errorf("of other pools: %s", got)
	}
	for name, want := range map[string]bool{"ap": true, "AP": true, "guest": true, "quiet": false, "idle": false, "new": true} {
		if s := b.Named(name, ""); len(s) != 1 || s[0].Served != want {
			t.Errorf("%s is %+v, served: want %t", name, s, want)
		}
	}
	if s := b.Named("unknown", "cm.far"); len(s) != 1 || !s[0].Served || s[0].String() != "unknown of the pool cm.far" || s[0].wants["eve@g"].Idle != 3 {
		t.Errorf("a schedd whose ad only its own pool has: %+v", s)
	}
	if s := b.Named("away", "cm.far"); len(s) != 1 || s[0].Served {
		t.Errorf("a schedd that asks for nothing here: %+v", s)
	}
}

// A schedd of another pool may have the name of one of this pool: each is asked by its
// address, since condor_q -name prints the jobs of both.
func TestSameName(t *testing.T) {
	for name, test := range map[string]struct {
		second string
		want   string
	}{
		"another pool's": {there, "submit@ <1>;submit@ of the pool cm2 <2>;"},
		"started anew":   {here, "submit@ ;"},
	} {
		t.Run(name, func(t *testing.T) {
			own, away := NewBook([]Ad{{"submit@", "<1>", "cm1"}, {"submit@", "<2>", "cm2"}},
				[]Submitter{{"alice@x", "submit@", "<1>", here, 1}, {"alice@y", "submit@", "<2>", test.second, 1}}).All()
			got := ""
			for _, s := range append(own, away...) {
				got += s.String() + " " + s.Address + ";"
			}
			if got != test.want {
				t.Errorf("they are %s, want %s", got, test.want)
			}
		})
	}
}

func row(t testing.TB, user, flockTo string, jobs int, lines ...string) demand.Row {
	t.Helper()
	ad, err := classads.ParseOld(strings.Join(append(lines, "RequestCpus = 1"), "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return demand.Row{Ad: ad, User: user, Owner: user, Jobs: jobs, FlockTo: flockTo}
}

// guest is a schedd that asks for jobs of users.
func guest(wants ...Submitter) Schedd {
	return newSchedd("guest", wants, true).of("cm.guest")
}

func (s Schedd) of(pool string) Schedd {
	s.Pool = pool
	return s
}

func TestBound(t *testing.T) {
	want := func(user string, idle int) Submitter { return Submitter{user, "guest", "", there, idle} }
	for name, test := range map[string]struct {
		schedd Schedd
		rows   []demand.Row
		want   string
	}{
		"all of them":         {guest(want("a@x", 9)), []demand.Row{row(t, "a@x", "", 4)}, "a@x 4"},
		"not more":            {guest(want("a@x", 3)), []demand.Row{row(t, "a@x", "", 4)}, "a@x 3"},
		"each group a part":   {guest(want("a@x", 6)), []demand.Row{row(t, "a@x", "", 100), row(t, "a@x", "", 2)}, "a@x 4, a@x 2"},
		"nothing":             {guest(want("a@x", 0)), []demand.Row{row(t, "a@x", "", 4)}, ""},
		"another user":        {guest(want("a@x", 5)), []demand.Row{row(t, "b@x", "", 4)}, ""},
		"another domain":      {guest(want("a@x", 5), want("a@y", 1)), []demand.Row{row(t, "a@x", "", 4), row(t, "a@y", "", 4), row(t, "a@z", "", 4)}, "a@x 4, a@y 1"},
		"accounting domain":   {guest(want("a@acct", 5)), []demand.Row{row(t, "a@x", "", 4), row(t, "b@x", "", 4)}, "a@acct 4"},
		"the same domain":     {guest(want("a@x", 5)), []demand.Row{row(t, "c@x", "", 4)}, ""},
		"accounting group":    {guest(want("g.a@x", 5)), []demand.Row{row(t, "g.a@x", "", 4), row(t, "a@x", "", 4)}, "g.a@x 4"},
		"this pool named":     {guest(want("a@x", 3)), []demand.Row{row(t, "a@x", "", 4), row(t, "a@x", "other, CM.example.org", 2)}, "a@x 1, a@x 2"},
		"the default pools":   {guest(want("a@x", 3)), []demand.Row{row(t, "a@x", "cm.else", 4), row(t, "a@x", "Default", 2)}, "a@x 1, a@x 2"},
		"the parallel ones":   {guest(want("a@x", 9)), []demand.Row{row(t, "a@x", "", 4, "JobUniverse = 11")}, ""},
		"a name of this pool": {newSchedd("ap", []Submitter{{"a@x", "ap", "", here, 0}}, false), []demand.Row{row(t, "a@x", "", 4), row(t, "b@x", "", 4)}, "a@x 4, b@x 4"},
		"a domain of our own": {newSchedd("ap", []Submitter{{"a@acct", "ap", "", here, 0}}, false), []demand.Row{row(t, "a@x", "", 4)}, "a@acct 4"},
		"without ads":         {Schedd{}, []demand.Row{row(t, "a@x", "", 4)}, "a@x 4"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, r := range test.schedd.Bound(test.rows) {
				got = append(got, fmt.Sprint(r.User, " ", r.Jobs))
			}
			if text := strings.Join(got, ", "); text != test.want {
				t.Errorf("%s, want %s", text, test.want)
			}
		})
	}
}

// Users of other pools are not those of this pool, also in limits, where only the
// ACCOUNTING_DOMAIN tells them apart.
func TestOwners(t *testing.T) {
	job := row(t, "group.a@x", "", 1)
	job.Owner = "a@x"
	for name, test := range map[string]struct {
		schedd Schedd
		want   string
	}{
		"another pool's": {guest(Submitter{"group.a@acct", "guest", "", there, 5}), "group.a@acct of a@acct"},
		"the same":       {guest(Submitter{"group.a@x", "guest", "", there, 5}), "group.a@x of a@x"},
		"this pool's":    {newSchedd("ap", []Submitter{{"group.a@acct", "ap", "", here, 5}}, false), "group.a@acct of a@x"},
	} {
		rows := test.schedd.Bound([]demand.Row{job})
		if len(rows) != 1 || rows[0].User+" of "+rows[0].Owner != test.want {
			t.Errorf("%s: %+v, want %s", name, rows, test.want)
		}
	}
}

// Pods keep the owner's name, and at most 512 bytes of it: one that is cut there would
// count for another user, and the limit of its own would never be reached.
func TestOwnersWithLongNames(t *testing.T) {
	for length, want := range map[int]int{maxName - 2: 1, maxName - 1: 0} {
		domain := strings.Repeat("d", length)
		job := row(t, "a@h", "", 1)
		job.Owner = "a@h"
		s := guest(Submitter{"a@" + domain, "guest", "", there, 5})
		if rows := s.Bound([]demand.Row{job}); len(rows) != want || want > 0 && len(rows[0].Owner) != maxName {
			t.Errorf("a domain of %d bytes: %d rows", length, len(rows))
		}
		job.User, job.Owner = "g@h", strings.Repeat("o", 100)+"@h"
		s = guest(Submitter{"g@" + domain, "guest", "", there, 5})
		if rows := s.Bound([]demand.Row{job}); len(rows) != 0 {
			t.Errorf("an owner with a name of %d bytes counts", len(rows[0].Owner))
		}
	}
}

func TestSays(t *testing.T) {
	b := NewBook([]Ad{{"ap", "<1>", "cm"}, {"guest", "<2>", "cm.guest"}, {"quiet", "<3>", "cm.quiet"}},
		[]Submitter{{"alice@x", "ap", "<1>", here, 1}, {"bob@g", "guest", "<2>", there, 5}})
	for name, test := range map[string]struct{ user, wants, refused string }{
		"ap":      {"alice@x", "", ""},
		"guest":   {"bob@g", "asks for slots for 5 jobs of bob@g", ""},
		"GUEST":   {"eve@g", "", "the schedd guest of the pool cm.guest asks for no slots for eve@g here"},
		"quiet":   {"bob@g", "", "no submitter ad of the schedd quiet"},
		"unknown": {"bob@g", "", ""},
	} {
		wants, refused := b.Named(name, "")[0].Says(test.user)
		if !strings.Contains(wants, test.wants) || (wants == "") != (test.wants == "") || !strings.Contains(refused, test.refused) || (refused == "") != (test.refused == "") {
			t.Errorf("%s: %q, %q", name, wants, refused)
		}
	}
}

// Whatever a schedd of another pool says of its jobs, no more of a submitter count
// than its ad asks for, and all of these if there are as many.
func TestBoundHolds(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var wants []Submitter
		for i := range 1 + rng.IntN(4) {
			wants = append(wants, Submitter{fmt.Sprintf("u%d@%s", i, []string{"x", "y"}[rng.IntN(2)]), "guest", "", there, rng.IntN(50)})
		}
		s := guest(wants...)
		var all []demand.Row
		has := map[string]int{}
		for range rng.IntN(30) {
			r := row(t, fmt.Sprintf("u%d@%s", rng.IntN(5), []string{"x", "y"}[rng.IntN(2)]), []string{"", there, "default", "z"}[rng.IntN(4)], rng.IntN(40))
			all = append(all, r)
			if want, ok := s.submitter(r.User); ok {
				has[want.Name] += r.Jobs
			}
		}
		got := map[string]int{}
		for _, r := range s.Bound(all) {
			if r.Jobs <= 0 {
				t.Fatalf("seed %d: a group has %d jobs", seed, r.Jobs)
			}
			got[r.User] += r.Jobs
		}
		for name, n := range has {
			if most := min(n, s.wants[name].Idle); got[name] != most {
				t.Fatalf("seed %d: %d jobs of %s count, want %d", seed, got[name], name, most)
			}
			delete(got, name)
		}
		if len(got) > 0 {
			t.Fatalf("seed %d: jobs count for which nobody asks: %v", seed, got)
		}
	}
}

func FuzzAds(f *testing.F) {
	for _, name := range []string{"schedds.ads", "submitters.ads"} {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add("Name = \"-a\"\nIdleJobs = -9223372036854775808\nScheddName = \"s\"\n\nName = \"a@b\"\nScheddName = \"s\"\nIdleJobs = 1.5\nSubmitterTag = 7\n")
	f.Fuzz(func(t *testing.T, text string) {
		var all []Ad
		var submitters []Submitter
		for ad, err := range classads.NewReader(bufio.NewReader(strings.NewReader(text)), classads.FormatLong, classads.Parser{MaxText: 1 << 16}).All() {
			if err != nil {
				continue
			}
			if a, ok := ReadSchedd(ad); ok {
				all = append(all, a)
			}
			if s, ok := ReadSubmitter(ad); ok {
				submitters = append(submitters, s)
			}
		}
		own, away := NewBook(all, submitters).All()
		if n := len(own) + len(away); n > len(all) {
			t.Errorf("%d schedds are of %d ads", n, len(all))
		}
		for _, s := range slices.Concat(own, away) {
			if s.Name == "" || s.Name[0] == '-' {
				t.Errorf("the name %q becomes an argument", s.Name)
			}
			for _, r := range s.Bound([]demand.Row{{Ad: &classads.Ad{}, User: cmp.Or(s.domain, "a@b"), Jobs: 3, FlockTo: text}}) {
				if r.Jobs < 1 || r.Jobs > 3 {
					t.Errorf("3 jobs become %d", r.Jobs)
				}
			}
			s.Says(text)
		}
	})
}
