package activation

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/condor/image"
	"podstarter/payload"
	"podstarter/starter/payloadrun"
)

// container says what its image runs by itself, or why nobody knows.
type container struct {
	payload.Container
	command payload.ImageCommand
	err     error
	asked   int
}

func (c *container) Command(context.Context) (payload.ImageCommand, error) {
	c.asked++
	return c.command, c.err
}

// TestLearnCommand: the image is asked for its command if that has a part in what runs.
func TestLearnCommand(t *testing.T) {
	own := payload.ImageCommand{Entrypoint: []string{"/tool"}}
	unknown := errors.New("nobody knows")
	for name, tt := range map[string]struct {
		ad       string
		ask      bool
		own      *payloadrun.OwnCommand // known before
		noImage  bool
		unpacked bool
		err      error
		asked    int
		want     *payloadrun.OwnCommand
	}{
		"docker":                   {ad: `WantDocker = true`, ask: true, asked: 1, want: &payloadrun.OwnCommand{ImageCommand: own}},
		"container":                {ad: `WantContainer = true`, ask: true, asked: 1, want: &payloadrun.OwnCommand{ImageCommand: own}},
		"unknown":                  {ad: `WantDocker = true`, ask: true, err: unknown, asked: 1, want: &payloadrun.OwnCommand{Unknown: unknown}},
		"registries are not asked": {ad: `WantDocker = true`},
		"by Apptainer's rules":     {ad: `SingularityImage = "x"`, ask: true},
		"the pod's own image":      {ad: `WantDocker = true`, ask: true, noImage: true},
		"an image that is a file":  {ad: `WantContainer = true`, ask: true, unpacked: true},
		"overridden":               {ad: "WantDocker = true\nCmd = \"/x\"\nDockerOverrideEntrypoint = true", ask: true},
		"overridden by nothing":    {ad: "WantDocker = true\nCmd = \"\"\nDockerOverrideEntrypoint = true", ask: true, asked: 1, want: &payloadrun.OwnCommand{ImageCommand: own}},
		"known from its own manifest": {ad: `WantDocker = true`, ask: true, own: &payloadrun.OwnCommand{ImageCommand: payload.ImageCommand{Cmd: []string{"a"}}},
			want: &payloadrun.OwnCommand{ImageCommand: payload.ImageCommand{Cmd: []string{"a"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			ad, err := classads.ParseOld(tt.ad)
			if err != nil {
				t.Fatal(err)
			}
			a := &activation{log: slog.New(slog.DiscardHandler)}
			a.opt.Settings.AskRegistries = tt.ask
			a.job.Ad, a.job.Own = ad, tt.own
			if tt.unpacked {
				a.job.Unpacked = &payloadrun.Unpacked{}
			}
			if !tt.noImage {
				a.image.Image = image.Reference{Registry: "registry.example.org", Path: "x", Tag: "1"}
			}
			c := &container{command: own, err: tt.err}
			if tt.err != nil {
				c.command = payload.ImageCommand{}
			}
			if err := a.learnCommand(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, a.job.Own, cmp.Comparer(func(a, b error) bool { return errors.Is(a, b) })); diff != "" || c.asked != tt.asked {
				t.Errorf("asked %d times, want %d (-want +got):\n%s", c.asked, tt.asked, diff)
			}
		})
	}
	gone := errors.New("the job is gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	a := &activation{log: slog.New(slog.DiscardHandler)}
	a.opt.Settings.AskRegistries = true
	a.image.Image = image.Reference{Registry: "registry.example.org", Path: "x", Tag: "1"}
	a.job.Ad = classads.NewAd()
	a.job.Ad.SetBool("WantDocker", true)
	if err := a.learnCommand(ctx, &container{err: ctx.Err()}); !errors.Is(err, gone) {
		t.Errorf("%v, want the cause", err)
	}
}
