package jobfiles

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/sandbox/sandboxtest"
)

// A plan that does not keep its items must send the same ones in the same
// groups as one that does.
func TestPlanOfManyFiles(t *testing.T) {
	s := sandboxtest.New(t)
	files := map[string]string{"top": "top", "url/x": "x"}
	for i := range 30 {
		files[fmt.Sprintf("d/%d/f", i)] = "x"
	}
	sandboxtest.Put(t, s, files)
	for _, job := range []Files{
		{Output: []string{"http://a/b", "d", "top"}, HasOutput: true},
		{Output: []string{"http://a/b", "d", "url", "top"}, HasOutput: true, OutputRemaps: "url/x=s3://x/y;top=gs://x/y"},
		{Output: []string{"d/3/f", "d/4", "top"}, HasOutput: true, PreserveRelative: true},
		{}, // changed files
	} {
		var lists [2][]string
		var sizes [2]int64
		for i, most := range []int{maxPlanned, 5} {
			p := Plan{Log: slog.New(slog.DiscardHandler), View: View{Root: s.Root()}, Job: &job,
				Pick: Select(&job, Wanted{}, Catalog{}), Remap: ParseRemaps(job.OutputRemaps), most: most, Excluded: Excluded(&job, nil)}
			must(t, s.Payload().Do(func() error { return p.Make(t.Context()) }))
			if p.whole != (most == maxPlanned || len(p.items) <= 5 && p.count <= 5) {
				t.Errorf("plan of %d items is kept: %v", p.count, p.whole)
			}
			must(t, s.Payload().Do(func() error {
				return p.Each(t.Context(), func(it Item) error {
					lists[i] = append(lists[i], fmt.Sprintf("%d %s <- %s", it.rank(), it.WireName(), it.Source))
					return nil
				})
			}))
			sizes[i] = p.size
			if !slices.IsSortedFunc(lists[i], func(a, b string) int { return int(a[0]) - int(b[0]) }) {
				t.Errorf("groups are mixed: %v", lists[i])
			}
			slices.Sort(lists[i])
		}
		if diff := cmp.Diff(lists[0], lists[1]); diff != "" || sizes[0] != sizes[1] {
			t.Errorf("sizes %v\n%s", sizes, diff)
		}
	}
}

func TestDropDuplicates(t *testing.T) {
	got := dropDuplicates([]Item{
		{Source: "a/x"}, {Source: "d", Kind: Directory}, {Source: "d", Kind: Directory}, {Source: "y", Dest: "d"},
		{Source: "b/x"}, {Source: "x", URL: "s3://b/x"}, {Source: "d/y", Dest: "d"}, {Source: "c/x", Dest: "c"},
	})
	var names []string
	for _, it := range got {
		names = append(names, it.Source)
	}
	if diff := cmp.Diff([]string{"d", "d", "b/x", "x", "d/y", "c/x"}, names); diff != "" {
		t.Error(diff)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
