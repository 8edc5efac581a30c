package k8sexec

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/k8sexec/options"
	"podstarter/k8sexec/privatedir"
	"podstarter/payload"
)

// TestPick: which container a job gets.
func TestPick(t *testing.T) {
	const now, long = 0, time.Hour
	fresh := func(image string, ago time.Duration) slot {
		return slot{PodUID: "uid-1", DefaultImage: testDefault, Spec: image, Image: image, Nonce: "n", Fresh: true, Bound: time.Now().Add(-ago)}
	}
	used := func(image, owner string) slot {
		return slot{PodUID: "uid-1", DefaultImage: testDefault, Spec: image, Image: image, Nonce: "n", Owner: owner, Bound: time.Now().Add(-long)}
	}
	for _, tt := range []struct {
		name      string
		known     slot
		announced bool
		reset     string
		want      pick
	}{
		{name: "never used", want: pickAny},
		{name: "used", known: used(spareImage, "ann"), announced: true, want: pickAny},
		{name: "used, and kept", known: used(spareImage, "ann"), reset: options.ResetImage, announced: true, want: pickKept},
		{name: "kept for another", known: used(spareImage, "bob"), reset: options.ResetImage, announced: true, want: pickAny},
		{name: "fresh", known: fresh(spareImage, time.Minute), announced: true, want: pickFresh},
		{name: "fresh with another image", known: fresh(otherImage, time.Minute), announced: true, want: pickOthers},
		{name: "coming", known: fresh(spareImage, now), want: pickComing},
		{name: "coming with another image", known: fresh(otherImage, now), want: pickOthers},
		{name: "overdue", known: fresh(spareImage, time.Minute), want: pickAny},
		{name: "from the future", known: fresh(spareImage, -time.Hour), want: pickAny},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := withSpares(t, 2, 1, func(o *options.Options) { o.Reset = tt.reset })
			private, err := privatedir.Open(w.private)
			if err != nil {
				t.Fatal(err)
			}
			defer private.Close()
			if err := tt.known.write(private, "payload-0"); err != nil {
				t.Fatal(err)
			}
			if tt.announced {
				startWrapper(t, w.control, "payload-0", "n", "boot")
			}
			l := &lease{backend: w.backend, name: "payload-0", private: private}
			if got := l.pick(payload.Wish{Image: spareImage, Owner: "ann"}); got != tt.want {
				t.Errorf("pick %d, want %d", got, tt.want)
			}
		})
	}
}

// TestJobsTakeTheirOwnImage: a job with another image leaves the fresh container to those
// for whom it was made, as long as there is another.
func TestJobsTakeTheirOwnImage(t *testing.T) {
	w := withSpares(t, 3, 1)
	first, _ := w.job(spareImage, "ann")
	w.backend.timing.ahead = time.Hour
	w.backend.Restock(context.Background())
	release(t, first)
	var got []string
	for _, image := range []string{otherImage, spareImage, otherImage} {
		l, _ := w.job(image, "ann")
		got = append(got, l.name)
	}
	if diff := cmp.Diff([]string{"payload-0", "payload-1", "payload-2"}, got); diff != "" {
		t.Errorf("containers (-want +got):\n%s", diff)
	}
}
