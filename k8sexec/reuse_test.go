package k8sexec

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"podstarter/k8sexec/imageref"
	"podstarter/k8sexec/options"
	"podstarter/k8sexec/privatedir"
	"podstarter/payload"
)

// reuser binds for an owner, in a pod with one payload container that is used again,
// and returns the boot of that container.
func reuser(w *world) func(image, owner string) (boot string) {
	return func(image, owner string) string {
		w.t.Helper()
		l := w.lease()
		defer release(w.t, l)
		c, err := l.Bind(context.Background(), payload.BindRequest{Activation: "a", Image: image, Owner: owner})
		if err != nil {
			w.t.Fatal(err)
		}
		return c.Client().Hello().Boot
	}
}

func reusing(o *options.Options) { o.Reset, o.Containers = options.ResetImage, []string{"payload"} }

func TestReuse(t *testing.T) {
	const imageA, imageB = "registry.example.com/u/a:1", "registry.example.com/u/b@" + testDigest
	tests := []struct {
		name         string
		first        string                   // image of the first job, if not imageA
		image, owner string                   // of the second job
		between      func(w *world)           // what happens before it
		change       func(o *options.Options) // of the settings
		want         bool                     // whether it gets the same container
		check        func(*testing.T, *world)
	}{
		{name: "same image, same owner", image: imageA, owner: "ann", want: true, check: func(t *testing.T, w *world) {
			if len(w.wrapper("payload").swept) != 1 {
				t.Error("container used again without a sweep")
			}
			if got := w.api.Count("patch") + w.api.Count("get"); got != 2 {
				t.Errorf("%d calls for one container, and one of them is for the first use of a pod", got)
			}
		}},
		{name: "the image spelled otherwise", image: "docker://" + imageA, owner: "ann", want: true},
		{name: "another owner", image: imageA, owner: "bob"},
		{name: "nobody's job", image: imageA, owner: ""},
		{name: "another image", image: imageB, owner: "ann"},
		{name: "always fresh", image: imageA, owner: "ann", change: func(o *options.Options) { o.Reset = options.ResetAlways }},
		{name: "restarted in the meantime", image: imageA, owner: "ann", between: func(w *world) { w.boot(w.api.Snapshot(), "payload") }},
		{name: "a process that would not die", first: imageB, image: imageB, owner: "ann", between: func(w *world) { w.wrapper("payload").busy.Store(true) }},
		{name: "something that could not be cleaned", image: imageA, owner: "ann", between: func(w *world) { w.wrapper("payload").dirty.Store(true) }},
		{name: "tags are never believed", image: imageA, owner: "ann", change: func(o *options.Options) { o.DigestLifetime = 0 }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, func(o *options.Options) {
				reusing(o)
				if test.change != nil {
					test.change(o)
				}
			})
			bind := reuser(w)
			image := imageA
			if test.first != "" {
				image = test.first
			}
			first := bind(image, "ann")
			if test.between != nil {
				test.between(w)
			}
			restarted := w.wrapper("payload")
			second := bind(test.image, test.owner)
			if got := second == first; got != test.want {
				t.Errorf("second job in the container of the first: %v, want %v", got, test.want)
			}
			if !test.want && w.wrapper("payload") == restarted {
				t.Error("no new container was made for the second job")
			}
			if test.check != nil {
				test.check(t, w)
			}
		})
	}
}

// TestReuseFollowsTags: a container that was made from the digest of a tag is used
// again for as long as the digest is believed to be the tag's, not for as long
// again.
func TestReuseFollowsTags(t *testing.T) {
	const image = "registry.example.com/u/a:1"
	w := newWorld(t, reusing)
	bind := reuser(w)
	learn := func(digest digest.Digest, age time.Duration) {
		private, err := privatedir.Open(w.private)
		if err != nil {
			t.Fatal(err)
		}
		defer private.Close()
		img, err := imageref.Parse(image)
		if err != nil {
			t.Fatal(err)
		}
		d := &digests{dir: private, lifetime: time.Hour, now: func() time.Time { return time.Now().Add(-age) }}
		if err := d.learn(img, digest); err != nil {
			t.Fatal(err)
		}
	}
	learn(testDigest, 0)
	first := bind(image, "ann")
	if got := w.spec("payload"); !strings.HasSuffix(got, "@"+testDigest) {
		t.Fatalf("image string %q", got)
	}
	learn(testDigest, 59*time.Minute)
	if bind(image, "ann") != first {
		t.Error("container not used again while the digest holds")
	}
	learn(testDigest, 61*time.Minute)
	second := bind(image, "ann")
	if got := w.spec("payload"); second == first || got != image {
		t.Errorf("after the digest's lifetime: same container %v, image string %q; want the tag looked up", second == first, got)
	}
	learn("sha256:"+digest.Digest(strings.Repeat("b", 64)), 0)
	third := bind(image, "ann")
	if third != second {
		t.Error("a container that has just looked the tag up was not used again")
	}
}
