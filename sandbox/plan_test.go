package sandbox

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A plan that does not keep its items must send the same ones in the same
// groups as one that does.
func TestPlanOfManyFiles(t *testing.T) {
	s := newSandbox(t)
	files := map[string]string{"top": "top", "url/x": "x"}
	for i := range 30 {
		files[fmt.Sprintf("d/%d/f", i)] = "x"
	}
	put(t, s, files)
	for _, job := range []jobFiles{
		{output: []string{"http://a/b", "d", "top"}, hasOutput: true},
		{output: []string{"http://a/b", "d", "url", "top"}, hasOutput: true, outputRemaps: "url/x=s3://x/y;top=gs://x/y"},
		{output: []string{"d/3/f", "d/4", "top"}, hasOutput: true, preserveRelative: true},
		{}, // changed files
	} {
		var lists [2][]string
		var sizes [2]int64
		for i, most := range []int{maxPlanned, 5} {
			p := plan{ctx: context.Background(), log: slog.New(slog.DiscardHandler), view: view{root: s.inside}, job: &job,
				pick: selectFiles(&job, Upload{}, catalog{}), remap: parseRemaps(job.outputRemaps), most: most, excluded: excludedNames(&job, Upload{})}
			must(t, s.payload.Do(p.make))
			if p.whole != (most == maxPlanned || len(p.items) <= 5 && p.count <= 5) {
				t.Errorf("plan of %d items is kept: %v", p.count, p.whole)
			}
			must(t, s.payload.Do(func() error {
				return p.each(func(it item) error {
					lists[i] = append(lists[i], fmt.Sprintf("%d %s <- %s", it.rank(), it.wireName(), it.source))
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
	got := dropDuplicates([]item{
		{source: "a/x"}, {source: "d", kind: directory}, {source: "d", kind: directory}, {source: "y", dest: "d"},
		{source: "b/x"}, {source: "x", url: "s3://b/x"}, {source: "d/y", dest: "d"}, {source: "c/x", dest: "c"},
	})
	var names []string
	for _, it := range got {
		names = append(names, it.source)
	}
	if diff := cmp.Diff([]string{"d", "d", "b/x", "x", "d/y", "c/x"}, names); diff != "" {
		t.Error(diff)
	}
}
