package k8sexec

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/payload"
)

// TestHow: who binds hears once how the container came to run the image, and nothing if it
// did not.
func TestHow(t *testing.T) {
	const image = "registry.example.com/u/a:1"
	w := newWorld(t, reusing)
	var heard []payload.Binding
	bind := func(image, owner string) {
		t.Helper()
		l := w.lease()
		defer release(t, l)
		_, err := l.Bind(context.Background(), payload.BindRequest{Activation: "a", Image: image, Owner: owner, Bound: func(b payload.Binding) { heard = append(heard, b) }})
		if err != nil {
			t.Fatal(err)
		}
	}
	bind(image, "ann")
	bind(image, "ann")
	bind(image, "bob")
	bind("", "bob") // the image that the pod was created with
	bind("registry.example.com/u/b:1", "bob")
	bind(image, "ann")
	of := func(how payload.How) payload.Binding { return payload.Binding{Container: "payload", How: how} }
	want := []payload.Binding{of(payload.Pulled), of(payload.Kept), of(payload.Made), of(payload.Made), of(payload.Pulled), of(payload.Made)}
	if diff := cmp.Diff(want, heard); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	l := w.lease()
	defer release(t, l)
	if _, err := l.Bind(context.Background(), payload.BindRequest{Activation: "a", Image: "no image", Bound: func(b payload.Binding) { t.Errorf("%+v of no image", b) }}); err == nil {
		t.Error("an image without a name was bound")
	}
}

// TestHowWithPuller: the wait for a puller is said with the binding, and only then.
func TestHowWithPuller(t *testing.T) {
	w, _ := withPuller(t, pulled())
	var heard []payload.Binding
	for range 2 {
		l := w.lease()
		if _, err := l.Bind(context.Background(), payload.BindRequest{Activation: "a", Image: userImage, Bound: func(b payload.Binding) { heard = append(heard, b) }}); err != nil {
			t.Fatal(err)
		}
		release(t, l)
	}
	if len(heard) != 2 || heard[0].Fetched <= 0 || heard[0].Fetched > time.Minute || heard[1].Fetched != 0 || heard[0].How != payload.Made {
		t.Errorf("%+v", heard)
	}
}
