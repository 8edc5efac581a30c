package k8sexec

import (
	"context"
	"errors"
	"slices"
	"testing"

	"podstarter/k8sexec/options"
	"podstarter/k8sexec/privatedir"
	"podstarter/payload"
)

// TestFill: a container that files were written into is not taken for one that only runs the
// image, nor for one with other files, nor for one that has all of them if it does not.
func TestFill(t *testing.T) {
	const image = "registry.example.com/u/carrier:1"
	type job struct {
		owner, files string
		fill, fails  bool
	}
	sif := job{owner: "ann", files: "sha256:1", fill: true}
	for _, test := range []struct {
		name          string
		first, second job
		between       func(w *world)
		reset         string
		kept, filled  bool // the second job: gets the container of the first, has files written
	}{
		{name: "the same files", first: sif, second: sif, kept: true},
		{name: "other files", first: sif, second: job{owner: "ann", files: "sha256:2", fill: true}, filled: true},
		{name: "another owner", first: sif, second: job{owner: "bob", files: "sha256:1", fill: true}, filled: true},
		{name: "only the image", first: sif, second: job{owner: "ann"}},
		{name: "files after the image alone", first: job{owner: "ann"}, second: sif, filled: true},
		{name: "files without an identity", first: job{owner: "ann", fill: true}, second: job{owner: "ann", fill: true}, filled: true},
		{name: "the image after files without an identity", first: job{owner: "ann", fill: true}, second: job{owner: "ann"}},
		{name: "an identity that is no identity", first: job{owner: "ann", fill: true}, second: job{owner: "ann", files: unknownFiles, fill: true}, filled: true},
		{name: "not all files were written", first: job{owner: "ann", files: "sha256:1", fill: true, fails: true}, second: sif, filled: true},
		{name: "the image after a part of the files", first: job{owner: "ann", files: "sha256:1", fill: true, fails: true}, second: job{owner: "ann"}},
		{name: "always fresh", first: sif, second: sif, reset: options.ResetAlways, filled: true},
		{name: "restarted in the meantime", first: sif, second: sif, filled: true, between: func(w *world) { w.boot(w.api.Snapshot(), "payload") }},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, func(o *options.Options) {
				reusing(o)
				if test.reset != "" {
					o.Reset = test.reset
				}
			})
			// run gives the container's boot, and whether files were written into it.
			run := func(j job) (boot string, filled bool) {
				l := w.lease()
				defer release(t, l)
				failed := errors.New("the disk is full")
				req := payload.BindRequest{Activation: "a", Image: image, Owner: j.owner, Files: j.files}
				if j.fill {
					req.Fill = func(_ context.Context, c payload.Wrapper) error {
						filled, boot = true, c.Hello().Boot
						if j.fails {
							return failed
						}
						return nil
					}
				}
				c, err := l.Bind(context.Background(), req)
				switch {
				case j.fails && !errors.Is(err, failed):
					t.Fatalf("error %v, want %v", err, failed)
				case j.fails:
					return boot, filled
				case err != nil:
					t.Fatal(err)
				}
				return c.Client().Hello().Boot, filled
			}
			first, _ := run(test.first)
			if test.between != nil {
				test.between(w)
			}
			second, filled := run(test.second)
			if kept := second == first; kept != test.kept || filled != test.filled {
				t.Errorf("the second job: the container of the first %v, want %v; files written %v, want %v", kept, test.kept, filled, test.filled)
			}
		})
	}
}

// TestRefit: a container that is kept is made to fit the next job, and no other.
func TestRefit(t *testing.T) {
	w := newWorld(t, reusing)
	failed := errors.New("no")
	var called []string
	// What a failure leaves behind is no container for anybody.
	for i, want := range [][]string{{"fill"}, {"refit"}, {"refit"}, {"fill"}} {
		called = nil
		l := w.lease()
		_, err := l.Bind(context.Background(), payload.BindRequest{
			Activation: "a", Image: "registry.example.com/u/carrier:1", Owner: "ann", Files: "sha256:1",
			Fill: func(context.Context, payload.Wrapper) error { called = append(called, "fill"); return nil },
			Refit: func(context.Context, payload.Wrapper) error {
				called = append(called, "refit")
				if i == 2 {
					return failed
				}
				return nil
			},
		})
		if (i == 2) != errors.Is(err, failed) || i != 2 && err != nil {
			t.Errorf("binding %d: %v", i, err)
		}
		if !slices.Equal(called, want) {
			t.Errorf("binding %d: %q, want %q", i, called, want)
		}
		release(t, l)
	}
}

// TestStarterDiesWhileFilling: what a dead starter had written in part is known for it.
func TestStarterDiesWhileFilling(t *testing.T) {
	w := newWorld(t, reusing)
	l := w.lease()
	defer release(t, l)
	_, err := l.Bind(context.Background(), payload.BindRequest{Activation: "a", Image: "registry.example.com/u/carrier:1", Owner: "ann", Files: "sha256:1", Fill: func(context.Context, payload.Wrapper) error {
		private, err := privatedir.Open(w.private)
		if err != nil {
			return err
		}
		defer private.Close()
		known, err := readSlot(private, "payload")
		if err == nil && known.Files != unknownFiles {
			t.Errorf("while files are written, the container is said to have %q", known.Files)
		}
		return err
	}})
	if err != nil {
		t.Fatal(err)
	}
}
