package activation

import (
	"context"

	"podstarter/payload"
	"podstarter/starter/payloadrun"
)

// asksForCommand says whether the image's own command has a part in what runs: by docker's rules, and
// unless the job's program takes the place of the entry point.
func (a *activation) asksForCommand() bool {
	return a.opt.Settings.AskRegistries && !a.image.Default() && a.job.FromImage() &&
		!(a.job.Ad.StringOr("Cmd", "") != "" && a.job.Ad.BoolOr("DockerOverrideEntrypoint", false))
}

// learnCommand asks for the command of the image that the container runs. A job that names a program
// runs without an answer.
func (a *activation) learnCommand(ctx context.Context, c payload.Container) error {
	if a.job.Own != nil || !a.asksForCommand() {
		return nil
	}
	found, err := c.Command(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	a.job.Own = &payloadrun.OwnCommand{ImageCommand: found, Unknown: err}
	if err != nil {
		a.log.Warn("The image's ENTRYPOINT and CMD are not known, so that the job's own program runs alone", "error", err)
	}
	return nil
}
