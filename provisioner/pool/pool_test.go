package pool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/provisioner/decision"
	"podstarter/provisioner/demand"
	"podstarter/provisioner/resources"
)

// named are schedds of this pool.
func named(names ...string) []demand.Source {
	var all []demand.Source
	for _, n := range names {
		all = append(all, demand.Source{Name: n})
	}
	return all
}

// tools puts programs with the names of HTCondor's tools in PATH. $* is what they
// were called with.
func tools(t *testing.T, scripts map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, script := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

const collector = `case "$*" in
*-schedd*) printf 'Name = "ap1"\n\nName = "ap2"\n\nName = "ap3"\n\nName = "-pool"\n\n' ;;
*-submitters*) for s in ap1 ap2 -pool; do printf 'Name = "alice@x"\nScheddName = "%s"\nSubmitterTag = ""\nIdleJobs = 3\n\n' $s; done ;;
*Accounting*) printf 'Name = "alice@x"\nPriority = 750.5\nWeightedResourcesUsed = 12.0\n\n' ;;
*K8SPodName*) printf 'Name = "slot1@site-plain-1"\nState = "Unclaimed"\nCpus = 3\n\n' ;;
esac
`

func TestPool(t *testing.T) {
	tools(t, map[string]string{
		"condor_status": collector,
		"condor_q": `case "$*" in
*"-name ap1"*) printf 'Requirements = true\nUser = "alice@x"\nJobCount = 3\nJobIds = "1.0 ... 1.2"\n\n' ;;
*) echo "the schedd is away" >&2; exit 1 ;;
esac
`})
	query, err := demand.NewQuery(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &Pool{Collector: "cm", Query: query, Prefix: "site"}
	groups, err := p.Demand(t.Context(), nil)
	if !errors.Is(err, demand.ErrPartial) || !strings.Contains(err.Error(), "the schedd ap2") || !strings.Contains(err.Error(), "the schedd is away") {
		t.Errorf("the error is %v", err)
	}
	if err != nil && strings.Contains(err.Error(), "the schedd -pool") {
		t.Errorf("a name that is an option is asked: %v", err)
	}
	if err != nil && strings.Contains(err.Error(), "the schedd ap3") {
		t.Errorf("a schedd without submitters is asked: %v", err)
	}
	if len(groups) != 1 || groups[0].Idle() != 3 {
		t.Errorf("the groups of the other schedd are %+v", groups)
	}
	users, err := p.Users(t.Context())
	if diff := cmp.Diff(map[string]decision.User{"alice@x": {Priority: 750.5, Usage: 12}}, users); diff != "" || err != nil {
		t.Errorf("%v, -want +got\n%s", err, diff)
	}
	pods, err := p.Slots(t.Context())
	if err != nil || pods["site-plain-1"].Free != (resources.Amount{CPUs: 3, Payloads: 1}) {
		t.Errorf("the pods are %+v, %v", pods, err)
	}
}

// Each way in which the collector can be away is an error, and no empty pool.
func TestCollectorAway(t *testing.T) {
	for name, script := range map[string]string{
		"an error":      "echo 'communication error' >&2; exit 1",
		"what no ad is": "echo 'Name = )('; echo",
	} {
		t.Run(name, func(t *testing.T) {
			tools(t, map[string]string{"condor_status": script})
			p := &Pool{Prefix: "site"}
			if _, err := p.Demand(t.Context(), nil); !errors.Is(err, demand.ErrPartial) {
				t.Error("the demand has no error")
			}
			if _, err := p.Slots(t.Context()); err == nil {
				t.Error("the slots have no error")
			}
			if _, err := p.Users(t.Context()); err == nil {
				t.Error("the users have no error")
			}
		})
	}
}

// An ad that cannot be read costs nobody but itself: whoever may advertise could
// otherwise stop the provisioner.
func TestBadAds(t *testing.T) {
	tools(t, map[string]string{
		"condor_status": `case "$*" in
*K8SPodName*) printf 'Name = "slot1@site-plain-1"\nState = "Unclaimed"\nCpus = 3\n\nName = "slot1@site-plain-2"\nState = "Asleep"\n\n' ;;
*) printf 'Name = )(\n\nName = "ap1"\nPriority = 2.0\nScheddName = "ap1"\n\n' ;;
esac
`,
		"condor_q": `printf 'Requirements = true\nUser = "alice@x"\nJobCount = 3\n\n'`,
	})
	p := &Pool{Prefix: "site"}
	pods, err := p.Slots(t.Context())
	if err == nil || pods["site-plain-1"] == nil || pods["site-plain-2"] == nil {
		t.Errorf("the pods are %+v, %v", pods, err)
	}
	groups, err := p.Demand(t.Context(), nil)
	if err == nil || len(groups) != 1 {
		t.Errorf("the groups are %+v, %v", groups, err)
	}
	users, err := p.Users(t.Context())
	if err == nil || users["ap1"].Priority != 2 {
		t.Errorf("the users are %+v, %v", users, err)
	}
}

// Schedds that do not answer do not keep the others' jobs waiting.
func TestSilentSchedds(t *testing.T) {
	tools(t, map[string]string{"condor_q": `case "$*" in
*"-name ap1 "*) printf 'Requirements = true\nUser = "alice@x"\nJobCount = 3\n\n' ;;
*) exec sleep 1000 ;;
esac
`, "condor_status": ""})
	p := &Pool{Schedds: named("ap1", "ap2", "ap3"), Within: time.Second}
	groups, err := p.Demand(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), "the jobs of the schedd ap2: ") || !strings.Contains(err.Error(), "the jobs of the schedd ap3: ") || len(groups) != 1 {
		t.Errorf("the groups are %+v, %v", groups, err)
	}
}

func TestTooManySchedds(t *testing.T) {
	tools(t, map[string]string{"condor_status": fmt.Sprintf(`i=0; while [ $i -le %d ]; do echo "Name = \"ap$i\""; echo "ScheddName = \"ap$i\""; echo; i=$((i+1)); done`, maxSchedds), "condor_q": ""})
	if _, err := (&Pool{}).Demand(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "name those that count") {
		t.Errorf("the error is %v", err)
	}
}

// A job that cannot be read does not keep pods from being withdrawn.
func TestJobThatCannotBeRead(t *testing.T) {
	tools(t, map[string]string{"condor_status": "", "condor_q": `printf 'JobCount = "many"\n\nUser = "alice@x"\nJobCount = 3\n\n'`})
	groups, err := (&Pool{Schedds: named("ap")}).Demand(t.Context(), nil)
	if err == nil || errors.Is(err, demand.ErrPartial) || len(groups) != 1 {
		t.Errorf("the groups are %+v, %v", groups, err)
	}
}

// The ads of a few slots are asked for by name. One that is too long, or another
// one, is left out.
func TestAds(t *testing.T) {
	tools(t, map[string]string{"condor_status": `case "$*" in
*'-constraint Name == "slot1@a" || Name == "slot1@b" -long') ;;
*) echo "wrong arguments: $*" >&2; exit 1 ;;
esac
printf 'Name = "slot1@a"\nX = 1\n\nName = "slot1@a"\nX = 2\n\nName = "slot1@other"\n\nName = "slot1@b"\nX = "'
head -c 70000 /dev/zero | tr '\0' x
printf '"\n\n'
`})
	ads, err := (&Pool{}).Ads(t.Context(), []string{"slot1@a", `slot1@" || true`, "slot1@b"})
	if err == nil || len(ads) != 1 || ads["slot1@a"].IntOr("X", 0) != 1 {
		t.Errorf("the ads are %v, %v", ads, err)
	}
}

// Attributes to which slots refer are asked for.
func TestDemandByOtherAttributes(t *testing.T) {
	tools(t, map[string]string{"condor_status": "", "condor_q": `case "$*" in
*,ProjectName,*) printf 'Requirements = true\nUser = "alice@x"\nJobCount = 3\n\n' ;;
esac
`})
	query, err := demand.NewQuery(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	groups, err := (&Pool{Schedds: named("ap"), Query: query}).Demand(t.Context(), []string{"ProjectName"})
	if err != nil || len(groups) != 1 {
		t.Errorf("the groups are %+v, %v", groups, err)
	}
}

// A user whose groups are more than are read keeps no other user's jobs from being
// seen, and no pods from being withdrawn.
func TestUserWithTooManyGroups(t *testing.T) {
	for name, groups := range map[string]string{
		"many": fmt.Sprintf(`awk 'BEGIN { for (i = 0; i <= %d; i++) printf "JobCount = 1\nRequirements = TARGET.Memory > %%d\nUser = \"mallet@x\"\n\n", i }'`, demand.MaxGroups),
		// None of them is kept.
		"large": `x=$(head -c 1000000 /dev/zero | tr '\0' x); for i in $(seq 80); do echo 'JobCount = 1'; echo "Requirements = \"$x\""; printf 'User = "mallet@x"\n\n'; done`,
	} {
		t.Run(name, func(t *testing.T) {
			tools(t, map[string]string{"condor_status": "", "condor_q": "case \"$*\" in *'User isnt \"mallet@x\"'*) ;; *) " + groups + ` ;; esac
printf 'Requirements = true\nUser = "alice@x"\nJobCount = 3\n\n'
`})
			query, err := demand.NewQuery(nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := (&Pool{Schedds: named("ap"), Query: query}).Demand(t.Context(), nil)
			if err == nil || !strings.Contains(err.Error(), "more groups of jobs of mallet@x") || errors.Is(err, demand.ErrPartial) {
				t.Errorf("the error is %.500v", err)
			}
			found := false
			for _, g := range got {
				found = found || slices.Contains(g.Owners, "alice@x")
			}
			if !found || len(got) > demand.MaxGroups+1 {
				t.Errorf("%d groups are known, and alice's among them: %t", len(got), found)
			}
		})
	}
}

// If it is too much also without the heaviest users, not all jobs are known.
func TestTooManyGroupsOfAll(t *testing.T) {
	tools(t, map[string]string{"condor_status": "", "condor_q": fmt.Sprintf(`awk 'BEGIN { for (i = 0; i <= %d; i++) printf "JobCount = 1\nUser = \"mallet@x\"\n\n" }'`, demand.MaxGroups)})
	if _, err := (&Pool{Schedds: named("ap")}).Demand(t.Context(), nil); !errors.Is(err, demand.ErrPartial) {
		t.Errorf("the error is %.300v", err)
	}
}

// The same errors are the same text, in whatever order schedds are asked: a log says
// once what stays as it is.
func TestErrorsOfSchedds(t *testing.T) {
	tools(t, map[string]string{"condor_status": "", "condor_q": "echo 'it is away' >&2; exit 1"})
	p := &Pool{Prefix: "site", Schedds: named("ap1", "ap2", "ap3", "ap4", "ap5")}
	first := ""
	for range 5 {
		_, err := p.Demand(t.Context(), nil)
		if err == nil || !errors.Is(err, demand.ErrPartial) {
			t.Fatalf("the error is %v", err)
		}
		if first == "" {
			first = err.Error()
		}
		if diff := cmp.Diff(first, err.Error()); diff != "" {
			t.Fatalf("-before +now\n%s", diff)
		}
	}
}

// Names of submitters are kept, so they are bounded.
func TestLongNamesOfSubmitters(t *testing.T) {
	tools(t, map[string]string{"condor_status": fmt.Sprintf("printf 'Name = \"%s\"\\nPriority = 1.0\\n\\nName = \"alice@x\"\\nPriority = 2.0\\n\\n'\n", strings.Repeat("x", 1025))})
	users, err := (&Pool{Prefix: "site"}).Users(t.Context())
	if err != nil || len(users) != 1 || users["alice@x"].Priority != 2 {
		t.Errorf("the submitters are %+v, %v", users, err)
	}
}
