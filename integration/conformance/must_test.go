package conformance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/integration/harness"
)

func TestEndingTellsWhatBecameOfTheJobs(t *testing.T) {
	ran := Record{Events: []string{
		"006 Image size of job updated: <n>", "000 Job submitted from host: <address>", "040 Started transferring input files",
		"001 Job executing on host: <address>", "001   SlotName: <slot>",
		"005 Job terminated.", "005   \t(1) Normal termination (return value 7)", "005   \tUsr <duration>",
	}}
	killed := Record{Events: []string{"000 Job submitted", "001 Job executing", "005 Job terminated.", "005   (0) Abnormal termination (signal 9)"}}
	held := Record{Events: []string{"000 Job submitted", "012 Job was held.", "012   Transfer failed", "012   Code 12 Subcode 2", "099 Something new"}}
	many := map[string]string{"out": `-rw-r--r-- ""`, "d": "drwxr-xr-x", "e": "drwxr-xr-x"}
	for i := range few + 1 {
		many[fmt.Sprintf("d/%d", i)] = `-rw-r--r-- ""`
	}
	for name, tc := range map[string]struct {
		o    Observation
		want Ending
	}{
		"many files": {Observation{Jobs: []Record{ran}, Files: many}, Ending{"submitted, executing, exit code 7", "back: d/ with 13 files", "back: e/", `back: out ""`}},
		"what was there": {Observation{Jobs: []Record{ran}, Sent: map[string]string{"in": `"1"`, "changed": `"1"`},
			Files: map[string]string{"in": `-rw-r--r-- "1"`, "changed": `-rw-r--r-- "2"`, "odd\n": "-rw-r--r--"}},
			Ending{"submitted, executing, exit code 7", `back: changed "2"`, `back: "odd\n"`}},
		"one job": {Observation{Jobs: []Record{ran}, Files: map[string]string{
			"out": `-rw-r--r-- "hello\n"`, "dir": "drwxr-xr-x", "link": "Lrwxrwxrwx to out", "big": "-rw-r--r-- 5000 bytes, abc",
			"text": `-rw-r--r-- "` + strings.Repeat("x", short) + `"`, "facts": "-rw-r--r--",
		}}, Ending{"submitted, executing, exit code 7", "back: big", "back: dir/", "back: facts", "back: link -> out", `back: out "hello\n"`, "back: text"}},
		"several jobs": {Observation{Jobs: []Record{ran, ran, ran, killed, held}}, Ending{
			"job 0-2: submitted, executing, exit code 7", "job 3: submitted, executing, signal 9", "job 4: submitted, held 12/2, event 099"}},
	} {
		if diff := cmp.Diff(tc.want, tc.o.Ending()); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

const mustText = `plain
    submitted, executing, exit code 0
    back: out "hello\n"

plain with 23.9+*
    submitted, exit code 0

plain with rootless
    submitted, held 1/1

few
  stock:
    submitted, exit code 0
  ours:
    submitted, held 12/1
  or:
    submitted, executing, held 12/1

either
    submitted, aborted
  or:
    submitted, executing, aborted
`

func TestFilesOfOutcomes(t *testing.T) {
	plain := []Ending{{"submitted, executing, exit code 0", `back: out "hello\n"`}}
	old := []Ending{{"submitted, exit code 0"}}
	rootless := []Ending{{"submitted, held 1/1"}}
	either := []Ending{{"submitted, aborted"}, {"submitted, executing, aborted"}}
	want := []Must{
		{Case: "plain", Stock: plain, Ours: plain},
		{Case: "plain", Pools: "23.9+*", Stock: old, Ours: old},
		{Case: "plain", Pools: "rootless", Stock: rootless, Ours: rootless},
		{Case: "few", Stock: old, Ours: []Ending{{"submitted, held 12/1"}, {"submitted, executing, held 12/1"}}},
		{Case: "either", Stock: either, Ours: either},
	}
	got, err := parseMusts(mustText)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(mustText, WriteMusts(got)); diff != "" {
		t.Errorf("written:\n%s", diff)
	}
	for text, want := range map[string]string{
		"    submitted\n":                   "no case",
		"plain with rotless\n    submitted": "no kind of pool",
		"plain\n":                           "nothing is said",
		"plain\n  theirs:\n    submitted\n": "want stock:",
	} {
		if _, err := parseMusts(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

func TestUnmetAndLearnt(t *testing.T) {
	all, err := parseMusts(mustText)
	if err != nil {
		t.Fatal(err)
	}
	exit, back, held := "submitted, executing, exit code 0", `back: out "hello\n"`, "submitted, held 12/1"
	old := harness.Kind{Versions: harness.Versions{EP: "23.9", AP: "25.14"}, Mode: harness.Shared}
	rootless := Newest
	rootless.Mode = harness.Rootless
	for _, tc := range []struct {
		name        string
		k           harness.Kind
		stock, ours Ending
		want        string
	}{
		{"plain", Newest, Ending{exit, back}, Ending{exit, back}, ""},
		{"plain", Newest, Ending{exit}, Ending{exit}, "the stock side did not"}, // both alike, and wrong
		{"plain", Newest, Ending{exit, back}, Ending{back}, "the ours side did not"},
		{"plain", old, Ending{"submitted, exit code 0"}, Ending{"submitted, exit code 0"}, ""},
		{"plain", rootless, Ending{"submitted, held 1/1"}, Ending{"submitted, held 1/1"}, ""},
		{"plain", rootless, Ending{exit, back}, Ending{exit, back}, "the stock side did not"},
		{"few", Newest, Ending{"submitted, exit code 0"}, Ending{held}, ""},
		{"few", rootless, Ending{held}, Ending{held}, "the stock side did not"},
		{"few", Newest, Ending{held}, Ending{held}, "the stock side did not"},
		{"either", Newest, Ending{"submitted, aborted"}, Ending{"submitted, executing, aborted"}, ""},
		{"new", Newest, Ending{exit}, Ending{exit}, "does not say"},
	} {
		err := Unmet(all, tc.name, tc.k, tc.stock, tc.ours)
		if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s with %s: %v, want %q", tc.name, tc.k, err, tc.want)
		}
		learnt := Learn(all, tc.name, tc.k, tc.stock, tc.ours)
		if err := Unmet(learnt, tc.name, tc.k, tc.stock, tc.ours); err != nil {
			t.Errorf("%s with %s, learnt: %v", tc.name, tc.k, err)
		}
		if again, err := parseMusts(WriteMusts(learnt)); err != nil || !cmp.Equal(again, learnt) {
			t.Errorf("%s with %s, learnt, written and read: %v\n%s", tc.name, tc.k, err, cmp.Diff(learnt, again))
		}
	}
	// What older versions do is an entry of its own; what was said of others stays.
	learnt := Learn(all, "few", old, Ending{held}, Ending{held})
	if err := Unmet(learnt, "few", Newest, Ending{"submitted, exit code 0"}, Ending{held}); err != nil {
		t.Error(err)
	}
}

func TestEachCaseSaysWhatMustBecomeOfIt(t *testing.T) {
	all, err := Musts()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range Cases() {
		for _, v := range []harness.Versions{Newest.Versions, {EP: "23.9", AP: "25.14"}, {EP: "25.14", AP: "23.9"}} {
			k := harness.Kind{Versions: v, Mode: harness.Shared}
			if _, ok := mustOf(all, c.Name, k); !ok && c.For(k) {
				t.Errorf("endings/ does not say what must become of %s with %s", c.Name, k)
			}
		}
	}
}
