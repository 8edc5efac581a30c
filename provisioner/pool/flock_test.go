package pool

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/provisioner/demand"
	"podstarter/provisioner/flock"
)

// guests are two schedds of other pools, of which one asks for jobs here.
const guestPools = `case "$*" in
*-schedd*) printf 'Name = "ap"\nMyAddress = "<1>"\n\nName = "guest"\nMyAddress = "<2>"\nCollectorHost = "cm.guest"\n\nName = "quiet"\nMyAddress = "<3>"\n\n' ;;
*-submitters*) printf 'Name = "alice@x"\nScheddName = "ap"\nMyAddress = "<1>"\nSubmitterTag = ""\n\n'
	printf 'Name = "alice@g"\nScheddName = "guest"\nMyAddress = "<2>"\nSubmitterTag = "cm"\nIdleJobs = 2\n\n'
	printf 'Name = "bob@far"\nScheddName = "far"\nMyAddress = "<4>"\nSubmitterTag = "cm"\nIdleJobs = 1\n\n' ;;
esac
`

// parts lists users and schedds of groups.
func parts(groups []demand.Group) []string {
	var all []string
	for _, g := range groups {
		for _, p := range g.Parts {
			all = append(all, fmt.Sprint(p.Idle, " of ", p.User))
		}
		for _, s := range g.Schedds {
			all = append(all, fmt.Sprint(s.Idle, " at ", s.Schedd))
		}
	}
	slices.Sort(all)
	return all
}

// Jobs that flock here count as far as their schedd asks for them. Users of one name
// in two pools are two users.
func TestFlocking(t *testing.T) {
	tools(t, map[string]string{"condor_status": guestPools, "condor_q": `case "$*" in
*"-pool cm -name ap "*"-limit 20000 "*) printf 'Requirements = true\nUser = "alice@x"\nJobCount = 3\n\n' ;;
*"-pool cm -addr <2> "*"-limit 2000 "*) printf 'Requirements = true\nUser = "alice@g"\nJobCount = 7\n\nRequirements = true\nUser = "eve@g"\nJobCount = 5\n\n' ;;
*"-pool cm.far -name far "*) printf 'Requirements = true\nUser = "bob@far"\nJobCount = 7\n\n' ;;
*) echo "asked: $*" >&2; exit 1 ;;
esac
`})
	query, err := demand.NewQuery(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		pool *Pool
		want []string
	}{
		"all":      {&Pool{Flocking: 5}, []string{"2 at guest of the pool cm.guest", "2 of alice@g", "3 at ap", "3 of alice@x"}},
		"disabled": {&Pool{}, []string{"3 at ap", "3 of alice@x"}},
		"named":    {&Pool{Schedds: []demand.Source{{Name: "guest"}, {Name: "quiet"}}}, []string{"2 at guest of the pool cm.guest", "2 of alice@g"}},
		"known to its own pool": {&Pool{Schedds: []demand.Source{{Name: "far", Pool: "cm.far"}, {Name: "quiet", Pool: "cm.far"}}},
			[]string{"1 at far of the pool cm.far", "1 of bob@far"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := test.pool
			p.Collector, p.Query = "cm", query
			groups, err := p.Demand(t.Context(), nil)
			if err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(test.want, parts(groups)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// A schedd of another pool that hangs, is away or answers without end costs its own
// jobs: what is known of the others is not partial, and they do not wait for long.
func TestGuestsThatFail(t *testing.T) {
	defer func(old allowance) { guests = old }(guests)
	guests.each = time.Second
	for name, script := range map[string]string{
		"hangs":    "exec sleep 1000",
		"is away":  "echo away >&2; exit 1",
		"too many": fmt.Sprintf(`awk 'BEGIN { for (i = 0; i <= %d; i++) printf "JobCount = 1\nUser = \"mallet@g\"\nX = %%d\n\n", i }'`, guests.one.Groups),
		"too long": `x=$(head -c 60000 /dev/zero | tr '\0' x); while echo "X = \"$x\""; do printf 'JobCount = 1\nUser = "mallet@g"\n\n'; done`,
		"no ads":   "echo 'JobCount = )('",
	} {
		t.Run(name, func(t *testing.T) {
			tools(t, map[string]string{"condor_status": guestPools, "condor_q": `case "$*" in
*"-name ap "*) printf 'Requirements = true\nUser = "alice@x"\nJobCount = 3\n\n' ;;
*) ` + script + " ;;\nesac\n"})
			began := time.Now()
			groups, err := (&Pool{Flocking: 5}).Demand(t.Context(), nil)
			if err == nil || errors.Is(err, demand.ErrPartial) || errors.Is(err, demand.ErrTooMuch) || !strings.Contains(err.Error(), "the schedd guest of the pool cm.guest: ") {
				t.Errorf("the error is %.300v", err)
			}
			if diff := cmp.Diff([]string{"3 at ap", "3 of alice@x"}, parts(groups)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("it takes %s", took)
			}
		})
	}
}

// One that did not answer is left alone for a while, so that it does not make each
// round longer, and then asked again.
func TestSilentGuest(t *testing.T) {
	defer func(old allowance) { guests = old }(guests)
	guests.each, guests.rest = 300*time.Millisecond, time.Hour
	mark := t.TempDir() + "/awake"
	tools(t, map[string]string{"condor_status": guestPools, "condor_q": `case "$*" in
*"-name ap "*) ;;
*) [ -e ` + mark + ` ] || exec sleep 1000; printf 'Requirements = true\nUser = "alice@g"\nJobCount = 1\n\n' ;;
esac
`})
	p := &Pool{Flocking: 5}
	if _, err := p.Demand(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "it has not ended after") {
		t.Errorf("the error is %v", err)
	}
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if groups, err := p.Demand(t.Context(), nil); err != nil || len(groups) > 0 {
		t.Errorf("it was asked again: %v, %v", parts(groups), err)
	}
	for key, v := range p.silent.all {
		v.until = time.Now().Add(-time.Second)
		p.silent.all[key] = v
	}
	for range 2 {
		if groups, err := p.Demand(t.Context(), nil); err != nil || len(groups) != 1 {
			t.Errorf("after the rest: %v, %v", parts(groups), err)
		}
	}
	if len(p.silent.all) > 0 {
		t.Errorf("it answers, and is remembered as silent: %v", p.silent.all)
	}
	now := time.Now()
	var k silences
	var s flock.Schedd
	for n := 1; n < 2*mostRests; n++ {
		k.note(s, true, time.Minute, now)
		rest := time.Duration(min(n, mostRests)) * time.Minute
		if !k.rests(s, now.Add(rest-time.Second)) || k.rests(s, now.Add(rest)) {
			t.Errorf("after %d times it does not rest for %s: %v", n, rest, k.all)
		}
		now = now.Add(rest)
	}
}

// Many that answer much do not fill the memory, and none of them takes the part of
// another one.
func TestGuestsThatAnswerMuch(t *testing.T) {
	defer func(old allowance) { guests = old }(guests)
	guests.groups = 300
	tools(t, map[string]string{"condor_status": `for i in 1 2 3 4 5 6; do printf 'Name = "g%s"\nScheddName = "g%s"\nMyAddress = "<%s>"\nSubmitterTag = "cm"\nIdleJobs = 1\n\n' $i $i $i
printf 'Name = "u@x"\nScheddName = "g%s"\nMyAddress = "<%s>"\nSubmitterTag = "cm"\nIdleJobs = 1000\n\n' $i $i; done`,
		"condor_q": `case "$*" in *"-addr <6> "*"-limit 50 "*) n=3 ;; *) n=1000 ;; esac; awk -v n=$n 'BEGIN { for (i = 0; i < n; i++) printf "JobCount = 1\nUser = \"u@x\"\nX = %d\n\n", i }'`})
	groups, err := (&Pool{Flocking: 9}).Demand(t.Context(), nil)
	if err == nil || errors.Is(err, demand.ErrPartial) || strings.Count(err.Error(), "there are more groups than are read (50)") != 5 {
		t.Errorf("the error is %v", err)
	}
	idle := map[string]int{}
	for _, g := range groups {
		for _, s := range g.Schedds {
			idle[s.Schedd.Name] += s.Idle
		}
	}
	if diff := cmp.Diff(map[string]int{"g1": 50, "g2": 50, "g3": 50, "g4": 50, "g5": 50, "g6": 3}, idle); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	for n, want := range map[int]demand.Bounds{0: {Groups: 300, Bytes: 4 << 20}, 16: {Groups: 50, Bytes: 2 << 20}, 1000: {Groups: 50, Bytes: maxText}} {
		if got := guests.among(n).one; got != want {
			t.Errorf("of %d each may say %+v, want %+v", n, got, want)
		}
	}
}

// Of more schedds of other pools than may be asked, those that are asked stay the
// same.
func TestManyGuests(t *testing.T) {
	tools(t, map[string]string{"condor_status": `for i in 1 2 3 4 5 6; do printf 'Name = "g%s"\nScheddName = "g%s"\nMyAddress = "<%s>"\nSubmitterTag = "cm"\nIdleJobs = 1\n\n' $i $i $i; done`,
		"condor_q": `while [ "$1" != -addr ]; do shift; done; printf 'Requirements = true\nUser = "g%s"\nJobCount = 1\n\n' "$(echo "$2" | tr -d '<>')"`})
	first := []string(nil)
	for range 4 {
		groups, err := (&Pool{Flocking: 2}).Demand(t.Context(), nil)
		if err == nil || errors.Is(err, demand.ErrPartial) || !strings.Contains(err.Error(), "6 schedds of other pools flock here, and 2 of them are asked") {
			t.Errorf("the error is %v", err)
		}
		got := parts(groups)
		if first == nil {
			first = got
		}
		if len(got) != 4 || !slices.Equal(got, first) {
			t.Errorf("the demand is %q, and was %q", got, first)
		}
	}
}

// If it is not known of which pool schedds are, nobody is asked: jobs that flock must
// not be taken for those of this pool.
func TestAdsAway(t *testing.T) {
	for _, query := range []string{"-submitters", "-schedd"} {
		tools(t, map[string]string{"condor_status": `case "$*" in *` + query + `*) echo away >&2; exit 1 ;; esac
printf 'Name = "guest"\nMyAddress = "<2>"\nScheddName = "guest"\nSubmitterTag = "cm"\n\n'`,
			"condor_q": `printf 'Requirements = true\nUser = "alice@g"\nJobCount = 7\n\n'`})
		for _, p := range []*Pool{{Flocking: 5}, {Schedds: named("guest")}} {
			groups, err := p.Demand(t.Context(), nil)
			if !errors.Is(err, demand.ErrPartial) || len(groups) > 0 {
				t.Errorf("%s: %v, %v", query, groups, err)
			}
		}
	}
}

// A job says of which pool its schedd is, and what that asks for.
func TestJobsThatFlock(t *testing.T) {
	tools(t, map[string]string{"condor_status": guestPools, "condor_q": `case "$*" in
*"-addr <2> "*) printf 'Requirements = true\nUser = "alice@g"\nJobStatus = 1\nJobCount = 1\n\n' ;;
*"-name quiet "*) printf 'Requirements = true\nUser = "alice@g"\nJobStatus = 1\nJobCount = 1\n\n' ;;
esac
`})
	query, err := demand.NewQuery(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &Pool{Query: query, Flocking: 5}
	for text, want := range map[string]string{
		"1.0":       "guest of the pool cm.guest: it flocks here, and asks for slots for 2 jobs of alice@g",
		"guest#1.0": "guest of the pool cm.guest: it flocks here, and asks for slots for 2 jobs of alice@g",
		"quiet#1.0": "quiet: the collector has no submitter ad of the schedd quiet",
	} {
		id, err := demand.ParseJobID(text)
		if err != nil {
			t.Fatal(err)
		}
		jobs, err := p.Job(t.Context(), id, nil)
		if err != nil || len(jobs) != 1 {
			t.Errorf("%s: %d jobs, %v", text, len(jobs), err)
			continue
		}
		if got := fmt.Sprint(jobs[0].Schedd, ": ", jobs[0].Flocks, jobs[0].Refused); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", text, got)
		}
	}
}
