package classads

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type common struct {
	Owner string
}

type slot struct {
	Name  string
	Disks []int64 `classads:"DiskSizes,omitempty"`
}

type job struct {
	common
	Common   common `classads:"Nested"`
	Memory   int64  `classads:"RequestMemory"`
	Cpus     uint8
	Rank     float64
	Hold     bool
	Started  time.Time
	Limit    time.Duration
	Groups   []string
	Slots    []slot
	Note     string `classads:",omitempty"`
	Hidden   string `classads:"-"`
	Optional *int
	Policy   *Expr
	Extra    *Ad
}

func TestMarshal(t *testing.T) {
	policy, err := ParseExpr("TARGET.Memory > 5")
	if err != nil {
		t.Fatal(err)
	}
	extra := NewAd()
	extra.SetInt("x", 1)
	seven := 7
	in := job{
		common: common{"alice"}, Common: common{"bob"}, Memory: 2048, Cpus: 4, Rank: 1.5, Hold: true,
		Started: time.Unix(1700000000, 0), Limit: 90 * time.Second, Groups: []string{"a", "b"},
		Slots: []slot{{Name: "one"}, {"two", []int64{1, 2}}}, Hidden: "h", Optional: &seven, Policy: policy, Extra: extra,
	}
	ad, err := Marshal(&in)
	if err != nil {
		t.Fatal(err)
	}
	want := `Owner = "alice"
Nested = [ Owner = "bob" ]
RequestMemory = 2048
Cpus = 4
Rank = 1.5
Hold = true
Started = 1700000000
Limit = 90
Groups = { "a","b" }
Slots = { [ Name = "one" ],[ Name = "two"; DiskSizes = { 1,2 } ] }
Optional = 7
Policy = TARGET.Memory > 5
Extra = [ x = 1 ]
`
	if diff := cmp.Diff(want, ad.FormatOld()); diff != "" {
		t.Error(diff)
	}
	var out job
	if err := ad.Unmarshal(&out); err != nil {
		t.Fatal(err)
	}
	again, err := Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, again.FormatOld()); diff != "" {
		t.Errorf("after Unmarshal: %s", diff)
	}
}

func TestUnmarshal(t *testing.T) {
	ad, err := ParseNew(`[ RequestMemory = 2 * Base; Base = 512; Cpus = 300; Hold = "yes"; Groups = { "a",1 }; Rank = undefined; Optional = undefined; Limit = relTime(5) ]`)
	if err != nil {
		t.Fatal(err)
	}
	out := job{Rank: 3}
	err = ad.Unmarshal(&out)
	if out.Memory != 1024 || out.Rank != 3 || out.Optional != nil || out.Limit != 5*time.Second {
		t.Errorf("%+v", out)
	}
	for _, want := range []string{"attribute Cpus: 300 does not fit in uint8", "attribute Hold: want boolean, have string", "attribute Groups: element 1: want string, have integer"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	var notStruct int
	for _, v := range []any{nil, out, &notStruct, (*job)(nil)} {
		if ad.Unmarshal(v) == nil {
			t.Errorf("Unmarshal into %T is not an error", v)
		}
	}
	for _, v := range []any{nil, 1, struct{ F func() }{}, struct{ U uint64 }{1 << 63}, struct{ M map[string]int }{}} {
		if _, err := Marshal(v); err == nil {
			t.Errorf("Marshal of %T is not an error", v)
		}
	}
}
