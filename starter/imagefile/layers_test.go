package imagefile_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"podstarter/condor/shadow"
	"podstarter/payload"
	"podstarter/payload/imagetree"
	"podstarter/starter/failure"
	"podstarter/starter/hostprog"
	"podstarter/starter/imagefile"
)

// TestLayered: the layers go to the unpacker; who does not get them, or does not want them, says why.
func TestLayered(t *testing.T) {
	gone := errors.New("the job is gone")
	send := func(text string, err error) func(context.Context, io.Writer) error {
		return func(_ context.Context, w io.Writer) error {
			_, e := io.WriteString(w, text)
			return errors.Join(e, err)
		}
	}
	refused := failure.New(shadow.HoldInvalidDockerImage, 3, errors.New("no permission"))
	endless := func(_ context.Context, w io.Writer) error {
		for {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return err
			}
		}
	}
	for name, tt := range map[string]struct {
		copy  func(context.Context, io.Writer) error
		u     unpacker
		reads bool // all of it
		want  string
		time  time.Duration
		gone  bool
	}{
		"whole":                   {copy: send("layers", nil), u: unpacker{entries: 2}, reads: true, want: "fine"},
		"not to be had":           {copy: send("lay", refused), u: unpacker{cut: true, says: `{"reason":"truncated","message":"cut"}`, status: failedStatus}, reads: true, want: "35/3"},
		"breaks off":              {copy: send("lay", &payload.Verdict{Blame: payload.Site, Message: "unexpected EOF"}), u: unpacker{cut: true, says: `{"reason":"truncated","message":"cut"}`, status: failedStatus}, reads: true, want: "1021/0"},
		"nobody sees its end":     {copy: endless, u: unpacker{entries: 2}, want: "1021/0"},
		"nobody reads to the end": {copy: endless, u: unpacker{cut: true, says: `{"reason":"malformed","message":"a layer"}`, status: failedStatus}, want: "35/24"},
		"takes too long": {copy: func(ctx context.Context, _ io.Writer) error { <-ctx.Done(); return context.Cause(ctx) }, u: unpacker{cut: true, says: `{"reason":"truncated","message":"cut"}`, status: failedStatus},
			reads: true, want: "1021/0", time: 50 * time.Millisecond},
		"is not wanted any more": {copy: func(ctx context.Context, _ io.Writer) error { <-ctx.Done(); return context.Cause(ctx) }, u: unpacker{cut: true}, reads: true, want: gone.Error(), gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := pod{t: t, dir: t.TempDir()}
			limit := time.Minute
			if tt.time > 0 {
				limit = tt.time
			}
			var args []string
			filler := imagefile.Filler{
				Unpacker: "unpacker", Limits: imagetree.Limits{Bytes: 1 << 20, Entries: 100}, Time: limit, Activation: "a",
				Account: imagetree.Account{Name: "slot1", UID: 10001, GID: 10001, Home: "/"}, Log: slog.New(slog.DiscardHandler),
				Convert: func(ctx context.Context, prog hostprog.Program) (hostprog.Outcome, error) {
					args = prog.Args
					if tt.reads {
						if got, err := io.ReadAll(prog.From); err != nil || !strings.HasPrefix("layers", string(got)) {
							t.Errorf("the unpacker reads %q, %v", got, err)
						}
					}
					return tt.u.convert(ctx, prog)
				},
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if tt.gone {
				time.AfterFunc(50*time.Millisecond, func() { cancel(gone) })
			}
			_, err := filler.Fill(ctx, imagefile.Layered{Written: "registry.example.org/x:1", Layers: 7, Copy: tt.copy}, &p)
			if got := end(err); got != tt.want {
				t.Errorf("%s, want %s: %v", got, tt.want, err)
			}
			if at := slices.Index(args, "-layers"); at < 0 || args[at+1] != "7" {
				t.Errorf("the unpacker is started with %q", args)
			}
			if want := (imagetree.Order{Limits: filler.Limits, Layers: true}).Args(); !slices.Equal(p.spec.Args, want) || p.spec.UID != 10001 || p.spec.GID != 10001 {
				t.Errorf("what writes is started with %q for user %d, %d; want %q", p.spec.Args, p.spec.UID, p.spec.GID, want)
			}
			if p.swept != 1 {
				t.Errorf("swept %d times", p.swept)
			}
		})
	}
}
