package advert

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/provisioner/resources"
	"podstarter/provisioner/template"
)

// load reads a template.
func load(t testing.TB, text string) template.Template {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"a.template.yaml": text, "job.yaml": "kind: Job\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, err := template.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

const plain = "name: plain\nmanifest: job.yaml\nslots: 2\npartitionable: true\nslot: |\n  Site = \"Here\"\nrank: TARGET.JobPrio\nshapes:\n- {name: one, cpus: 2, memory: 2Gi, disk: 1Gi}\n"

func TestAds(t *testing.T) {
	tpl := load(t, plain)
	matched := time.Unix(1_700_000_000, 0)
	ads := Ads(Form{Unit: "site-plain-1", Template: tpl, Shape: tpl.Shapes[0], Rank: Second, Matched: matched, Lifetime: 10 * time.Minute, Wake: time.Minute})
	if len(ads) != 1 {
		t.Fatalf("a partitionable slot has %d ads", len(ads))
	}
	ad := ads[0]
	for name, want := range map[string]string{
		"Name": `"offline@site-plain-1.one"`, "Offline": "true", "MyType": `"Machine"`, "Cpus": "4", "Site": `"Here"`,
		"MyAddress": `"<127.0.0.1:0>"`, "StartdIpAddr": `"<127.0.0.1:0>"`, "ClassAdLifetime": "600", "State": `"Unclaimed"`,
		"Machine": `"site-plain-1.one"`, "MachineLastMatchTime": "1700000000", "MachineResources": `"Cpus Memory Disk GPUs"`,
	} {
		e, ok := ad.Lookup(name)
		if !ok || e.String() != want {
			t.Errorf("%s is %v, want %s", name, e, want)
		}
	}
	if got := Matched(ad); !got.Equal(matched) {
		t.Errorf("the match was at %s", got)
	}
	again, err := classads.ParseOld(ad.FormatOld())
	if err != nil || !again.Equal(ad) {
		t.Errorf("the ad is not what it was when it is read again: %v", err)
	}
}

// In a pod each job takes a payload container, which the negotiator counts down as it does CPUs.
func TestAdsOfContainers(t *testing.T) {
	all := []template.Template{load(t, plain)}
	template.Contain(all)
	ad := Ads(Form{Unit: "site-plain-1", Template: all[0], Shape: all[0].Shapes[0], Lifetime: time.Minute})[0]
	if got := ad.StringOr("MachineResources", ""); got != "Cpus Memory Disk GPUs Payloads" || ad.IntOr("Payloads", 0) != 2 || ad.IntOr("ConsumptionPayloads", 0) != 1 {
		t.Errorf("the ad is\n%s", ad.FormatOld())
	}
}

func TestAdsOfSlots(t *testing.T) {
	tpl := load(t, strings.NewReplacer("partitionable: true\n", "", "rank: TARGET.JobPrio\n", "").Replace(plain))
	ads := Ads(Form{Unit: "site-plain-1", Template: tpl, Shape: tpl.Shapes[0], Lifetime: time.Minute})
	var names []string
	for _, ad := range ads {
		names = append(names, ad.StringOr("Name", ""))
		if ad.Has("MachineResources") || ad.Has("Unhibernate") || ad.Has("MachineLastMatchTime") || ad.IntOr("Cpus", 0) != 2 {
			t.Errorf("the ad of a slot is\n%s", ad.FormatOld())
		}
	}
	if diff := cmp.Diff([]string{"offline@site-plain-1.one", "offline_2@site-plain-1.one"}, names); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	var away []string
	for _, ad := range Invalidations("site-plain-1", "one", 2) {
		away = append(away, ad.StringOr("Name", ""))
		if ad.StringOr("MyAddress", "") != ads[0].StringOr("MyAddress", "-") {
			t.Error("the address differs, so that the collector looks for another ad")
		}
	}
	if diff := cmp.Diff(names, away); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// The negotiator's own expression must put these below each slot that is there,
// whatever they have left, and in their order.
func TestRanks(t *testing.T) {
	preJob, err := classads.ParseExpr("(10000000 * My.Rank) + (1000000 * (RemoteOwner =?= UNDEFINED)) - (100000 * Cpus) - Memory")
	if err != nil {
		t.Fatal(err)
	}
	job, err := classads.ParseOld("JobPrio = 5\nRequestCpus = 1")
	if err != nil {
		t.Fatal(err)
	}
	rank := func(ad *classads.Ad) float32 {
		t.Helper()
		v, ok := preJob.Eval(classads.Env{My: ad, Target: job}).Number()
		if !ok {
			t.Fatalf("the rank is no number:\n%s", ad.FormatOld())
		}
		return float32(v)
	}
	tpl := load(t, plain)
	small, large := tpl.Shapes[0], tpl.Shapes[0]
	large.Pod = resources.Amount{CPUs: 64, Memory: 300_001, Disk: 1}
	of := func(s template.Shape, r Rank) *classads.Ad {
		return Ads(Form{Unit: "u", Template: tpl, Shape: s, Rank: r, Lifetime: time.Minute})[0]
	}
	slot, err := classads.ParseOld("Rank = 0\nCpus = 512\nMemory = 4000000")
	if err != nil {
		t.Fatal(err)
	}
	order := []*classads.Ad{slot, of(small, First), of(large, First), of(small, Second), of(large, Second), of(small, Third)}
	for i := range order[1:] {
		if a, b := rank(order[i]), rank(order[i+1]); a <= b {
			t.Errorf("number %d ranks %v, the next one %v", i, a, b)
		}
	}
	used := of(large, Second)
	whole := rank(used)
	for cpus := range int64(64) {
		used.SetInt("Cpus", cpus)
		used.SetInt("Memory", 128*cpus)
		if got := rank(used); got != whole {
			t.Errorf("with %d CPUs left it ranks %v, and %v before", cpus, got, whole)
		}
	}
	liked := of(large, Second)
	job.SetInt("JobPrio", 50)
	if rank(liked) <= whole {
		t.Error("what the template prefers does not count")
	}
	job.SetString("JobPrio", "high")
	if got := rank(liked); got >= rank(slot) {
		t.Errorf("a rank that is no number ranks %v", got)
	}
}

func TestParseName(t *testing.T) {
	templates := []template.Template{{Name: "plain"}, {Name: "plain-x"}}
	for name, want := range map[string]string{
		"offline@site-plain-1a2b.one":   "site-plain-1a2b 0 one",
		"offline_12@site-plain-x-1.one": "site-plain-x-1 1 one",
		"offline@site-plain-1.a.b":      "", // no shape is called so
		"slot1@site-plain-1.one":        "",
		"offline@site-plain-1":          "",
		"offline@site-plain-.one":       "",
		"offline@site-plain-A.one":      "",
		"offline@other-plain-1.one":     "",
		"offline@site-none-1.one":       "",
		"offline":                       "",
		"":                              "",
		"offline@site-plain-1/../2.one": "",
		"offline@site-plain-1." + strings.Repeat("x", 300): "",
	} {
		unit, of, shape, err := ParseName(name, "site", templates)
		got := ""
		if err == nil {
			got = unit + " " + string(rune('0'+of)) + " " + shape
		}
		if got != want {
			t.Errorf("%q is %q, want %q (%v)", name, got, want, err)
		}
	}
}

const listed = `Name = "offline@site-plain-a.one"
Offline = true

Name = "offline_2@site-plain-a.one"
MachineLastMatchTime = 1700000000

Name = "offline@site-plain-b.two"
MachineLastMatchTime = -5

Name = "slot1@site-plain-b"

Name = }
`

func TestRead(t *testing.T) {
	templates := []template.Template{{Name: "plain"}}
	got, err := Read(strings.NewReader(listed), "site", templates)
	want := []Offer{
		{Unit: "site-plain-a", Shape: "one", Matched: time.Unix(1_700_000_000, 0).UTC(), Ads: 2},
		{Unit: "site-plain-b", Shape: "two", Ads: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if err == nil || strings.Count(err.Error(), "reading an offline ad") != 2 {
		t.Errorf("the error is %v, want two", err)
	}
	if none, err := Read(strings.NewReader(""), "site", templates); err != nil || none == nil || len(none) != 0 {
		t.Errorf("nothing is %v, %v; it must not be nil, which stands for what is not known", none, err)
	}
	many := strings.Repeat("Name = \"offline@site-plain-a.one\"\n\n", maxAds+1)
	if _, err := Read(strings.NewReader(many), "site", templates); !errors.Is(err, ErrTooMuch) {
		t.Errorf("too many ads: %v", err)
	}
}

func TestReadOne(t *testing.T) {
	tpl := load(t, plain)
	text := Ads(Form{Unit: "site-plain-1", Template: tpl, Shape: tpl.Shapes[0], Lifetime: time.Minute, Matched: time.Unix(1_700_000_000, 0)})[0].FormatOld()
	got, err := ReadOne(strings.NewReader(text), "site", []template.Template{tpl})
	want := One{Name: "offline@site-plain-1.one", Offer: Offer{Unit: "site-plain-1", Shape: "one", Matched: time.Unix(1_700_000_000, 0).UTC()}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("-want +got\n%s%v", diff, err)
	}
	for text, want := range map[string]string{
		"":                                  `is ""`,
		"Name = 5":                          `is ""`,
		"Name = ":                           "reading the machine ad",
		strings.Repeat("x", 300<<10):        "more than 262144 bytes",
		`Name = "offline@site-plain-1.two"`: "has no shape two",
		`Name = "slot1@elsewhere"`:          "it must be offline@unit.shape",
	} {
		if _, err := ReadOne(strings.NewReader(text), "site", []template.Template{tpl}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: the error is %v, want one with %q", text, err, want)
		}
	}
}

func TestArguments(t *testing.T) {
	want := []string{"-pool", "cm", "-long", "-attributes", "Name,Offline,MachineLastMatchTime", "-constraint", `Offline =?= true && regexp("^offline(_[0-9]+)?@site-", Name)`}
	if diff := cmp.Diff(want, Arguments("cm", "site")); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(listed)
	tpl := load(f, plain)
	f.Fuzz(func(t *testing.T, text string) {
		offers, _ := Read(strings.NewReader(text), "site", []template.Template{tpl})
		for _, o := range offers {
			if !strings.HasPrefix(o.Unit, "site-plain-") || o.Template != 0 || o.Ads == 0 || len(o.Unit) > 253 {
				t.Errorf("%+v", o)
			}
		}
	})
}

func FuzzReadOne(f *testing.F) {
	tpl := load(f, plain)
	f.Add(Ads(Form{Unit: "site-plain-1", Template: tpl, Shape: tpl.Shapes[0]})[0].FormatOld())
	f.Fuzz(func(t *testing.T, text string) {
		one, err := ReadOne(strings.NewReader(text), "site", []template.Template{tpl})
		if err == nil && (!strings.HasPrefix(one.Unit, "site-plain-") || one.Shape != "one") {
			t.Errorf("%+v", one)
		}
	})
}
