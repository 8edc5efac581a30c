package jobfiles

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/sandbox/sandboxtest"
)

// TestChangedFiles: a job that names no output gets back what it has made or changed, but neither
// its program nor its X.509 proxy, which the shadow renews: the ad has their paths at the access
// point.
func TestChangedFiles(t *testing.T) {
	s := sandboxtest.New(t)
	sandboxtest.Put(t, s, map[string]string{"job.sh": "1", "proxy": "1", "input": "1", "kept": "1", "saved": "1"})
	ad, err := classads.ParseOld(`Cmd = "/home/alice/job.sh"
x509userproxy = "/home/alice/certificates/proxy"
TransferIntermediate = "saved"
`)
	if err != nil {
		t.Fatal(err)
	}
	job := Read(ad)
	var before Catalog
	err = s.Payload().Do(func() error {
		before, err = TakeCatalog(t.Context(), s.Root())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	sandboxtest.Put(t, s, map[string]string{"job.sh": "22", "proxy": "22", "input": "22", "made": "22"})
	for kind, want := range map[Kind][]string{
		Output: {"input", "made", "saved"}, Eviction: {"input", "made"},
	} {
		pick := Select(&job, Wanted{Kind: kind}, before)
		var got []string
		err := s.Payload().Do(func() error {
			return pick.each(context.Background(), s.Root(), slog.New(slog.DiscardHandler),
				func(name string) error { got = append(got, name); return nil },
				func(name string, err error) { t.Errorf("%s is left out: %v", name, err) })
		})
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s (-want +got):\n%s%v", kind, diff, err)
		}
	}
}
